// Calls as JSON objects or lists of them, between markers or bare.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parser/json/call_object.h"
#include "parser/tool/tool_parser.h"

namespace portico::parser {

struct JsonFamily {
  std::vector<std::string> starts = {};   // a call or a list follows
  std::vector<std::string> ends = {};     // behind it; may be missing
  bool needs_end = false;                 // where no name is known, it may not
  std::vector<std::string> dropped = {};  // framing of the answer
  bool bare = false;         // objects and lists in plain text are calls too, where they are
  bool bare_first = false;   // only where no text is before them
  bool fence = false;        // a Markdown fence may stand around the JSON
  bool key_is_name = false;  // {"NAME": arguments}
  bool tool_name = false;    // "tool_name" is a key of names too
  bool python = false;       // the list is a Python literal
  // `NAME[ARGS]{…}` may follow a start: what stands behind the name, or nothing.
  std::vector<std::string> name_ends = {};
  // A header stands between start and JSON, up to this; at another marker of `dropped` it is none.
  std::string header_end = {};
};

class JsonCalls final : public ToolParser {
 public:
  // What a family needs to look for. Made once a family.
  struct Compiled {
    explicit Compiled(JsonFamily family);
    JsonFamily family;
    MarkerSet text;     // starts, brackets of bare calls, dropped
    size_t starts = 0;  // of `text`
    MarkerSet ends;
    MarkerSet stops;  // ends, starts
    MarkerSet name_ends;
    MarkerSet headers;
  };

  JsonCalls(std::shared_ptr<const Compiled> family, const ToolSet& tools, Sink* sink);

 private:
  enum class At { kText, kHeader, kOpen, kName, kObject, kListNext, kAfter };

  Next Step() override;
  void AtEnd() override;
  Next StepText();
  Next StepHeader();
  Next StepOpen();
  Next StepName();
  Next StepObject();
  Next StepListNext();
  Next StepAfter();
  void BeginObject();
  Next NoCall();
  Next ToText(bool complete);

  std::shared_ptr<const Compiled> family_;
  CallObject object_;
  At at_ = At::kText;
  bool in_list_ = false;
  bool bare_ = false;
  bool named_ = false;
};

}  // namespace portico::parser
