#include "app/text/render_tokens.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "base/stable_sort.h"

namespace portico {
namespace {

// Private-use characters around a marked token.
constexpr std::string_view kStart = "\xF3\xB0\x80\x80";
constexpr std::string_view kEnd = "\xF3\xB0\x80\x81";

struct TextOptions {
  bool truncate = false;
  bool pad = false;
  bool split_special = false;
  int64_t max_length = -1;
};

StatusOr<TextOptions> ReadOptions(const Json* kwargs) {
  TextOptions options;
  bool pad_to_max = false;
  if (kwargs == nullptr || kwargs->is_null()) return options;
  if (!kwargs->is_object()) return InvalidArgument("tokenizer_kwargs", "must be an object");
  for (const auto& [name, value] : kwargs->as_object()) {
    if (name == "truncation" && value.is_bool()) {
      options.truncate = value.as_bool();
    } else if (name == "max_length" && value.is_int()) {
      options.max_length = value.as_int();
    } else if (name == "padding") {
      pad_to_max = value.is_string() && value.as_string() == "max_length";
      options.pad = value.is_string() || (value.is_bool() && value.as_bool());
    } else if (name == "split_special_tokens" && value.is_bool()) {
      options.split_special = value.as_bool();
    } else {
      return InvalidArgument("tokenizer_kwargs", "cannot use \"" + name + "\" here");
    }
  }
  if (options.truncate && options.max_length < 0) options.truncate = false;
  if (options.pad && !pad_to_max && !options.truncate) options.max_length = -1;
  return options;
}

// The first token that covers the character, or -1.
int64_t TokenOfCharacter(std::span<const Span> offsets, size_t character) {
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i].begin <= character && character < offsets[i].end) {
      return static_cast<int64_t>(i);
    }
  }
  return -1;
}

std::vector<int> AssistantMask(std::span<const Span> offsets,
                               const std::vector<std::pair<size_t, size_t>>& spans) {
  const size_t count = offsets.size();
  std::vector<int> mask(count, 0);
  for (auto [from, to] : spans) {
    int64_t start = TokenOfCharacter(offsets, from);
    if (start < 0) break;
    int64_t end = to == 0 ? -1 : TokenOfCharacter(offsets, to - 1);
    // An end that no token covers, or the very first token, means the rest of the text.
    size_t stop = end > 0 ? static_cast<size_t>(end) + 1 : count;
    for (size_t i = static_cast<size_t>(start); i < stop; ++i) mask[i] = 1;
  }
  return mask;
}

}  // namespace

StatusOr<RenderedTokens> TokenizeRendered(const Tokenizer& tokenizer, const TokenizerConfig& config,
                                          const std::string& text, const Json* kwargs,
                                          const std::vector<std::pair<size_t, size_t>>* spans) {
  PORTICO_ASSIGN_OR_RETURN(TextOptions options, ReadOptions(kwargs));
  std::optional<TokenId> pad;
  if (options.pad) {
    if (!config.pad_token.empty()) pad = tokenizer.TokenToId(config.pad_token);
    if (!pad.has_value()) {
      return InvalidArgument("tokenizer_kwargs",
                             "Asking to pad but the tokenizer does not have a padding token");
    }
  }
  Tokenizer::EncodeOptions encode;
  encode.add_special_tokens = false;
  encode.parse_special = !options.split_special;
  RenderedTokens out;
  std::vector<Span> offsets;
  if (spans != nullptr) {
    PORTICO_RETURN_IF_ERROR(
        tokenizer.EncodeOffsets(text, encode, OffsetUnit::kCodePoints, &out.ids, &offsets));
  } else {
    PORTICO_RETURN_IF_ERROR(tokenizer.EncodeWith(text, encode, &out.ids));
  }
  const size_t limit = static_cast<size_t>(std::max<int64_t>(0, options.max_length));
  if (options.truncate && out.ids.size() > limit) out.ids.resize(limit);
  if (spans != nullptr) {
    out.assistant_mask =
        AssistantMask(std::span<const Span>(offsets).first(out.ids.size()), *spans);
  }
  if (options.pad && options.max_length >= 0) {
    while (out.ids.size() < limit) out.ids.push_back(*pad);
    if (spans != nullptr) out.assistant_mask.resize(out.ids.size(), 0);
  }
  return out;
}

