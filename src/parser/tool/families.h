// The formats of tool calls, by every name that SGLang, vLLM and smg give them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parser/core/sink.h"
#include "parser/core/tool_set.h"
#include "parser/tool/tool_parser.h"

namespace portico::parser {

// How a family's calls are named where the model gives no id.
enum class CallIds {
  kRandom,            // call_ and 24 hexadecimal digits
  kNineCharacters,    // Mistral's
  kFunctionsCounter,  // functions.NAME:N, N goes on over the history
  kNameCounter,       // NAME:N
};

struct ToolFamily {
  std::string name;  // the first of its names
  CallIds ids = CallIds::kRandom;
  bool harmony = false;  // HarmonyParser reads it, calls and reasoning together; `make` is empty
  // Calls stand within reasoning, which goes on behind them.
  bool inside_reasoning = false;
  // Framing stands around plain answers too, so the parser is needed without tools.
  bool frames = false;
  std::vector<std::string> markers;  // all that the parser looks for
  std::function<std::unique_ptr<ToolParser>(const ToolSet&, Sink*)> make;
};

// Null for a name that nobody gives a format.
const ToolFamily* FindToolFamily(std::string_view name);
// All names, sorted.
std::span<const std::string> ToolFamilyNames();

}  // namespace portico::parser
