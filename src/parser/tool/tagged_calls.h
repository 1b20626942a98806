// Calls as tags with one tag for each parameter: Qwen3-Coder's, DeepSeek's DSML, MiniMax-M2's, Step-3's, Kimi-K3's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parser/json/call_object.h"
#include "parser/json/object_writer.h"
#include "parser/tool/tool_parser.h"

namespace portico::parser {

struct TaggedFamily {
  std::vector<std::string> starts =
      {};  // of a section; the first call follows, after white space and `noise`
  std::vector<std::string> ends = {};   // of a section
  bool bare_calls = false;              // a call may stand without a section
  std::vector<std::string> noise = {};  // markers between calls that say nothing
  std::string call = "<invoke";         // a call's head begins; it ends with `head_end`
  std::string call_end = "</invoke>";
  std::string parameter = "<parameter";
  std::string parameter_end = "</parameter>";
  std::string head_end = ">";
  // `call` and `parameter` end with "=", and a head is the name. Otherwise attributes: `name="NAME"`, quotes may be missing.
  bool equals = false;
  std::string name_key = "name";    // the attribute that names a call
  std::string key_key = "name";     // and a parameter
  bool trim_newline = false;        // one newline on each side of a value is no part of it
  bool trim = false;                // no white space around a value is part of it
  bool entities = false;            // &amp; and the like in heads
  bool values_are_strings = false;  // unless the tool's schema says otherwise
  bool json_body = false;           // J may stand in place of parameters
  bool cdata = false;               // a value may begin with <![CDATA[…]]>
  std::vector<std::string> dropped = {};
};

class TaggedCalls final : public ToolParser {
 public:
  struct Compiled {
    explicit Compiled(TaggedFamily family);
    TaggedFamily family;
    MarkerSet text;
    size_t starts = 0;
    MarkerSet section;  // call, noise, ends
    MarkerSet body;     // parameter, call_end, ends, call
    MarkerSet ends;
    MarkerSet value;  // parameter_end, call_end, ends, parameter
  };

  TaggedCalls(std::shared_ptr<const Compiled> family, const ToolSet& tools, Sink* sink);

 private:
  enum class At { kText, kSection, kHead, kBody, kJson, kParameterHead, kValue, kBareEnd };

  Next Step() override;
  void AtEnd() override;
  Next StepText();
  Next StepSection();
  Next StepHead();
  Next StepBody();
  Next StepJson();
  Next StepParameterHead();
  Next StepValue();
  Next StepBareEnd();
  void ParameterIsText();
  void BeginValue(std::string_view key, TypeSet types);
  void Value(std::string_view text);
  void EndValue();
  void EndOne(bool complete);
  Next LeaveSection(bool complete);
  Next NoCall();

  std::shared_ptr<const Compiled> family_;
  ObjectWriter object_;
  CallObject json_;
  At at_ = At::kText;
  bool in_section_ = false;
  bool self_closed_ = false;
  bool stray_ = false;    // within text that is no part of the call
  bool is_json_ = false;  // the call's arguments are J
  // Of the value that is read:
  bool value_started_ = false;
  bool in_cdata_ = false;
  std::string held_;  // white space that may be the value's end
  size_t space_ = 0;  // bytes of white space since its last other byte
};

}  // namespace portico::parser