ControlTokens::ControlTokens(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.IsSpecial(id)) tokens_.emplace_back(tokenizer.IdToToken(id));
  }
  StableSort(&tokens_,
             [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

std::string_view ControlTokens::TokenAt(std::string_view text, size_t at) const {
  for (const std::string& token : tokens_) {
    if (!token.empty() && text.substr(at, token.size()) == token) return token;
  }
  return {};
}

std::string ControlTokens::MarkText(const std::string& text) const {
  std::string clean;
  for (size_t i = 0; i < text.size();) {
    std::string_view rest = std::string_view(text).substr(i);
    if (rest.starts_with(kStart) || rest.starts_with(kEnd)) {
      i += kStart.size();  // forged marks
    } else {
      clean.push_back(text[i++]);
    }
  }
  std::string marked;
  for (size_t i = 0; i < clean.size();) {
    std::string_view token = TokenAt(clean, i);
    if (token.empty()) {
      marked.push_back(clean[i++]);
    } else {
      marked.append(kStart).append(token).append(kEnd);
      i += token.size();
    }
  }
  return marked;
}

void ControlTokens::Mark(Json* value) const {
  if (value->is_string()) {
    *value = Json(MarkText(value->as_string()));
  } else if (value->is_array()) {
    for (Json& item : value->as_array()) Mark(&item);
  } else if (value->is_object()) {
    for (auto& member : value->as_object()) Mark(&member.second);
  }
}

Status ControlTokens::EncodePiece(std::string_view piece, bool as_text, bool first,
                                  std::vector<TokenId>* ids) const {
  Tokenizer::EncodeOptions options;
  options.add_special_tokens = false;
  options.parse_special = !as_text;
  if (first) return tokenizer_.EncodeWith(piece, options, ids);
  // Behind a newline, so that nothing is put in front as at the start of a text.
  Tokenizer::EncodeOptions plain;
  plain.add_special_tokens = false;
  std::vector<TokenId> newline, all;
  PORTICO_RETURN_IF_ERROR(tokenizer_.EncodeWith("\n", plain, &newline));
  PORTICO_RETURN_IF_ERROR(tokenizer_.EncodeWith("\n" + std::string(piece), options, &all));
  if (all.size() < newline.size() || !std::equal(newline.begin(), newline.end(), all.begin())) {
    return tokenizer_.EncodeWith(piece, options, ids);
  }
  ids->insert(ids->end(), all.begin() + static_cast<ptrdiff_t>(newline.size()), all.end());
  return OkStatus();
}

StatusOr<std::vector<TokenId>> ControlTokens::EncodeMarked(const std::string& text) const {
  std::vector<TokenId> ids;
  std::string_view rest = text;
  bool first = true;
  auto flush = [&](std::string_view piece, bool as_text) -> Status {
    if (!piece.empty()) PORTICO_RETURN_IF_ERROR(EncodePiece(piece, as_text, first, &ids));
    first = false;
    return OkStatus();
  };
  while (true) {
    size_t at = std::min(rest.find(kStart), rest.find(kEnd));
    PORTICO_RETURN_IF_ERROR(flush(rest.substr(0, at), false));
    if (at == std::string_view::npos) return ids;
    const bool opens = rest.substr(at).starts_with(kStart);
    rest.remove_prefix(at + kStart.size());
    if (!opens) continue;
    std::string_view token = TokenAt(rest, 0);
    if (token.empty() || !rest.substr(token.size()).starts_with(kEnd)) continue;
    PORTICO_RETURN_IF_ERROR(flush(token, true));
    rest.remove_prefix(token.size() + kEnd.size());
  }
}

}  // namespace portico
