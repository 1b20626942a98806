// The files of a run: one JSON object a line, as sglang-omni's recorder writes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "base/events/event.h"
#include "base/events/record.h"
#include "base/events/recorder.h"
#include "base/status.h"

namespace portico::events {

// One event, as it lies in a ring.
struct Line {
  Event event{};
  Label stage = 0;
  Details details;
  int64_t nanoseconds = 0;  // CLOCK_MONOTONIC
};

// Used by one thread at a time. Files:
//   events_<stage>_<pid>.jsonl  events of requests
//   steps_<stage>_<pid>.jsonl   what threads did for many of them
//   run_<stage>_<pid>.json      host, boot, clocks, and at the end what was written and lost
//   records_<stage>_<pid>.<number>.bin   while the run goes on, see record_file.h
// They are appended to in whole lines.
class LineWriter {
 public:
  static StatusOr<LineWriter> Open(const RunOptions& options);
  // Says in run_*.json that the run has begun; another one may have had these files until now.
  void Begin() { WriteFacts(false, 0); }
  LineWriter(LineWriter&& other) noexcept;
  LineWriter& operator=(LineWriter&&) = delete;
  ~LineWriter();

  void Add(const Line& line, std::string_view request_id);
  // The run has ended, though lines are still to come.
  void NoteEnd();
  // All lines are there. Others have cut so many.
  void Close(uint64_t cut);
  // Says in run_*.json that the run has ended.
  void WriteEnd(uint64_t dropped) { WriteFacts(true, dropped); }

  // Of the run's records.
  std::string RecordsPath() const;
  // Of run_*.json, which the next run may have, too.
  std::string FactsPath() const;
  internal::RecordsHead Head() const;

  uint64_t written() const { return written_; }
  uint64_t cut() const { return cut_; }
  // A line could not be written, for another reason than the bound.
  bool failed() const { return failed_; }

 private:
  LineWriter() = default;
  void Flush();
  void WriteFacts(bool ended, uint64_t dropped);
  // What lines of the same event with the same stages have in common.
  struct Form {
    std::string before_time;  // behind the request's id
    std::string behind_time;  // up to the numbers
  };
  const Form& FormOf(const Line& line, const EventSpec& spec);
  void FlushTo(int* fd, std::string_view word, std::string* lines, uint64_t* count);
  // False: not all of it is in the file.
  bool Write(int* fd, std::string_view word, std::string_view bytes);

  RunOptions options_;
  std::string prefix_;  // "/dir/%s_frontend_123" without the first word
  int events_ = -1;
  int steps_ = -1;       // opened with its first line
  int64_t to_wall_ = 0;  // wall clock - monotonic clock, at the start
  int64_t started_ = 0;
  int64_t ended_ = 0;
  int64_t bytes_ = 0;
  uint64_t written_ = 0;
  uint64_t cut_ = 0;
  bool failed_ = false;
  std::string event_lines_;
  std::string step_lines_;
  uint64_t event_count_ = 0;
  uint64_t step_count_ = 0;
  std::string run_id_json_;
  int pid_ = 0;
  absl::flat_hash_map<uint64_t, Form> forms_;
};

}  // namespace portico::events
