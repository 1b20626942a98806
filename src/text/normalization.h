// Unicode normal forms as the reference tokenizer computes them (its tables are older than those of a current
// Unicode library, so a character that is newer stays as it is).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace portico {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

// A character of the result, and how it relates to the characters before: 0 it stands for the next one, 1 it was
// added behind the one before, -N it stands for the next one and the N behind that are gone.
struct NormalizedChar {
  uint32_t code_point;
  int32_t change;
};

// `text` is valid UTF-8. Appends the characters of its normal form.
void NormalizeTo(NormalForm form, std::string_view text, std::vector<NormalizedChar>* out);

// A part of a text that NFC may change, in bytes, and how many characters it becomes. Its two sides are independent of it.
struct NfcPart {
  size_t begin;
  size_t end;
  size_t chars;
};

// All these parts of valid UTF-8, in order; appends the characters that they become.
std::vector<NfcPart> NfcPartsOf(std::string_view text, std::vector<NormalizedChar>* chars);

// True if NFC leaves `text` as it is; false may also mean "not known without doing it".
bool IsSurelyNfc(std::string_view text);

// True if and only if NFC leaves `text`, valid UTF-8, as it is.
bool IsNfc(std::string_view text);

// NFC of valid UTF-8. Only the parts that may change are worked on.
std::string ToNfc(std::string_view text);

}  // namespace portico
