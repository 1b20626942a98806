// POST /chat/completions, streamed.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "pipeline/chat_json.h"
#include "service/stage_sampling.h"
#include "service/upstream/http_work.h"

namespace portico {
namespace {

using pipeline::FinishPart;
using pipeline::HeardPart;
using pipeline::Part;
using pipeline::TextPart;
using pipeline::ToolCallPart;

class ThinkWork final : public HttpWork {
 public:
  using HttpWork::HttpWork;

 private:
  void OnHead(const net::ResponseHead& head) override {
    if (!head.Header("content-type").starts_with("text/event-stream")) Fail("sent no events");
  }

  void OnBytes(std::string_view bytes) override {
    const bool fits = lines_.Feed(bytes, [this](std::string_view data) { OnEvent(data); });
    if (!fits) Fail("sent an event that is too long");
  }

  void OnEvent(std::string_view data) {
    if (data == "[DONE]" || failed_) return;
    auto event = Json::Parse(data);
    if (!event.ok() || !event->is_object()) return Fail("sent data that is not an event");
    if (const Json* error = event->Find("error"); error != nullptr && !error->is_null()) {
      return Fail("failed");
    }
    if (const Json* usage = event->Find("usage"); usage != nullptr && usage->is_object()) {
      finish_.prompt_tokens = usage->GetInt("prompt_tokens", 0);
      finish_.completion_tokens = usage->GetInt("completion_tokens", 0);
    }
    const Json* choices = event->Find("choices");
    if (choices == nullptr || !choices->is_array() || choices->as_array().empty()) return;
    const Json& choice = choices->as_array().front();
    if (std::string reason = choice.GetString("finish_reason"); !reason.empty()) {
      finish_.reason = std::move(reason);
    }
    const Json* delta = choice.Find("delta");
    if (delta == nullptr) return;
    if (std::string text = delta->GetString("content"); !text.empty()) {
      output_->Emit(TextPart{std::move(text)});
    }
    const Json* calls = delta->Find("tool_calls");
    if (calls == nullptr || !calls->is_array()) return;
    for (const Json& call : calls->as_array()) {
      ToolCallPart part;
      part.index = static_cast<int32_t>(call.GetInt("index", 0));
      part.id = call.GetString("id");
      if (const Json* function = call.Find("function")) {
        part.name = function->GetString("name");
        part.arguments = function->GetString("arguments");
      }
      output_->Emit(std::move(part));
    }
  }

  void OnCallEnd(Status status) override {
    if (status.ok() && finish_.reason.empty()) return Fail("broke off");
    if (status.ok()) output_->Emit(finish_);
    output_->End(std::move(status));
  }

  void Fail(std::string_view what) {
    if (std::exchange(failed_, true)) return;
    FailCall(Error(StatusCode::kUnavailable, fmt::format("the pipeline's thinker {}", what), {},
                   "upstream_failed"));
  }

  EventLines lines_;
  FinishPart finish_;
  bool failed_ = false;
};

// A client may have sent arguments as objects; the wire has them as text.
void WriteArguments(Json* messages) {
  if (!messages->is_array()) return;
  for (Json& message : messages->as_array()) {
    Json* calls = message.Find("tool_calls");
    if (calls == nullptr || !calls->is_array()) continue;
    for (Json& call : calls->as_array()) {
      Json* function = call.Find("function");
      Json* arguments = function == nullptr ? nullptr : function->Find("arguments");
      if (arguments != nullptr && !arguments->is_string()) *arguments = Json(arguments->Dump());
    }
  }
}

std::string Body(const HttpStageOptions& options, const ChatRequest& chat, Json messages) {
  WriteArguments(&messages);
  Json body = pipeline::SamplingJson(chat.options);
  if (!options.model.empty()) body.Set("model", options.model);
  body.Set("messages", std::move(messages));
  body.Set("stream", true);
  body.Set("stream_options", Json(JsonObject{{"include_usage", true}}));
  if (!chat.chat_template_kwargs.is_null()) {
    body.Set("chat_template_kwargs", chat.chat_template_kwargs);
  }
  if (!chat.tools.is_null()) {
    body.Set("tools", chat.tools);
    body.Set("tool_choice", pipeline::ToolChoiceJson(chat.tool_choice));
    if (!chat.parallel_tool_calls) body.Set("parallel_tool_calls", false);
  }
  return body.Dump();
}

class Thinker final : public HttpRun<ThinkWork> {
 public:
  Thinker(const HttpStageOptions& options, std::shared_ptr<const pipeline::Request> request,
          std::shared_ptr<pipeline::StageOutput> output, std::shared_ptr<ThinkWork> work)
      : HttpRun(std::move(work)),
        options_(options),
        request_(std::move(request)),
        output_(std::move(output)) {}

  Status OnPart(Part part, std::string_view) override {
    const auto* heard = std::get_if<HeardPart>(&part);
    return heard == nullptr ? OkStatus() : AddHeard(*heard, *request_, &heard_);
  }

  void OnInputEnd() override {
    Json messages = request_->chat->messages;
    if (Status status = PutHeard(heard_, *request_, &messages); !status.ok()) {
      return output_->End(std::move(status));
    }
    ChatRequest chat = *request_->chat;
    SetStageSampling(*request_, options_.stage, &chat.options);
    UpstreamRequest call;
    call.path = "/chat/completions";
    call.body = Body(options_, chat, std::move(messages));
    work_->Post(std::move(call));
  }

 private:
  const HttpStageOptions& options_;
  const std::shared_ptr<const pipeline::Request> request_;
  const std::shared_ptr<pipeline::StageOutput> output_;
  std::map<std::string, std::string> heard_;  // by mark
};

}  // namespace

std::unique_ptr<pipeline::StageRun> NewHttpThinker(const HttpStageOptions& options,
                                                   std::shared_ptr<UpstreamPlace> place,
                                                   std::shared_ptr<const pipeline::Request> request,
                                                   std::shared_ptr<pipeline::StageOutput> output) {
  auto work = std::make_shared<ThinkWork>(options, std::move(place), output);
  return std::make_unique<Thinker>(options, std::move(request), std::move(output), std::move(work));
}

}  // namespace portico
