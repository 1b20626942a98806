// Calls as a name and pairs of a key and a value in tags: GLM's, Hunyuan's, Ling's, K2 Horizon's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parser/json/call_object.h"
#include "parser/json/object_writer.h"
#include "parser/tool/tool_parser.h"

namespace portico::parser {

struct PairFamily {
  std::vector<std::string> sections = {};  // around several calls; may be missing
  std::vector<std::string> section_ends = {};
  std::string call = "<tool_call>";
  std::string call_end = "</tool_call>";
  std::string separator = {};  // may stand behind the name
  std::string key = "<arg_key>";
  std::string key_end = "</arg_key>";
  std::string type = {};  // may stand between key and value
  std::string type_end = {};
  std::string value = "<arg_value>";
  std::string value_end = "</arg_value>";
  bool suffixed = false;   // tags may have a suffix (MarkerSet)
  bool json_body = false;  // J, with or without a name before it
  std::vector<std::string> dropped = {};
};

class PairCalls final : public ToolParser {
 public:
  struct Compiled {
    explicit Compiled(PairFamily family);
    PairFamily family;
    MarkerSet text;
    size_t starts = 0;
    MarkerSet section;  // call, section ends
    MarkerSet name;     // key, call_end, separator
    MarkerSet body;     // key, value, type, call_end, call, section ends, key_end
    MarkerSet key_ends;
    MarkerSet type_ends;
    MarkerSet value_ends;  // value_end, call_end, key
  };

  PairCalls(std::shared_ptr<const Compiled> family, const ToolSet& tools, Sink* sink);

 private:
  enum class At { kText, kSection, kName, kBody, kKey, kType, kValue, kJson };

  Next Step() override;
  void AtEnd() override;
  Next StepText();
  Next StepSection();
  Next StepName();
  Next StepBody();
  Next StepSmall(const MarkerSet& ends, std::string* out);
  Next StepValue();
  Next StepJson();
  void BeginValue();
  void EndKey();
  void EndOne();
  Next LeaveSection();
  Next NoCall();
  // White space, and the escape `\n` that models write in place of a line break.
  size_t Blank(bool* wait) const;

  std::shared_ptr<const Compiled> family_;
  ObjectWriter object_;
  CallObject json_;
  At at_ = At::kText;
  bool in_section_ = false;
  bool is_json_ = false;
  bool stray_ = false;  // within text that is no part of the call
  std::string key_;
  bool keyed_ = false;  // the key has no value yet
  std::string type_;
};

}  // namespace portico::parser
