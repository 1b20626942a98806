// The tools that a request offers, as parsers need them: names, and what type each parameter has.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "text/json.h"

namespace portico::parser {

// The JSON types a value may have, as bits; 0: nobody says.
using TypeSet = uint8_t;
inline constexpr TypeSet kStringType = 1;
inline constexpr TypeSet kIntegerType = 2;
inline constexpr TypeSet kNumberType = 4;
inline constexpr TypeSet kBooleanType = 8;
inline constexpr TypeSet kNullType = 16;
inline constexpr TypeSet kObjectType = 32;
inline constexpr TypeSet kArrayType = 64;

// A schema's types, with those of its properties and items where they were asked for.
struct ValueTypes {
  TypeSet types = 0;
  std::map<std::string, ValueTypes, std::less<>> properties;

  const ValueTypes* Find(std::string_view property) const {
    auto found = properties.find(property);
    return found == properties.end() ? nullptr : &found->second;
  }
};

// Immutable once built; shared by the choices of a request.
class ToolSet {
 public:
  // Every name is a tool's.
  ToolSet() = default;
  // `tools`: OpenAI's list, entries `{"type", "function": {"name", "parameters"}}` or the inner object alone; what has
  // no name is left out. `forward_unknown`: calls of other names are calls too. No list: every name is a tool's, but
  // without `forward_unknown` none is known.
  ToolSet(const Json& tools, bool forward_unknown);

  // Whether a call of this name is a call.
  bool Takes(std::string_view name) const { return any_ || tools_.contains(name); }
  // False: a name tells nothing, so that only a finished call is one.
  bool names_known() const { return names_known_; }
  // The name in the model's text is one with a namespace before it ("functions.f") or doubled ("f.f"): the tool's own
  // name, or `name`.
  std::string_view Resolve(std::string_view name) const;
  // The only tool's name, or "".
  std::string_view Only() const;
  // The types of a tool's arguments; null if nobody says.
  const ValueTypes* Arguments(std::string_view name) const;
  // The tool that declares most of these keys, for a call without a name; "" if none does.
  std::string_view WithKeys(const Json& arguments) const;

 private:
  bool any_ = true;
  bool names_known_ = true;
  std::map<std::string, ValueTypes, std::less<>> tools_;
};

}  // namespace portico::parser
