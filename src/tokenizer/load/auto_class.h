// Which of its classes transformers' AutoTokenizer (5.23) makes of a folder, and what that class does to the added tokens.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "text/json.h"

namespace portico::tokenizer {

struct AutoClass {
  enum class Kind {
    kPlain,  // the tokenizer.json as it is, then what the other files name
    kRebuilt,  // made anew of the vocabulary: of the added tokens only those that the other files name
    kForeign,  // not of a tokenizer.json at all, or the folder cannot be loaded
  };
  // What the class passes on as additional_special_tokens.
  enum class Extras { kNone, kT5, kCodeLlama };
  // What it does when all tokens are added.
  enum class Last { kNothing, kAddsNamedAnew, kMakesNamedSpecial };

  Kind kind = Kind::kPlain;
  std::string name = {};  // "Qwen2Tokenizer"
  std::string why = {};   // of kForeign, for a person
  // Its special tokens where no file names them ("bos_token", "<s>").
  std::span<const std::pair<std::string_view, std::string_view>> defaults = {};
  std::string_view without = {};        // a special token that it sets to none
  std::string_view needed[2] = {};      // those without which it cannot be made
  std::string_view left_stripped = {};  // takes the spaces before it where it is named as a text
  Extras extras = Extras::kNone;
  Last last = Last::kNothing;
  bool sets_flags = false;  // bos, eos and unk named as texts are special tokens at once
  bool normalizes = true;   // else its added tokens are found in the raw text
  bool is_unigram = false;  // of no other vocabulary can it be made
};

// `settings`: the folder's tokenizer_config.json; `config`: its config.json; either may be null. `is_byte_level`: whether
// the tokenizer.json has a part of that name.
AutoClass FindAutoClass(const Json& settings, const Json& config,
                        const std::function<bool()>& is_byte_level);

}  // namespace portico::tokenizer
