#include "parser/declared/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <utility>

namespace portico::parser {
namespace {

// Of one search. Texts to search are short (DeclaredParser), so only expressions that backtrack without end get there.
constexpr uint32_t kMatchLimit = 200'000;

constexpr size_t kMaxShown = 256;  // bytes of an expression in an error

std::string Escaped(std::string_view literal) {
  std::string out;
  for (char c : literal) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       static_cast<unsigned char>(c) >= 0x80;
    if (!plain) out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

// Whether a class of characters names one that is several bytes.
bool HasWideClass(std::string_view expression) {
  bool inside = false;
  for (size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (c == '\\') {
      ++i;
    } else if (c == '[') {
      inside = true;
    } else if (c == ']') {
      inside = false;
    } else if (inside && static_cast<unsigned char>(c) >= 0x80) {
      return true;
    }
  }
  return false;
}

struct MatchState {
  MatchState() {
    context = pcre2_match_context_create(nullptr);
    pcre2_set_match_limit(context, kMatchLimit);
    data = pcre2_match_data_create(32, nullptr);
  }
  ~MatchState() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
  }
  MatchState(const MatchState&) = delete;
  MatchState& operator=(const MatchState&) = delete;

  pcre2_match_context* context;
  pcre2_match_data* data;
};

bool MatchesEmptyText(const pcre2_code* code) {
  const MatchState state;
  return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(""), 0, 0, 0, state.data, state.context) >=
         0;
}

}  // namespace

struct Pattern::Code {
  explicit Code(pcre2_code* of) : code(of) {}
  ~Code() { pcre2_code_free(code); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  pcre2_code* const code;
};

StatusOr<Pattern> Pattern::Make(std::string_view expression) {
  if (HasWideClass(expression)) {
    return InvalidArgument(
        "", "a class of characters must be one of ASCII: " + std::string(expression));
  }
  int error = 0;
  PCRE2_SIZE where = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()),
                                   expression.size(), PCRE2_DOTALL, &error, &where, nullptr);
  if (code == nullptr) {
    PCRE2_UCHAR message[256] = {};
    pcre2_get_error_message(error, message, sizeof(message));
    return InvalidArgument(
        "", "no regular expression: " + std::string(expression.substr(0, kMaxShown)) + ": " +
                reinterpret_cast<const char*>(message));
  }
  Pattern pattern;
  pattern.code_ = std::make_shared<const Code>(code);
  uint32_t count = 0;
  uint32_t size = 0;
  PCRE2_SPTR names = nullptr;
  pcre2_pattern_info(code, PCRE2_INFO_NAMECOUNT, &count);
  pcre2_pattern_info(code, PCRE2_INFO_NAMEENTRYSIZE, &size);
  pcre2_pattern_info(code, PCRE2_INFO_NAMETABLE, &names);
  for (uint32_t i = 0; i < count; ++i) {  // an entry: the number in two bytes, the name, a zero
    PCRE2_SPTR entry = names + i * size;
    pattern.numbers_.push_back(entry[0] << 8 | entry[1]);
    pattern.groups_.emplace_back(reinterpret_cast<const char*>(entry + 2));
  }
  pattern.needs_text_ = !MatchesEmptyText(code);
  return pattern;
}

StatusOr<Pattern> Pattern::OneOf(std::vector<std::string> literals) {
  std::sort(literals.begin(), literals.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  std::string expression;
  for (const std::string& literal : literals) {
    if (!expression.empty()) expression.push_back('|');
    expression += Escaped(literal);
  }
  return Make(expression);
}

Pattern::Match Pattern::Find(std::string_view text, bool final, size_t from, bool ahead) const {
  thread_local MatchState state;
  Match match;
  match.begin = text.size();
  const int rc = pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                             from, final ? 0 : PCRE2_PARTIAL_HARD, state.data, state.context);
  const PCRE2_SIZE* at = pcre2_get_ovector_pointer(state.data);
  if (rc == PCRE2_ERROR_PARTIAL) {
    // The empty end of a text begins everything.
    match.begin = at[0];
    if (at[0] < text.size()) match.kind = Kind::kPartial;
    return match;
  }
  if (rc <= 0) return match;  // none, or too many steps
  if (at[1] < at[0] || (at[1] == at[0] && !(ahead && needs_text_))) return match;
  match.kind = Kind::kFound;
  match.begin = at[0];
  match.length = at[1] - at[0];
  for (const int number : numbers_) {
    std::string_view group;
    if (number < rc && at[2 * number] != PCRE2_UNSET) {
      group = text.substr(at[2 * number], at[2 * number + 1] - at[2 * number]);
    }
    match.groups.push_back(group);
  }
  return match;
}

}  // namespace portico::parser
