#include "service/rendered_pairs.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "service/plan.h"
#include "template/pair_template.h"
#include "text/json.h"

namespace portico {
namespace {

Json Message(const char* role, const std::string& content) {
  return Json(JsonObject{{"role", role}, {"content", content}});
}

// The instruction comes last: SGLang's templates take the query and the document by their places.
StatusOr<std::string> Render(const ServingModel& model, const RerankRequest& request,
                             const std::string& document) {
  if (!model.plain_pair_template.empty()) {
    return FillPlainPairTemplate(model.plain_pair_template, request.query, document);
  }
  JsonArray messages = {Message("query", request.query), Message("document", document)};
  JsonObject variables;
  if (!request.instruction.empty()) {
    messages.push_back(Message("system", request.instruction));
    variables = {{"instruct", request.instruction}};
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
                                                                const RerankRequest& request) {
  if (request.truncate) {
    return InvalidArgument("truncate_prompt_tokens",
                           "truncate_prompt_tokens would cut this model's template: leave it out");
  }
  if (!model.plain_pair_template.empty() && !request.instruction.empty()) {
    return InvalidArgument(
        "instruct",
        "this model's template has an instruction of its own and takes no other; "
        "--chat-template names another template");
  }
  std::vector<std::vector<TokenId>> pairs(request.documents.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    const std::string place = fmt::format("documents[{}]", i);
    if (request.documents[i].empty()) {
      return InvalidArgument("documents", place + " must not be empty");
    }
    PORTICO_ASSIGN_OR_RETURN(const std::string text, Render(model, request, request.documents[i]));
    model.tokenizer->Encode(text, /*add_special_tokens=*/false, &pairs[i]);
    PORTICO_RETURN_IF_ERROR(CheckIds(pairs[i], model.engine->info().vocab_size, place));
  }
  return pairs;
}

}  // namespace portico
