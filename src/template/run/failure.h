// How the engine stops: exceptions inside the room, caught in Template::Parse() and Template::Render().
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace portico::jinja {

struct Failure {
  StatusCode code;
  std::string message;
};

// The parts (texts and single characters) as one text.
template <typename... Parts>
std::string Cat(const Parts&... parts) {
  std::string text;
  ((text += parts), ...);
  return text;
}

// A wrong template or a wrong operation; what Python would raise as TypeError, UndefinedError and the like.
template <typename... Parts>
[[noreturn]] void Fail(const Parts&... parts) {
  throw Failure{StatusCode::kFailedPrecondition, Cat(parts...)};
}
// A template that cannot be compiled.
template <typename... Parts>
[[noreturn]] void SyntaxError(int line, const Parts&... parts) {
  throw Failure{StatusCode::kInvalidArgument,
                Cat("template line ", std::to_string(line), ": ", parts...)};
}
// A limit of the render was reached.
template <typename... Parts>
[[noreturn]] void LimitReached(const Parts&... parts) {
  throw Failure{StatusCode::kResourceExhausted, Cat(parts...)};
}

}  // namespace portico::jinja
