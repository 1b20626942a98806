#include "api/sglang/tokenize_handlers.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "api/planning.h"
#include "api/reply.h"
#include "api/sglang/tokenize_codec.h"
#include "message/request_media.h"
#include "service/plan/plan.h"

namespace portico::api {
namespace {

// The bytes of an answer are its plan: all work is done where other routes plan.
struct TextApi {
  using Planned = std::string;
  static void Answer(std::unique_ptr<net::Exchange> exchange, ShardContext& shard,
                     std::string body) {
    ReplyJson(*exchange, shard.api, 200, std::move(body));
  }
};

// How many tokens a medium takes is known to its engine only.
Status CheckTextAlone(const ChatRequest& chat) {
  const RequestExtras* extras = chat.options.extras.get();
  if (extras == nullptr || extras->media == nullptr) return OkStatus();
  const MediaItem& item = extras->media->items.front();
  return InvalidArgument(
      "messages", fmt::format("{} is {}: its tokens are not known before it is read", item.place,
                              WordsOf(item.kind).phrase));
}

struct TokenizeApi : TextApi {
  static constexpr bool kListsTexts = true;
  static StatusOr<std::string> Prepare(const std::string& body, simdjson::dom::parser& parser,
                                       const PlanContext& context) {
    PORTICO_ASSIGN_OR_RETURN(auto request, sglang::DecodeTokenize(body, parser));
    PORTICO_ASSIGN_OR_RETURN(const ServingModel* model,
                             context.api.models->FindForRequest(request.model));
    std::vector<std::vector<TokenId>> tokens;
    if (request.is_chat) {
      PORTICO_ASSIGN_OR_RETURN(std::string text, RenderChat(*model, &request.chat, context.gate));
      PORTICO_RETURN_IF_ERROR(CheckTextAlone(request.chat));
      PORTICO_ASSIGN_OR_RETURN(tokens.emplace_back(), EncodeRendered(*model, text, context.gate));
    }
    size_t work = request.prompts.size() * kPromptWork;
    for (const std::string& prompt : request.prompts) work += prompt.size();
    PORTICO_RETURN_IF_ERROR(PassGate(context.gate, work));
    for (const std::string& prompt : request.prompts) {
      PORTICO_RETURN_IF_ERROR(PassGate(context.gate, 0));
      PORTICO_RETURN_IF_ERROR(EncodeText(*model, prompt, request.add_special_tokens, context.gate,
                                         &tokens.emplace_back()));
    }
    return sglang::TokenizeBody(tokens, request.is_list, model->engine->info().context_length,
                                request.return_token_strs ? model->tokenizer.get() : nullptr);
  }
};

struct DetokenizeApi : TextApi {
  static StatusOr<std::string> Prepare(const std::string& body, simdjson::dom::parser& parser,
                                       const PlanContext& context) {
    PORTICO_ASSIGN_OR_RETURN(auto request, sglang::DecodeDetokenize(body, parser));
    PORTICO_ASSIGN_OR_RETURN(const ServingModel* model,
                             context.api.models->FindForRequest(request.model));
    std::vector<std::string> texts;
    PORTICO_RETURN_IF_ERROR(PassGate(context.gate, request.tokens.size() * kPromptWork));
    for (const std::vector<TokenId>& tokens : request.tokens) {
      PORTICO_RETURN_IF_ERROR(PassGate(context.gate, 0));
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
};

}  // namespace

void HandleTokenize(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) {
  HandlePlanned<TokenizeApi>(std::move(exchange), shard);
}

void HandleDetokenize(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) {
  HandlePlanned<DetokenizeApi>(std::move(exchange), shard);
}

}  // namespace portico::api
