// Log-probabilities as clients see them: with the text that each token adds where it stands.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "message/generate.h"
#include "message/text_delta.h"
#include "tokenizer/decode/view_decoder.h"
#include "tokenizer/tokenizer.h"

namespace portico {

// The bytes of a token as a text: themselves where they are UTF-8, else as OpenAI spells them: `bytes:`, the visible
// characters of ASCII, and `\xf0` for any other byte.
std::string SpellBytes(std::string_view bytes);

// `before`: the stream up to this position; null: ids and numbers only.
TextPositionLogprobs SpellPosition(const PositionLogprobs& position, const ViewDecoder* before);

struct PromptLogprobs {
  std::span<const TokenId> tokens = {};  // the whole prompt
  size_t start = 0;                      // below their number: the first token of the result
  std::span<const PositionLogprobs> from_engine = {};  // from max(start, 1) on, or fewer
  bool spells = true;                                  // else ids and numbers only
  // The prompt's text is what its tokens say; else the client wrote it, special tokens too, and nothing is hidden.
  bool decoded = false;
  bool skip_special_tokens = true;  // with `decoded`
};
// The first has no log-probability, as with SGLang.
std::vector<TextPositionLogprobs> SpellPrompt(const PromptLogprobs& prompt,
                                              const Tokenizer& tokenizer);

}  // namespace portico
