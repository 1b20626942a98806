#include "tokenizer/split/split_pattern.h"

#include "text/utf8.h"

namespace portico::tokenizer {

StatusOr<SplitPattern> SplitPattern::FromJson(const Json* json) {
  if (json != nullptr && json->is_object() && json->as_object().size() == 1) {
    const auto& [kind, value] = json->as_object()[0];
    if (value.is_string() && kind == "String") return FromString(value.as_string());
    if (value.is_string() && kind == "Regex") return FromRegex(value.as_string());
  }
  return Error(StatusCode::kInvalidArgument,
               "a pattern must be {\"String\": text} or {\"Regex\": text}");
}

StatusOr<SplitPattern> SplitPattern::FromRegex(std::string_view pattern, Regex::Syntax syntax) {
  SplitPattern out;
  out.known_ = RecognizePattern(pattern, syntax == Regex::Syntax::kFancyRegex);
  if (out.known_ == KnownPattern::kNone) {
    PORTICO_ASSIGN_OR_RETURN(out.regex_, Regex::Compile(pattern, syntax));
  }
  return out;
}

SplitPattern SplitPattern::FromString(std::string literal) {
  SplitPattern out;
  out.literal_ = std::move(literal);
  return out;
}

StatusOr<std::vector<Match>> SplitPattern::FindMatches(std::string_view text) const {
  if (regex_) return regex_->FindMatches(text);
  if (known_ == KnownPattern::kNone || text.empty()) return FindLiteral(literal_, text);
  std::vector<Match> out;
  ScanMatches(known_, text, &out);
  return out;
}

std::vector<Match> FindLiteral(std::string_view literal, std::string_view text) {
  std::vector<Match> out;
  if (text.empty()) {
    out.push_back({0, 0, false});
    return out;
  }
  if (literal.empty()) {
    for (size_t at = 0; at < text.size();) {
      size_t next = at + 1;
      while (next < text.size() && IsTailByte(text[next])) ++next;
      out.push_back({at, at, true});
      out.push_back({at, next, false});
      at = next;
    }
    out.push_back({text.size(), text.size(), true});
    return out;
  }
  size_t previous = 0;
  for (size_t found = text.find(literal); found != std::string_view::npos;
       found = text.find(literal, previous)) {
    if (found != previous) out.push_back({previous, found, false});
    previous = found + literal.size();
    out.push_back({found, previous, true});
  }
  if (previous != text.size()) out.push_back({previous, text.size(), false});
  return out;
}

}  // namespace portico::tokenizer
