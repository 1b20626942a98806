#include "grammar/mask/space_bound.h"

namespace portico::grammar {

void SpaceBound::Accept(std::string_view text) {
  for (const char c : text) {
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
      }
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++run_;
      continue;
    }
    run_ = 0;
    if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if ((c == '}' || c == ']') && depth_ > 0) {
      --depth_;
    }
  }
}

}  // namespace portico::grammar
