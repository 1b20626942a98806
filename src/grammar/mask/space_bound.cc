#include "grammar/mask/space_bound.h"

namespace portico::grammar {
namespace {

bool IsSpaceByte(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

void SpaceBound::Accept(std::string_view text) {
  if (rule_ == SpaceRule::kJson) AcceptJson(text);
  if (rule_ == SpaceRule::kNarrow) AcceptAny(text);
}

void SpaceBound::AcceptAny(std::string_view text) {
  for (const char c : text) run_ = IsSpaceByte(c) ? run_ + 1 : 0;
}

void SpaceBound::AcceptJson(std::string_view text) {
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
    if (IsSpaceByte(c)) {
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
