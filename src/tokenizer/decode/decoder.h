// The decoders of tokenizer.json: token spellings to text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/json.h"

namespace portico::tokenizer {

// What a decoder does, where there is a faster way than the general one.
class Decoder;

struct DecodePlan {
  enum class Kind {
    kGeneral,
    kByteLevel,  // bytes spelled as characters
    kFallback,   // a replaced character, <0x..> bytes, all fused
    kTokenwise,  // each token by itself, but for the first (WordPiece, Metaspace)
  };
  Kind kind = Kind::kGeneral;
  std::string replaced;     // kFallback: this text …
  std::string replacement;  // … becomes that one
  std::string stripped;     // kFallback: up to strip_count of it are taken from the start
  size_t strip_count = 0;
  std::shared_ptr<const Decoder> each;  // kTokenwise
};

// Immutable, safe to use from many threads.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // The tokens become parts of the text.
  virtual void Apply(std::vector<std::string>* tokens) const = 0;

  // From the object in the file; null becomes a null pointer.
  static StatusOr<std::unique_ptr<const Decoder>> FromJson(const Json& json);
};

DecodePlan PlanDecode(const Json& json);

// The byte of a token like <0x0A>, or -1.
int ByteOfFallbackToken(std::string_view token);

}  // namespace portico::tokenizer
