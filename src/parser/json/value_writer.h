// The value of one parameter where a format writes it as plain text between markers.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "parser/core/tool_set.h"
#include "parser/json/literal_relay.h"

namespace portico::parser {

// What the text means goes by the parameter's type: a string is passed on while it arrives; a number, a truth value or
// null is what the text spells in JSON or Python; objects and arrays are passed on while they arrive, mended where
// needed. Text that is not of its type is a string. Where nobody says the type, a text that is JSON or a word of Python
// is that, and any other text is a string.
class ValueWriter {
 public:
  // Of text that waits for its end to tell what it is.
  static constexpr size_t kMaxHeldBytes = size_t{256} << 10;

  void Begin(TypeSet types);
  void Push(std::string_view text, std::string* out);
  void End(std::string* out);
  // The text was cut off here: writes what is held.
  void Cut(std::string* out);
  // Text that came behind the value of an object or array since the last call, without the white space before it.
  std::string TakeStray() { return std::exchange(stray_, {}); }

 private:
  enum class Mode { kUndecided, kString, kRelay };

  void Relay(std::string_view text, std::string* out);
  void Decide(std::string* out);
  void ToString(std::string* out);
  bool ToScalar(std::string_view word, std::string* out) const;

  TypeSet types_ = 0;
  Mode mode_ = Mode::kUndecided;
  std::string held_;
  bool strayed_ = false;
  std::string stray_;
  LiteralRelay relay_;  // kRelay
  LiteralRelay probe_;  // of what is held where nobody says the type: is it JSON so far?
  std::string probe_out_;
};

// Appends a part of a string to JSON: escaped, bytes beyond ASCII as they are.
void AppendStringPart(std::string_view text, std::string* out);

}  // namespace portico::parser
