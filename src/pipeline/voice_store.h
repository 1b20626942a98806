// Voices that clients have uploaded for stages that imitate them. They live in memory, and end with
// the server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/status.h"
#include "pipeline/reference_sound.h"

namespace portico::pipeline {

struct UploadedVoice {
  std::string name;
  std::string consent;              // as the client puts it
  std::string mime_type;            // of the file that came
  std::string ref_text;             // what is said in it; empty: not told
  std::string speaker_description;  // empty: not told
  size_t file_size = 0;             // of the file that came
  int64_t created_at = 0;           // seconds since 1970
  std::shared_ptr<const ReferenceSound> sound;
};

// Thread safe.
class VoiceStore {
 public:
  static constexpr size_t kMostVoices = 64;
  static constexpr size_t kMostBytes = size_t{128} << 20;  // of samples
  static constexpr size_t kMaxNameBytes = 64;

  // `registry` lives as long as this.
  explicit VoiceStore(Registry* registry);

  // INVALID_ARGUMENT (field "name") unless it is a name: letters, digits, '.', '_' and '-'.
  static Status CheckName(std::string_view name);

  // ALREADY_EXISTS (field "name"), or RESOURCE_EXHAUSTED: the store is full.
  Status Add(UploadedVoice voice);
  // False: there is none of that name.
  bool Remove(std::string_view name);
  // Null: there is none of that name.
  std::shared_ptr<const UploadedVoice> Find(std::string_view name) const;
  // In the order of their names.
  std::vector<std::shared_ptr<const UploadedVoice>> All() const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const UploadedVoice>, std::less<>> voices_
      ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  Gauge& count_gauge_;
  Gauge& bytes_gauge_;
};

}  // namespace portico::pipeline
