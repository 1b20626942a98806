// The option table of `portico serve`: one entry an option, from which everything else about it is
// made.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "app/options/options.h"

namespace portico {

struct Option {
  using Member =
      std::variant<std::string ServeOptions::*, bool ServeOptions::*,
                   std::optional<bool> ServeOptions::*, int32_t ServeOptions::*,
                   int64_t ServeOptions::*, double ServeOptions::*, std::string ModelOptions::*,
                   bool ModelOptions::*, int32_t ModelOptions::*, int64_t ModelOptions::*,
                   double ModelOptions::*>;

  std::string_view group;
  std::string_view name;  // "model-path": the flag without its dashes, and the key in the file
  Member member;
  std::string_view metavar{};   // "PATH" in the help; empty for flags
  std::string_view help;        // sentences; the default is appended
  double min = 0;               // of numbers, inclusive
  double max = 0;               // inclusive
  std::string_view choices{};   // "auto|float32|bfloat16"; empty: any text
  std::string_view synonyms{};  // "bf16=bfloat16|half=float16": other words for choices
  std::string_view alias{};     // another name of the flag, or empty
  std::string_view
      shown_default{};         // what the help calls the default, where its value says nothing
  bool bytes = false;          // takes "32MiB"
  bool secret = false;         // never shown again
  std::string_view engines{};  // of models: "sglang|grpc"; empty: of any engine

  // Each model has its own.
  bool is_model() const {
    return std::visit(
        [](auto pointer) { return std::is_invocable_v<decltype(pointer), const ModelOptions&>; },
        member);
  }
  bool is_flag() const {
    return std::holds_alternative<bool ServeOptions::*>(member) ||
           std::holds_alternative<std::optional<bool> ServeOptions::*>(member) ||
           std::holds_alternative<bool ModelOptions::*>(member);
  }
  bool is_text() const {
    return std::holds_alternative<std::string ServeOptions::*>(member) ||
           std::holds_alternative<std::string ModelOptions::*>(member);
  }
};

// In the order of --help; groups are contiguous.
std::span<const Option> ServeOptionTable();
// Its last groups (options_transport.cc).
std::span<const Option> TransportOptions();
// What joins groups of the same names (options_engines.cc).
std::span<const Option> OtherEngineOptions();

// The option of that name or alias, dashes or underscores, or null.
const Option* FindOption(std::string_view name);

// "a|b|c", as choices are written: its parts.
std::vector<std::string_view> SplitAtBars(std::string_view text);

// The name in the table closest to `name`, or empty if none is close.
std::string_view NearestOption(std::string_view name);

// "32MiB", "64K", "1024". INVALID_ARGUMENT without the option's name.
StatusOr<int64_t> ParseBytes(const std::string& text);

// Sets the option from text, in the one of the two that has it; the other may be null. Errors do not
// name the option: "70000 is not in 0..65535".
Status SetOption(const Option& option, const std::string& text, ServeOptions* server,
                 ModelOptions* model);

// The option's value: as SetOption() takes it, and as JSON.
std::string OptionText(const Option& option, const ServeOptions& server, const ModelOptions& model);
Json OptionJson(const Option& option, const ServeOptions& server, const ModelOptions& model);

// What has been read so far, before it is known how many models there are.
struct OptionLayers {
  ServeOptions server;               // but for its models
  ModelOptions every_model;          // what a model has that names nothing else
  std::vector<ModelOptions> listed;  // of the file's `models`, on top of every_model
};

// Adds what YAML text says; `file` is its name in errors. What has no key stays as it is.
Status ApplyOptionsYaml(const std::string& text, const std::string& file, OptionLayers* layers);

// What no single option can tell: pairs that need each other, texts with a grammar of their own,
// models that could not be told apart.
Status CheckOptions(const ServeOptions& options);

}  // namespace portico
