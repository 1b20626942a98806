// How a model's calls are written, for what makes it write them. Parsers read far more than this.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace portico::parser {

// Of arguments that are Python's keyword arguments; no style of structural tags.
inline constexpr std::string_view kPythonStyle = "python";

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
  std::string style = "json";  // of ARGUMENTS: a style of structural tags, or kPythonStyle
  std::string begins;          // where calls begin behind text; empty: section, or before_name
  bool bare = false;  // `begins` stands in text too: only a known name behind it makes it a call
};

// A list of objects with name and parameters, which any model can write and the family "json" reads.
const CallForm& JsonListForm();

// Of the family of this name (ToolFamily::name); null where it is no such form. `has_token` tells what the vocabulary has,
// where that decides between two.
const CallForm* FindCallForm(std::string_view family,
                             const std::function<bool(std::string_view)>& has_token);

// One call as the form has it. `number`: of calls before it. `arguments`: as the style has them.
std::string WriteCall(const CallForm& form, std::string_view name, std::string_view arguments,
                      int number);

}  // namespace portico::parser
