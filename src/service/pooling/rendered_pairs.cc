#include "service/pooling/rendered_pairs.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "service/plan/plan.h"
#include "template/pair_template.h"
#include "text/json.h"

namespace portico {
namespace {

Json Message(const char* role, std::string_view content) {
  return Json(JsonObject{{"role", role}, {"content", std::string(content)}});
}

// The instruction comes last: SGLang's templates take the query and the document by their places.
StatusOr<std::string> Render(const ServingModel& model, const TextPairs& texts,
                             std::string_view item) {
  if (!model.plain_pair_template.empty()) {
    return FillPlainPairTemplate(model.plain_pair_template, texts.query, item);
  }
  JsonArray messages;
  messages.reserve(3);
  messages.push_back(Message("query", texts.query));
  messages.push_back(Message("document", item));
  JsonObject variables;
  if (!texts.instruction.empty()) {
    messages.push_back(Message("system", texts.instruction));
    variables = {{"instruct", std::string(texts.instruction)}};
  }
  const Json pair(std::move(messages)), kwargs(std::move(variables));
  ChatTemplate::Request render;
  render.messages = &pair;
  render.kwargs = &kwargs;
  StatusOr<std::string> text = model.chat_template->Render(render);
  if (text.ok()) return text;
  return InvalidArgument("query", std::string(MessageOf(text.status())));
}

}  // namespace

StatusOr<std::vector<std::vector<TokenId>>> EncodeRenderedPairs(const ServingModel& model,
                                                                const TextPairs& texts) {
  if (texts.truncate) {
    return InvalidArgument("truncate_prompt_tokens",
                           "truncate_prompt_tokens would cut this model's template: leave it out");
  }
  if (!model.plain_pair_template.empty() && !texts.instruction.empty()) {
    return InvalidArgument(
        "instruct",
        "this model's template has an instruction of its own and takes no other; "
        "--chat-template names another template");
  }
  const size_t shared =
      texts.query.size() + texts.instruction.size() + kPromptWork + 3 * kMessageWork;
  size_t work = texts.items.size() * shared;
  for (const std::string_view item : texts.items) work += item.size();
  PORTICO_RETURN_IF_ERROR(PassGate(texts.gate, work));
  std::vector<std::vector<TokenId>> pairs(texts.items.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    PORTICO_RETURN_IF_ERROR(PassGate(texts.gate, 0));
    const std::string place = fmt::format("{}[{}]", texts.item_field, i);
    if (texts.items[i].empty()) {
      return InvalidArgument(texts.item_field, place + " must not be empty");
    }
    PORTICO_ASSIGN_OR_RETURN(const std::string text, Render(model, texts, texts.items[i]));
    const Status status = model.tokenizer->TryEncode(text, /*add_special_tokens=*/false, &pairs[i]);
    if (!status.ok()) return InvalidArgument(place, std::string(MessageOf(status)));
    PORTICO_RETURN_IF_ERROR(CheckIds(pairs[i], model.engine->info().vocab_size, place));
  }
  return pairs;
}

}  // namespace portico
