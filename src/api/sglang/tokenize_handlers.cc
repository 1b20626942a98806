#include "api/sglang/tokenize_handlers.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "api/reply.h"
#include "api/sglang/tokenize_codec.h"
#include "service/plan.h"

namespace portico::api {
namespace {

StatusOr<std::string> Tokenize(const net::HttpRequest& http, ShardContext& shard) {
  PORTICO_ASSIGN_OR_RETURN(auto request, sglang::DecodeTokenize(http.body, shard.parser));
  PORTICO_ASSIGN_OR_RETURN(const ServingModel* model, shard.api.models->Find(request.model));
  std::vector<std::vector<TokenId>> tokens;
  if (request.is_chat) {
    PORTICO_ASSIGN_OR_RETURN(std::string text, RenderChat(*model, request.chat));
    PORTICO_ASSIGN_OR_RETURN(tokens.emplace_back(), EncodeRendered(*model, text));
  }
  for (const std::string& prompt : request.prompts) {
    PORTICO_RETURN_IF_ERROR(
        model->tokenizer->TryEncode(prompt, request.add_special_tokens, &tokens.emplace_back()));
  }
  return sglang::TokenizeBody(tokens, request.is_list, model->engine->info().context_length);
}

StatusOr<std::string> Detokenize(const net::HttpRequest& http, ShardContext& shard) {
  PORTICO_ASSIGN_OR_RETURN(auto request, sglang::DecodeDetokenize(http.body, shard.parser));
  PORTICO_ASSIGN_OR_RETURN(const ServingModel* model, shard.api.models->Find(request.model));
  std::vector<std::string> texts;
  for (const std::vector<TokenId>& tokens : request.tokens) {
    for (TokenId id : tokens) {
      if (id < model->tokenizer->vocab_size()) continue;
      return InvalidArgument("tokens",
                             fmt::format("tokens: id {} is not in the vocabulary (0 to {})", id,
                                         model->tokenizer->vocab_size() - 1));
    }
    texts.push_back(model->tokenizer->Decode(tokens, request.skip_special_tokens));
  }
  return sglang::DetokenizeBody(texts, request.is_list);
}

void Reply(net::Exchange& exchange, const ApiContext& api, StatusOr<std::string> body) {
  if (!body.ok()) return ReplyError(exchange, api, body.status());
  ReplyJson(exchange, api, 200, *std::move(body));
}

}  // namespace

void HandleTokenize(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) {
  if (!TakesJson(*exchange, shard.api)) return;
  Reply(*exchange, shard.api, Tokenize(exchange->request, shard));
}

void HandleDetokenize(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) {
  if (!TakesJson(*exchange, shard.api)) return;
  Reply(*exchange, shard.api, Detokenize(exchange->request, shard));
}

}  // namespace portico::api
