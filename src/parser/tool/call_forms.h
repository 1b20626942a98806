// How a model's calls are written, for what makes it write them. Parsers read far more than this.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace portico::parser {

// Of arguments that are Python's keyword arguments, or written as a MemberForm says; no styles of structural tags.
inline constexpr std::string_view kPythonStyle = "python";
inline constexpr std::string_view kMemberStyle = "members";

// before KEY after VALUE end, joined by separator. `{}` in `end` stands for KEY.
struct MemberForm {
  // What `{}` in `after` stands for.
  enum class Typed {
    kNot,     // there is none
    kString,  // `true` for a string, else `false`
    kType,    // JSON's name of the type
  };

  std::string before = {};
  std::string after = {};
  std::string end = {};
  std::string separator = {};
  Typed typed = Typed::kNot;
  // Empty: VALUE is JSON, but for a string, which is text. Otherwise text between these, objects are `{key:VALUE,…}` and
  // lists `[VALUE,…]`, on every level.
  std::string quote = {};
  bool text_default = false;               // a value of which no schema says the type is text
  std::vector<std::string> excludes = {};  // what no text may hold, beside the family's markers
  std::vector<std::string> no_keys = {};   // names that are tags of their own
};

// section { before_name NAME after_name ARGUMENTS end } joined by separator, section_end.
struct CallForm {
  std::string section;
  std::string before_name;
  std::string after_name;
  std::string end;
  std::string separator;
  std::string section_end;
  bool json_name = true;       // NAME stands in a JSON string
  std::string counter_end;     // not empty: a number follows after_name, and then this
  std::string style = "json";  // of ARGUMENTS: a style of structural tags, or one of the above
  MemberForm members;          // of kMemberStyle
  std::string lead;            // in front of the first call, where no text is
  std::string begins;          // where calls begin behind text; empty: section, or before_name
  bool bare = false;  // `begins` stands in text too: only a known name behind it makes it a call
};

// A list of objects with name and parameters, which any model can write and the family "json" reads.
const CallForm& JsonListForm();

// Of the family of this name (ToolFamily::name); null where it is no such form. `has_token` tells what the vocabulary has,
// where that decides between two.
const CallForm* FindCallForm(std::string_view family,
                             const std::function<bool(std::string_view)>& has_token);
// The same calls without a style of structural tags, whose tags cannot be special tokens; null: it has none.
const CallForm* FindMemberCallForm(std::string_view family);
// With a checkpoint's suffix (`<tool_calls:6124c78e>`): each of the form's tags that `tags` names has the text given there.
CallForm WithTags(CallForm form, const std::vector<std::pair<std::string, std::string>>& tags);

// One call as the form has it. `number`: of calls before it. `arguments`: as the style has them.
std::string WriteCall(const CallForm& form, std::string_view name, std::string_view arguments,
                      int number);

}  // namespace portico::parser
