// Bodies of POST /tokenize and /detokenize (also under /v1), as SGLang has them.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "message/text_request.h"
#include "tokenizer/tokenizer.h"

namespace portico::api::sglang {

// `prompt` (a text or a list of texts) or `messages`, never both. With messages the body is a chat's: every field means what
// it means there, or is refused as there (api/openai/chat/decode_chat.h).
struct TokenizeRequest {
  std::string model;  // as asked for; empty: the default model
  std::vector<std::string> prompts;
  bool is_list = false;  // `prompt` was a list: so is the reply
  bool is_chat = false;  // `chat` is to be rendered; there are no prompts
  ChatRequest chat;
  bool add_special_tokens = true;
  bool return_token_strs = false;  // vLLM's: the reply has the tokens' texts too
};

struct DetokenizeRequest {
  std::string model;
  std::vector<std::vector<TokenId>>
      tokens;            // ids >= 0; the caller checks the vocabulary (field "tokens")
  bool is_list = false;  // a list of lists: so is the reply
  bool skip_special_tokens = true;
};

// Errors, `parser` and `body` as in api/openai/chat/decode_chat.h.
StatusOr<TokenizeRequest> DecodeTokenize(const std::string& body, simdjson::dom::parser& parser);
StatusOr<DetokenizeRequest> DecodeDetokenize(const std::string& body,
                                             simdjson::dom::parser& parser);

// {"tokens","count","max_model_len"}; lists of them for a list of prompts. With `spelled_by`, which has the tokens, also
// "token_strs": each as the vocabulary has it ("\u0120the"), as vLLM answers.
std::string TokenizeBody(const std::vector<std::vector<TokenId>>& tokens, bool is_list,
                         int64_t max_model_len, const Tokenizer* spelled_by = nullptr);
// {"text"}
std::string DetokenizeBody(const std::vector<std::string>& texts, bool is_list);

}  // namespace portico::api::sglang
