#include "grammar/mask/compiled_grammar.h"

#include <xgrammar/exception.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "grammar/compile/grammar_pack.h"
#include "grammar/mask/mask_tensor.h"
#include "grammar/mask/space_bound.h"
#include "grammar/mask/token_table.h"

namespace portico::grammar {

namespace {

bool IsBlank(std::string_view text) {
  return !text.empty() && text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// Tokens of the mask that are none of `others`.
size_t CountBeside(const std::vector<uint32_t>& others, std::span<const uint32_t> mask) {
  size_t count = 0;
  for (size_t i = 0; i < std::min(others.size(), mask.size()); ++i) {
    count += static_cast<size_t>(std::popcount(mask[i] & ~others[i]));
  }
  return count;
}

// Takes the tokens of `others` out of `mask`; false, and nothing changes, where none would stay.
bool LeaveOut(const std::vector<uint32_t>& others, std::span<uint32_t> mask) {
  const size_t words = std::min(others.size(), mask.size());
  bool some_stay = false;
  for (size_t i = 0; i < words && !some_stay; ++i) some_stay = (mask[i] & ~others[i]) != 0;
  if (!some_stay) return false;
  for (size_t i = 0; i < words; ++i) mask[i] &= ~others[i];
  return true;
}

// Leaves only `token` (-1: none) in `mask`; false, and nothing changes, where it is not in it.
bool LeaveOnly(TokenId token, std::span<uint32_t> mask) {
  if (token < 0) return false;
  const size_t word = static_cast<size_t>(token) / 32;
  const uint32_t bit = uint32_t{1} << (token % 32);
  if (word >= mask.size() || (mask[word] & bit) == 0) return false;
  std::fill(mask.begin(), mask.end(), 0);
  mask[word] = bit;
  return true;
}

}  // namespace

TokenTable::TokenTable(xgrammar::TokenizerInfo of) : tokens(std::move(of)) {
  const std::vector<std::string>& texts = tokens.GetDecodedVocab();
  blank.resize(MaskWords(texts.size()));
  for (size_t id = 0; id < texts.size(); ++id) {
    if (IsBlank(texts[id])) blank[id / 32] |= uint32_t{1} << (id % 32);
    if (texts[id] == "\n") line_end = static_cast<TokenId>(id);
    if (texts[id] == " ") space = static_cast<TokenId>(id);
  }
}

CompiledGrammar::CompiledGrammar() = default;
CompiledGrammar::~CompiledGrammar() = default;

StatusOr<std::shared_ptr<const CompiledGrammar>> CompiledGrammar::Read(
    std::string_view serialized, std::shared_ptr<const TokenTable> tokens) {
  try {
    std::optional<UnpackedGrammar> read = UnpackGrammar(serialized, tokens->tokens);
    if (!read) return Error(StatusCode::kInternal, "no compiled grammar");
    std::shared_ptr<CompiledGrammar> compiled(new CompiledGrammar);
    compiled->bytes_ = read->bytes;
    compiled->impl_ = std::make_unique<CompiledGrammarImpl>(
        CompiledGrammarImpl{std::move(read->grammar), std::move(tokens), read->space});
    return std::shared_ptr<const CompiledGrammar>(std::move(compiled));
  } catch (const std::exception& e) {
    return Error(StatusCode::kInternal, e.what());
  }
}

int32_t CompiledGrammar::vocab_size() const {
  return impl_->grammar.GetTokenizerInfo().GetVocabSize();
}

const std::vector<TokenId>& CompiledGrammar::stops() const {
  return impl_->grammar.GetTokenizerInfo().GetStopTokenIds();
}

struct Matcher::State {
  State(const CompiledGrammarImpl& impl, int64_t max_work)
      : matcher(impl.grammar, std::nullopt, false, -1, std::nullopt, max_work), space(impl.space) {}
  xgrammar::GrammarMatcher matcher;
  SpaceBound space;
};

Matcher::Matcher(std::shared_ptr<const CompiledGrammar> grammar, int64_t max_work)
    : grammar_(std::move(grammar)), max_work_(max_work) {}
Matcher::~Matcher() = default;

template <typename Call>
bool Matcher::WithState(Call call) {
  if (too_slow_) return false;
  try {
    if (state_ == nullptr) state_ = std::make_unique<State>(grammar_->impl(), max_work_);
    return call(state_.get());
  } catch (const xgrammar::TooMuchWorkError&) {
    state_.reset();  // it was left in the middle of its work
    too_slow_ = true;
    return false;
  } catch (const std::exception&) {
    return false;
  }
}

bool Matcher::FillMask(std::span<uint32_t> mask) {
  if (finished()) return false;
  const bool filled = WithState([&](State* state) {
    MaskTensor tensor(mask);
    if (!state->matcher.FillNextTokenBitmask(tensor.get())) {
      std::fill(mask.begin(), mask.end(), ~uint32_t{0});
    }
    return true;
  });
  if (!filled) return false;
  if (state_->space.reached()) {
    const CompiledGrammarImpl& impl = grammar_->impl();
    const std::vector<uint32_t>& blank = impl.tokens->blank;
    if (impl.space == SpaceRule::kJson ||
        SpaceBound::IsNarrow(CountBeside(blank, mask),
                             static_cast<size_t>(grammar_->vocab_size()))) {
      if (!LeaveOut(blank, mask) && impl.space == SpaceRule::kNarrow) {
        // A tag behind it begins with white space itself: a line end and a space in turn, so that it can come whichever it is.
        const bool line = state_->space.run() % 2 == 1;
        const TokenId first = line ? impl.tokens->line_end : impl.tokens->space;
        const TokenId second = line ? impl.tokens->space : impl.tokens->line_end;
        if (!LeaveOnly(first, mask)) LeaveOnly(second, mask);
      }
    }
  }
  return std::any_of(mask.begin(), mask.end(), [](uint32_t word) { return word != 0; });
}

bool Matcher::Accept(TokenId token) {
  return WithState([&](State* state) {
    if (!state->matcher.AcceptToken(token)) return false;
    const CompiledGrammarImpl& impl = grammar_->impl();
    if (impl.space != SpaceRule::kFree) state->space.Accept(impl.tokens->TextOf(token));
    return true;
  });
}

bool Matcher::finished() const { return state_ != nullptr && state_->matcher.IsTerminated(); }
bool Matcher::complete() {
  return WithState([](State* state) { return state->matcher.IsCompleted(); });
}

}  // namespace portico::grammar
