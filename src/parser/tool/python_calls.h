// Calls as Python writes them: `[f(a="x", b=1), g()]`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parser/json/call_object.h"
#include "parser/json/literal_relay.h"
#include "parser/json/object_writer.h"
#include "parser/tool/tool_parser.h"

namespace portico::parser {

struct PythonFamily {
  std::vector<std::string> starts = {};  // in front of the list
  std::vector<std::string> ends = {};
  bool bare = true;    // a list in plain text is calls too, if it looks so
  bool lines = false;  // a call a line, no brackets, between start and end
  bool json = false;   // a JSON list may stand in its place
  std::vector<std::string> dropped = {};
};

class PythonCalls final : public ToolParser {
 public:
  struct Compiled {
    explicit Compiled(PythonFamily family);
    PythonFamily family;
    MarkerSet text;
    size_t starts = 0;
    MarkerSet ends;
  };

  PythonCalls(std::shared_ptr<const Compiled> family, const ToolSet& tools, Sink* sink);

 private:
  enum class At { kText, kOpen, kName, kKey, kValue, kAfterValue, kAfterCall, kObject, kEnd };

  Next Step() override;
  void AtEnd() override;
  Next StepText();
  Next StepOpen();
  Next StepName();
  Next StepKey();
  Next StepValue();
  Next StepAfterValue();
  Next StepAfterCall();
  Next StepObject();
  Next StepEnd();
  void EndOne();
  Next NoCall();
  Next Leave();

  std::shared_ptr<const Compiled> family_;
  LiteralRelay value_;
  CallObject object_;
  At at_ = At::kText;
  bool bare_ = false;
  bool brackets_ = false;
  int keys_ = 0;
  std::string key_;
  std::string out_;
};

}  // namespace portico::parser
