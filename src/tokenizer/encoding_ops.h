// How encodings are cut, joined and filled up, in the manner of Hugging Face's Encoding.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "text/json.h"
#include "tokenizer/encoding.h"

namespace portico::tokenizer {

struct Truncation {
  enum class Strategy { kLongestFirst, kOnlyFirst, kOnlySecond };
  uint64_t max_length = 512;
  uint64_t stride = 0;
  Strategy strategy = Strategy::kLongestFirst;
  bool left = false;  // cut at the left end

  static StatusOr<std::optional<Truncation>> FromJson(const Json* json);
};

struct Padding {
  std::optional<uint64_t> fixed;  // else as long as the longest of the batch
  std::optional<uint64_t> multiple_of;
  bool left = false;
  TokenId id = 0;
  uint32_t type_id = 0;
  std::string token = "[PAD]";

  static StatusOr<std::optional<Padding>> FromJson(const Json* json);
};

void SetSequence(int32_t sequence, Encoding* encoding);

// Appends `other`, and combines the overflowing parts of both.
void MergeInto(Encoding* encoding, const Encoding& other);
void MergeInto(Encoding* encoding, Encoding&& other);

// Cuts both so that together they have at most `max_length` tokens.
Status TruncatePair(Encoding* first, Encoding* second, const Truncation& rule, uint64_t max_length);

// Pads to the rule's length; `longest` is the batch's longest, for rules that ask for it.
void Pad(Encoding* encoding, const Padding& rule, uint64_t longest);

// Fills sequence_ids from the ranges, in overflowing parts too.
void FillSequenceIds(Encoding* encoding);

}  // namespace portico::tokenizer
