// Calls as `call:NAME{k:<|"|>text<|"|>,n:42,o:{…},l:[…]}`: Gemma's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parser/json/value_writer.h"
#include "parser/tool/tool_parser.h"

namespace portico::parser {

struct BraceFamily {
  std::string start = {};
  std::string end = {};
  std::string quote = {};
  bool typed =
      false;  // what stands in quotes may be of another type, by the tool's schema or its look
  bool bare_first = false;  // `call:NAME{` is a call too where no text is before it
  std::vector<std::string> dropped = {};
};

class BraceCalls final : public ToolParser {
 public:
  struct Compiled {
    explicit Compiled(BraceFamily family);
    BraceFamily family;
    MarkerSet text;
    MarkerSet inside;  // end, quote
    MarkerSet quote;
  };

  BraceCalls(std::shared_ptr<const Compiled> family, const ToolSet& tools, Sink* sink);

 private:
  enum class At { kText, kName, kKey, kValue, kQuoted, kBare, kNext, kAfter };

  Next Step() override;
  void AtEnd() override;
  Next StepText();
  Next StepName();
  Next StepKey();
  Next StepValue();
  Next StepQuoted();
  Next StepBare();
  Next StepNext();
  Next StepAfter();
  Next WaitForMore();
  void Write(std::string_view json) { call_.Arguments(json); }
  void WriteString(std::string_view text);
  void CloseAll();
  Next Shut();
  Next NoCall();
  Next Leave();

  std::shared_ptr<const Compiled> family_;
  ValueWriter value_;
  At at_ = At::kText;
  size_t looked_ = 0;  // bytes of rest() in which a key or word does not end
  std::string open_;   // brackets of the value
  bool first_ = true;  // in the innermost bracket
  std::string key_;
  std::string out_;
};

}  // namespace portico::parser
