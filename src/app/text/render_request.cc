#include "app/text/render_request.h"

#include <optional>
#include <utility>
#include <vector>

#include "app/text/render_tokens.h"
#include "text/json_writer.h"

namespace portico {
namespace {

using Spans = std::vector<std::pair<size_t, size_t>>;

bool Flag(const Json& request, std::string_view name) {
  const Json* value = request.Find(name);
  return value != nullptr && value->is_bool() && value->as_bool();
}

// The variables of "context" below those of "chat_template_kwargs".
Json MergedContext(const Json& request) {
  Json merged{JsonObject{}};
  for (std::string_view name : {"context", "chat_template_kwargs"}) {
    const Json* part = request.Find(name);
    if (part == nullptr || !part->is_object()) continue;
    for (const auto& [key, value] : part->as_object()) merged.Set(key, value);
  }
  return merged;
}

struct Answer {
  std::string text;
  std::optional<Spans> spans;
  std::optional<RenderedTokens> tokens;
};

StatusOr<Answer> RenderSource(const Json& request) {
  PORTICO_ASSIGN_OR_RETURN(auto parsed, Template::Parse(request.GetString("template")));
  const Json* context = request.Find("context");
  const Json none{JsonObject{}};
  Answer answer;
  PORTICO_ASSIGN_OR_RETURN(answer.text, parsed->Render(context != nullptr ? *context : none));
  return answer;
}

StatusOr<Answer> RenderRaw(const Template& source, const Json& request) {
  static const Json kNull;
  const Json merged = MergedContext(request);
  Template::Variables variables;
  for (std::string_view name : {"tools", "documents"}) variables.emplace_back(name, &kNull);
  for (std::string_view name : {"messages", "tools", "documents", "add_generation_prompt"}) {
    if (const Json* value = request.Find(name)) variables.emplace_back(name, value);
  }
  for (const auto& [name, value] : merged.as_object()) variables.emplace_back(name, &value);
  Answer answer;
  Spans spans;
  RenderOptions options;
  options.generation_spans = &spans;
  PORTICO_ASSIGN_OR_RETURN(answer.text, source.Render(variables, options));
  if (!spans.empty()) answer.spans = std::move(spans);
  return answer;
}

// The parts of a request that ChatTemplate wants, and what they point to.
struct ChatParts {
  Json messages, tools, documents, kwargs;
  ChatTemplate::Request request;

  void Fill(const Json& from) {
    auto take = [&](std::string_view name) {
      const Json* value = from.Find(name);
      return value != nullptr ? *value : Json();
    };
    messages = take("messages");
    tools = take("tools");
    documents = take("documents");
    kwargs = MergedContext(from);
    request.messages = &messages;
    request.tools = &tools;
    request.documents = &documents;
    request.kwargs = &kwargs;
    request.add_generation_prompt = Flag(from, "add_generation_prompt");
    request.chat_template = from.GetString("chat_template");
    if (const Json* field = from.Find("continue_final_message")) {
      request.continue_final_message = Flag(from, "continue_final_message") || field->is_string();
      if (field->is_string()) request.continue_field = field->as_string();
    }
  }
};

StatusOr<RenderedTokens> Sanitized(const RenderSetup& setup, const Json& from) {
  ControlTokens control(*setup.tokenizer);
  ChatParts parts;
  parts.Fill(from);
  for (Json* part : {&parts.messages, &parts.tools, &parts.documents, &parts.kwargs}) {
    control.Mark(part);
  }
  PORTICO_ASSIGN_OR_RETURN(std::string text, setup.chat->Render(parts.request));
  RenderedTokens tokens;
  PORTICO_ASSIGN_OR_RETURN(tokens.ids, control.EncodeMarked(text));
  return tokens;
}

StatusOr<Answer> RenderChat(const RenderSetup& setup, const Json& from) {
  ChatParts parts;
  parts.Fill(from);
  const bool tokenize = Flag(from, "tokenize");
  const bool mask = Flag(from, "return_assistant_tokens_mask");
  const bool sanitize = Flag(from, "sanitize_control_tokens");
  if (tokenize && setup.tokenizer == nullptr) {
    return InvalidArgument("tokenize", "tokenize needs --tokenizer-path");
  }
  if (mask && !tokenize) {
    return InvalidArgument("return_assistant_tokens_mask", "an assistant mask needs tokenize");
  }
  if (sanitize && (!tokenize || mask)) {
    return InvalidArgument("sanitize_control_tokens",
                           "sanitize_control_tokens needs tokenize and no assistant mask");
  }
  Answer answer;
  Spans spans;
  if (mask) parts.request.options.generation_spans = &spans;
  PORTICO_ASSIGN_OR_RETURN(answer.text, setup.chat->Render(parts.request));
  if (sanitize) {
    PORTICO_ASSIGN_OR_RETURN(answer.tokens, Sanitized(setup, from));
  } else if (tokenize) {
    PORTICO_ASSIGN_OR_RETURN(
        answer.tokens, TokenizeRendered(*setup.tokenizer, setup.config, answer.text,
                                        from.Find("tokenizer_kwargs"), mask ? &spans : nullptr));
  }
  return answer;
}

StatusOr<Answer> Render(const RenderSetup& setup, const Json& request) {
  if (setup.from_request) return RenderSource(request);
  if (setup.raw != nullptr) return RenderRaw(*setup.raw, request);
  return RenderChat(setup, request);
}

void WriteAnswer(const Answer& answer, JsonWriter* writer) {
  writer->Key("text").String(answer.text);
  if (answer.spans.has_value()) {
    writer->Key("generation_spans").BeginArray();
    for (auto [from, to] : *answer.spans) {
      writer->BeginArray().Int(static_cast<int64_t>(from)).Int(static_cast<int64_t>(to)).EndArray();
    }
    writer->EndArray();
  }
  if (!answer.tokens.has_value()) return;
  writer->Key("ids").BeginArray();
  for (TokenId id : answer.tokens->ids) writer->Int(id);
  writer->EndArray();
  if (answer.tokens->assistant_mask.empty()) return;
  writer->Key("assistant_masks").BeginArray();
  for (int bit : answer.tokens->assistant_mask) writer->Int(bit);
  writer->EndArray();
}

}  // namespace

std::string AnswerRenderLine(const RenderSetup& setup, std::string_view line) {
  std::string out;
  JsonWriter writer(&out);
  writer.BeginObject();
  auto fail = [&](const Status& status) {
    std::string_view message = MessageOf(status);
    writer.Key("error").String(message.empty() ? "failed" : message).EndObject();
    return out;
  };
  auto request = Json::Parse(line);
  if (!request.ok()) return fail(request.status());
  if (const Json* id = request->Find("id")) writer.Key("id").Raw(id->Dump());
  auto answer = Render(setup, *request);
  if (!answer.ok()) return fail(answer.status());
  WriteAnswer(*answer, &writer);
  writer.EndObject();
  return out;
}

StatusOr<std::string> RenderConversation(const RenderSetup& setup, const Json& conversation,
                                         bool add_generation_prompt) {
  Json request = conversation;
  if (conversation.is_array()) request = Json(JsonObject{{"messages", conversation}});
  if (!request.is_object()) {
    return InvalidArgument("messages", "a conversation is a list of messages, or an object");
  }
  if (request.Find("add_generation_prompt") == nullptr) {
    request.Set("add_generation_prompt",
                Json(add_generation_prompt && request.Find("continue_final_message") == nullptr));
  }
  PORTICO_ASSIGN_OR_RETURN(Answer answer, Render(setup, request));
  return answer.text;
}

}  // namespace portico
