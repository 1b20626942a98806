#include "service/generation/spelled_logprobs.h"

#include "text/utf8.h"

namespace portico {
namespace {

TextLogprob SpellToken(TokenId token, const ViewDecoder* before) {
  TextLogprob spelled;
  spelled.token = token;
  if (before == nullptr) return spelled;
  spelled.bytes = before->TokenBytes(token);
  spelled.text = SpellBytes(spelled.bytes);
  return spelled;
}

TextLogprob SpellLogprob(const TokenLogprob& from, const ViewDecoder* before) {
  TextLogprob spelled = SpellToken(from.token, before);
  spelled.logprob = from.logprob;
  return spelled;
}

}  // namespace

std::string SpellBytes(std::string_view bytes) {
  if (IsValidUtf8(bytes)) return std::string(bytes);
  constexpr char kHexDigits[] = "0123456789abcdef";
  std::string text = "bytes:";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F && c != '\\') {
      text.push_back(c);
    } else {
      text.append("\\x");
      text.push_back(kHexDigits[byte >> 4]);
      text.push_back(kHexDigits[byte & 15]);
    }
  }
  return text;
}

TextPositionLogprobs SpellPosition(const PositionLogprobs& position, const ViewDecoder* before) {
  TextPositionLogprobs out;
  out.chosen = SpellLogprob(position.chosen, before);
  out.top.reserve(position.top.size());
  for (const TokenLogprob& candidate : position.top) {
    out.top.push_back(SpellLogprob(candidate, before));
  }
  out.of_ids.reserve(position.of_ids.size());
  for (const TokenLogprob& asked : position.of_ids) {
    out.of_ids.push_back(SpellLogprob(asked, before));
  }
  return out;
}

std::vector<TextPositionLogprobs> SpellPrompt(const PromptLogprobs& prompt,
                                              const Tokenizer& tokenizer) {
  ViewDecoder before(tokenizer, prompt.skip_special_tokens || !prompt.decoded);
  if (prompt.spells) before.Continue(prompt.tokens.first(prompt.start));
  std::vector<TextPositionLogprobs> out;
  std::string text;
  const auto add = [&](TextPositionLogprobs position) {
    if (prompt.spells) {
      const TokenId token = position.chosen.token;
      position.hidden = prompt.decoded && before.Hides(token);
      before.Push(token, &text);
      text.clear();
    }
    out.push_back(std::move(position));
  };
  TextPositionLogprobs first;
  first.chosen = SpellToken(prompt.tokens[prompt.start], prompt.spells ? &before : nullptr);
  add(std::move(first));
  for (size_t i = prompt.start > 0 ? 1 : 0; i < prompt.from_engine.size(); ++i) {
    add(SpellPosition(prompt.from_engine[i], prompt.spells ? &before : nullptr));
  }
  return out;
}

}  // namespace portico
