// A model's whole output: reasoning, then calls, each by its family.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "parser/core/sink.h"
#include "parser/core/tool_set.h"
#include "parser/reasoning/families.h"
#include "parser/tool/families.h"

namespace portico::parser {

struct OutputFormat {
  const ToolFamily* tools = nullptr;           // null: calls are text
  const ReasoningChoice* reasoning = nullptr;  // null: reasoning is text
  bool in_reasoning = false;                   // the output begins inside reasoning
};

// One stream of output. Feed() it as it comes and Finish() it.
class OutputParser {
 public:
  virtual ~OutputParser() = default;
  virtual void Feed(std::string_view text) = 0;
  virtual void Finish() = 0;
  // A token whose text is a special token of the format, told by its id: as if the text came, but never mistaken for
  // text that looks like it. False: the format does not tell them apart, and the text is to be fed.
  virtual bool FeedSpecial(int32_t /*token*/) { return false; }
  // Text that began like a call and was none, so far.
  virtual int rejected() const = 0;
  virtual bool in_reasoning() const = 0;

  // Both outlive the parser. Requires tools or reasoning of `format`.
  static std::unique_ptr<OutputParser> Make(const OutputFormat& format, const ToolSet& tools,
                                            Sink* sink);
};

}  // namespace portico::parser
