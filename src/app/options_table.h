// The option table of `portico serve`: one entry an option, from which everything else about it is
// made.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "app/options.h"

namespace portico {

struct Option {
  using Member = std::variant<std::string ServeOptions::*, bool ServeOptions::*,
                              std::optional<bool> ServeOptions::*, int32_t ServeOptions::*,
                              int64_t ServeOptions::*, double ServeOptions::*>;

  std::string_view group;
  std::string_view name;  // "model-path": the flag without its dashes, and the key in the file
  Member member;
  std::string_view metavar{};  // "PATH" in the help; empty for flags
  std::string_view help;       // sentences; the default is appended
  double min = 0;              // of numbers, inclusive
  double max = 0;              // inclusive
  std::string_view choices{};  // "auto|float32|bfloat16"; empty: any text
  std::string_view alias{};    // another name of the flag, or empty
  std::string_view
      shown_default{};  // what the help calls the default, where its value says nothing
  bool bytes = false;   // takes "32MiB"
  bool secret = false;  // never shown again

  bool is_flag() const {
    return std::holds_alternative<bool ServeOptions::*>(member) ||
           std::holds_alternative<std::optional<bool> ServeOptions::*>(member);
  }
  bool is_text() const { return std::holds_alternative<std::string ServeOptions::*>(member); }
};

// In the order of --help; groups are contiguous.
std::span<const Option> ServeOptionTable();

// The option of that name or alias, dashes or underscores, or null.
const Option* FindOption(std::string_view name);

// The name in the table closest to `name`, or empty if none is close.
std::string_view NearestOption(std::string_view name);

// Sets the option from text. Errors do not name the option: "70000 is not in 0..65535".
Status SetOption(const Option& option, const std::string& text, ServeOptions* options);

// The option's value: as SetOption() takes it, and as JSON.
std::string OptionText(const Option& option, const ServeOptions& options);
Json OptionJson(const Option& option, const ServeOptions& options);

// What no single option can tell: pairs that need each other, texts with a grammar of their own.
Status CheckOptions(const ServeOptions& options);

}  // namespace portico
