// Where parsers put what they have made out of a model's text.
#pragma once

#include <string_view>

namespace portico::parser {

// Pieces come in the order of the text. None is empty but a call's id. A piece may end inside a character where the
// text that was fed did.
class Sink {
 public:
  virtual ~Sink() = default;
  // What the model says to the user.
  virtual void Content(std::string_view text) = 0;
  // What it says to itself.
  virtual void Reasoning(std::string_view text) = 0;
  // A call begins; it is one now, whatever comes. `id` is the model's own name for the call, or empty.
  virtual void BeginCall(std::string_view name, std::string_view id) = 0;
  // More of the arguments of the call that began last: JSON.
  virtual void Arguments(std::string_view json) = 0;
  // The call that began last has ended. `complete`: the model finished it, and its arguments are a JSON value.
  virtual void EndCall(bool complete) = 0;
};

}  // namespace portico::parser
