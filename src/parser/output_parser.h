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

// One stream of output. Feed() it as it comes, or FeedMarker() and FeedPlain() where the tokens are known, and Finish() it.
class OutputParser {
 public:
  virtual ~OutputParser() = default;
  virtual void Feed(std::string_view text) = 0;
  virtual void Finish() = 0;
  // The text of a special token that is one of the format's markers.
  virtual void FeedMarker(std::string_view text) { Feed(text); }
  // Text of other tokens. Formats whose markers are all special tokens find none in it, even if it spells one.
  virtual void FeedPlain(std::string_view text) { Feed(text); }
  // Text that began like a call and was none, so far.
  virtual int rejected() const = 0;
  virtual bool in_reasoning() const = 0;

  // Both outlive the parser. Requires tools or reasoning of `format`.
  static std::unique_ptr<OutputParser> Make(const OutputFormat& format, const ToolSet& tools,
                                            Sink* sink);
};

}  // namespace portico::parser
