// Calls as a name, a separator and JSON, between markers: DeepSeek-V3's, V3.1's, Kimi-K2's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parser/json/call_object.h"
#include "parser/tool/tool_parser.h"

namespace portico::parser {

struct NamedFamily {
  std::string section = {};
  std::string section_end = {};
  std::string call = {};
  std::string call_end = {};
  std::string before_name = {};  // stands between `call` and the name, or may be missing
  std::vector<std::string> separators = {};  // between name and arguments
  std::vector<std::string> noise = {};       // between calls, says nothing
  bool fence = false;                        // the arguments stand in a Markdown fence
  bool counted = false;                      // a name is `functions.NAME:N`, or N alone
  std::vector<std::string> dropped = {};
};

class NamedCalls final : public ToolParser {
 public:
  struct Compiled {
    explicit Compiled(NamedFamily family);
    NamedFamily family;
    MarkerSet text;
    MarkerSet section;  // call, section_end, noise
    MarkerSet before;   // before_name, separators
    MarkerSet separators;
    MarkerSet ends;  // call_end, call, section_end
  };

  NamedCalls(std::shared_ptr<const Compiled> family, const ToolSet& tools, Sink* sink);

 private:
  enum class At { kText, kSection, kName, kArguments, kAfterArguments };

  Next Step() override;
  void AtEnd() override;
  Next StepText();
  Next StepSection();
  Next StepName();
  Next StepArguments();
  Next StepAfter();
  Next LeaveSection();
  Next NoCall();
  bool SetName(std::string_view name);
  void NameByKeys();
  void EndOne();

  std::shared_ptr<const Compiled> family_;
  CallObject object_;
  At at_ = At::kText;
  bool prefix_seen_ = false;
  bool nameless_ = false;  // its arguments must tell the name
  std::string arguments_;  // of a nameless call
};

}  // namespace portico::parser
