#include "api/sglang/tokenize_codec.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "api/common/delta_parts.h"
#include "api/common/field_reader.h"
#include "api/openai/chat/decode_chat.h"
#include "text/json_writer.h"

namespace portico::api::sglang {
namespace {

Status ReadPrompt(std::string_view name, Element value, TokenizeRequest* request) {
  std::string_view text;
  if (!value.get(text)) {
    request->prompts.emplace_back(text);
    return OkStatus();
  }
  simdjson::dom::array items;
  if (value.get(items)) return WrongValue(name, "a string or a list of strings", value);
  if (items.size() == 0) return InvalidArgument(name, "prompt must not be an empty list");
  request->is_list = true;
  for (Element item : items) {
    if (item.get(text)) {
      return WrongValueAt(name, fmt::format("prompt[{}]", request->prompts.size()), "a string",
                          item);
    }
    request->prompts.emplace_back(text);
  }
  return OkStatus();
}

// The whole body is read as a chat's then.
Status NoteMessages(std::string_view, Element, TokenizeRequest* request) {
  request->is_chat = true;
  return OkStatus();
}

constexpr FieldReader<TokenizeRequest> kTokenize[] = {
    {"add_special_tokens", ReadFlag<TokenizeRequest, &TokenizeRequest::add_special_tokens>},
    {"messages", NoteMessages},
    {"model", ReadText<TokenizeRequest, &TokenizeRequest::model>},
    {"prompt", ReadPrompt},
    {"return_token_strs", ReadFlag<TokenizeRequest, &TokenizeRequest::return_token_strs>},
};
static_assert(IsSortedByName(kTokenize));

Status ReadIds(Element list, const std::string& place, std::vector<TokenId>* ids) {
  simdjson::dom::array items(list);
  ids->reserve(items.size());
  for (Element item : items) {
    PORTICO_RETURN_IF_ERROR(ReadTokenId("tokens", place, item, &ids->emplace_back()));
  }
  return OkStatus();
}

Status ReadTokens(std::string_view name, Element value, DetokenizeRequest* request) {
  simdjson::dom::array items;
  if (value.get(items)) {
    return WrongValue(name, "a list of token ids or a list of lists of them", value);
  }
  request->is_list = items.size() > 0 && (*items.begin()).is_array();
  if (!request->is_list) {
    return ReadIds(value, "each of tokens", &request->tokens.emplace_back());
  }
  for (Element item : items) {
    const std::string place = fmt::format("tokens[{}]", request->tokens.size());
    if (!item.is_array()) return WrongValueAt(name, place, "a list of token ids", item);
    PORTICO_RETURN_IF_ERROR(ReadIds(item, "each of " + place, &request->tokens.emplace_back()));
  }
  return OkStatus();
}

constexpr FieldReader<DetokenizeRequest> kDetokenize[] = {
    {"model", ReadText<DetokenizeRequest, &DetokenizeRequest::model>},
    {"skip_special_tokens", ReadFlag<DetokenizeRequest, &DetokenizeRequest::skip_special_tokens>},
    {"tokens", ReadTokens},
};
static_assert(IsSortedByName(kDetokenize));

// As the vocabulary has them.
void AppendTokenTexts(const std::vector<TokenId>& tokens, const Tokenizer& tokenizer,
                      std::string* out) {
  out->push_back('[');
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) out->push_back(',');
    AppendJsonString(tokenizer.IdToToken(tokens[i]), out);
  }
  out->push_back(']');
}

// Other names are nobody's here.
Status Ignore(std::string_view, Element) { return OkStatus(); }

}  // namespace

StatusOr<TokenizeRequest> DecodeTokenize(const std::string& body, simdjson::dom::parser& parser) {
  TokenizeRequest request;
  PORTICO_RETURN_IF_ERROR(ReadBody(body, parser, kTokenize, &request, Ignore));
  if (request.is_chat == !request.prompts.empty()) {
    return InvalidArgument("prompt", request.is_chat ? "give either prompt or messages, not both"
                                                     : "prompt or messages is required");
  }
  if (request.is_chat) {
    PORTICO_ASSIGN_OR_RETURN(request.chat, openai::DecodeChatWithMedia(body, parser, nullptr));
  }
  return request;
}

StatusOr<DetokenizeRequest> DecodeDetokenize(const std::string& body,
                                             simdjson::dom::parser& parser) {
  DetokenizeRequest request;
  PORTICO_RETURN_IF_ERROR(ReadBody(body, parser, kDetokenize, &request, Ignore));
  if (request.tokens.empty()) return InvalidArgument("tokens", "tokens is required");
  return request;
}

std::string TokenizeBody(const std::vector<std::vector<TokenId>>& tokens, bool is_list,
                         int64_t max_model_len, const Tokenizer* spelled_by) {
  std::string body = is_list ? "{\"tokens\":[" : "{\"tokens\":";
  std::string counts = is_list ? "[" : "";
  std::string texts = is_list ? "[" : "";
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) {
      body.push_back(',');
      counts.push_back(',');
      texts.push_back(',');
    }
    AppendTokenIds(tokens[i], &body);
    AppendJsonInt(static_cast<int64_t>(tokens[i].size()), &counts);
    if (spelled_by != nullptr) AppendTokenTexts(tokens[i], *spelled_by, &texts);
  }
  if (is_list) {
    body.push_back(']');
    counts.push_back(']');
    texts.push_back(']');
  }
  body.append(",\"count\":");
  body.append(counts);
  body.append(",\"max_model_len\":");
  AppendJsonInt(max_model_len, &body);
  if (spelled_by != nullptr) body.append(",\"token_strs\":").append(texts);
  body.push_back('}');
  return body;
}

std::string DetokenizeBody(const std::vector<std::string>& texts, bool is_list) {
  std::string body = is_list ? "{\"text\":[" : "{\"text\":";
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) body.push_back(',');
    AppendJsonString(texts[i], &body);
  }
  body.append(is_list ? "]}" : "}");
  return body;
}

}  // namespace portico::api::sglang
