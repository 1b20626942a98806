#include "tokenizer/regex/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "text/utf8.h"
#include "tokenizer/regex/regex_cursor.h"

namespace portico::tokenizer {
namespace {

constexpr size_t kJitStackStart = 64 * 1024;
constexpr size_t kJitStackLimit =
    64 * 1024 * 1024;  // address space: what is not touched is not there
constexpr uint32_t kHeapLimitKib = 64 * 1024;
constexpr uint32_t kMinMatchLimit = 2'000'000;

// What a thread needs to run a pattern.
struct MatchState {
  MatchState() {
    stack = pcre2_jit_stack_create(kJitStackStart, kJitStackLimit, nullptr);
    context = pcre2_match_context_create(nullptr);
    pcre2_jit_stack_assign(context, nullptr, stack);
    pcre2_set_heap_limit(context, kHeapLimitKib);
    // Only the whole match is asked for.
    data = pcre2_match_data_create(1, nullptr);
  }
  ~MatchState() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
  MatchState(const MatchState&) = delete;
  MatchState& operator=(const MatchState&) = delete;

  pcre2_jit_stack* stack;
  pcre2_match_context* context;
  pcre2_match_data* data;
};

// PCRE2 counts a try for about each repetition of a group, so a long text of one match needs a few for each byte.
uint32_t MatchLimitOf(std::string_view text) {
  constexpr size_t kTriesPerByte = 16;
  return static_cast<uint32_t>(
      std::clamp<size_t>(text.size() * kTriesPerByte, kMinMatchLimit, UINT32_MAX));
}

std::string Pcre2Message(int error) {
  PCRE2_UCHAR message[256] = {};
  pcre2_get_error_message(error, message, sizeof(message));
  return reinterpret_cast<const char*>(message);
}

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;
  ~Code() { pcre2_code_free(code); }
};

Regex::Regex(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Regex::~Regex() = default;

namespace {

// Null, and PCRE2's number of the error, where the pattern does not compile.
pcre2_code* CompileTranslated(const std::string& translated, Regex::Syntax syntax, int* error) {
  PCRE2_SIZE where = 0;
  uint32_t options = PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_UCP;
  if (syntax == Regex::Syntax::kOniguruma) options |= PCRE2_MULTILINE;
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
                                   translated.size(), options, error, &where, context);
  pcre2_compile_context_free(context);
  return code;
}

}  // namespace

StatusOr<std::shared_ptr<const Regex>> Regex::Compile(std::string_view pattern, Syntax syntax) {
  auto code = std::make_unique<Code>();
  int error = 0;
  for (bool share_classes : {false, true}) {
    StatusOr<std::string> translated = TranslatePattern(pattern, syntax, share_classes);
    const bool too_large = translated.status().code() == StatusCode::kResourceExhausted;
    if (!share_classes && too_large) continue;
    PORTICO_RETURN_IF_ERROR(translated.status());
    code->code = CompileTranslated(*translated, syntax, &error);
    if (code->code != nullptr || error != PCRE2_ERROR_PATTERN_TOO_LARGE) break;
  }
  if (code->code == nullptr) {
    return Error(StatusCode::kInvalidArgument,
                 PatternText(pattern) + " does not compile: " + Pcre2Message(error));
  }
  // Without JIT support the interpreter answers the same.
  pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE);
  return std::shared_ptr<const Regex>(new Regex(std::move(code)));
}

StatusOr<std::vector<Match>> Regex::FindMatches(std::string_view text) const {
  std::vector<Match> out;
  if (text.empty()) {
    out.push_back({0, 0, false});
    return out;
  }
  thread_local MatchState state;
  pcre2_set_match_limit(state.context, MatchLimitOf(text));
  const PCRE2_SIZE* found = pcre2_get_ovector_pointer(state.data);
  size_t previous = 0;
  size_t at = 0;
  bool after_match = false;
  while (at <= text.size()) {
    int rc = pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                         PCRE2_NO_UTF_CHECK, state.data, state.context);
    if (rc == PCRE2_ERROR_NOMATCH) break;
    if (rc < 0) {
      return Error(StatusCode::kInvalidArgument,
                   "a pattern of the tokenizer gave up on the text: " + Pcre2Message(rc));
    }
    size_t begin = found[0];
    size_t end = found[1];
    if (begin > end || end > text.size()) break;  // \K in a lookbehind
    bool empty_behind_match = begin == end && after_match && begin == previous;
    if (!empty_behind_match) {
      if (begin != previous) out.push_back({previous, begin, false});
      out.push_back({begin, end, true});
      previous = end;
      after_match = true;
    }
    if (begin == end) {
      at = end + 1;
      while (at < text.size() && IsTailByte(text[at])) ++at;
    } else {
      at = end;
    }
  }
  if (previous != text.size()) out.push_back({previous, text.size(), false});
  return out;
}

}  // namespace portico::tokenizer
