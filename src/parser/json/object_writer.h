// The arguments of a call whose format writes them one parameter at a time.
#pragma once

#include <string>
#include <string_view>

#include "parser/core/call_writer.h"
#include "parser/json/value_writer.h"

namespace portico::parser {

// Writes `{"key": value, …}` to the call as the text of each value arrives.
class ObjectWriter {
 public:
  explicit ObjectWriter(CallWriter* call) : call_(*call) {}

  // A call with no parameters yet.
  void Begin() { count_ = 0; }
  // A parameter whose value's types are known.
  void BeginValue(std::string_view key, TypeSet types);
  void Value(std::string_view text);
  void EndValue();
  // The text was cut off within the value.
  void CutValue();
  // A parameter whose value is JSON already, or a part of one.
  void Key(std::string_view key);
  void Json(std::string_view json) { call_.Arguments(json); }
  void End();

  int count() const { return count_; }

 private:
  CallWriter& call_;
  ValueWriter value_;
  int count_ = 0;
  std::string out_;
};

}  // namespace portico::parser
