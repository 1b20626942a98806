// What follows from the facts of a template (template_facts.h), in this order:
//
//   fact                                        what follows
//   a developer's message is not shown          it is rendered as the system's
//   one of several leading system or developer  they become one, joined by an empty line
//     messages is left out or refused
//   the leading one is left out                 it goes before the first user message, with an empty line between
//   a list of texts is printed as a list,       the texts, joined with a space, as SGLang joins them; always where a tool
//     left out or refused                         or function reports
//   a text is shown only in a part              a list of one part
//   an image is left out                        400
//   an assistant's calls without text           the content that shows them: "", null or none
//   an assistant's text is left out beside      two messages where that shows both, else 400
//     its calls, or they are
//   arguments are shown rightly as an object    JSON text is read
//   arguments are shown rightly as text         an object is written as JSON
//   a call is read without its "function"       its members are also beside it
//   a tool's message needs the tool's name      that of the call with its id
//   only one of several calls is shown          400
//   tools are shown as bare functions           their functions; an empty list where a template wants one
//   a message, or for it an earlier one, is     400
//     left out at its place
#include "template/fit_conversation.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace portico {
namespace {

using Kind = MessageKind;

// Known to be no good.
bool IsMissing(Shown shown) { return shown != Shown::kYes && shown != Shown::kUnknown; }

std::string PlaceOf(size_t index) { return "messages[" + std::to_string(index) + "]"; }

Status LeftOut(const std::string& place, std::string_view role, std::string_view why) {
  std::string text = place + " (" + std::string(role) + "): this model's chat template would ";
  return InvalidArgument("messages", text.append(why));
}

Json ContentOf(std::string text, const ContentForm& form) {
  if (!form.text_is_part) return Json(std::move(text));
  return Json(JsonArray{Json(JsonObject{{"type", "text"}, {"text", std::move(text)}})});
}

class Fitting {
 public:
  Fitting(const TemplateFacts& facts, JsonArray* messages) : facts_(facts), messages_(*messages) {}

  Status Run() {
    Look();
    PORTICO_RETURN_IF_ERROR(PlanLeading());
    Speaker before = Speaker::kNobody;
    for (size_t i = leading_; i < messages_.size(); ++i) {
      Kind kind = KindOfMessage(messages_[i]);
      if (Instructs(kind)) {
        PORTICO_RETURN_IF_ERROR(FitLater(i, before, &kind));
      } else if (IsLeftOut(i, kind, before)) {
        return Missing(i, kind);
      }
      PORTICO_RETURN_IF_ERROR(FitContent(i, kind, before));
      if (kind == Kind::kCall) PORTICO_RETURN_IF_ERROR(FitCalls(i));
      if (kind == Kind::kTool) FitResult(i);
      before = SpeakerAfter(kind, before);
    }
    SplitCalls();
    return FitLeading();
  }

 private:
  const ContentForm& FormOf(Kind kind) const { return facts_.content[static_cast<size_t>(kind)]; }

  Shown Place(Kind kind, Speaker before, bool user_follows, bool system_before) const {
    return facts_.places[static_cast<size_t>(kind)][static_cast<size_t>(before)][user_follows]
                        [system_before];
  }

  Shown Leading(Kind kind) const {
    const auto k = static_cast<size_t>(kind);
    const auto last = static_cast<size_t>(last_);
    return last_user_ == kNone ? facts_.leading_without_user[k][last] : facts_.leading[k][last];
  }

  bool IsLeftOut(size_t at, Kind kind, Speaker before) const {
    const bool has_old_call = kind == Kind::kCall && messages_[at].Find("tool_calls") == nullptr;
    if (has_old_call) return facts_.function_call == Shown::kNo;
    if (Place(kind, before, UserFollows(at), false) == Shown::kNo) return true;
    if (kind != Kind::kTool || at == 0) return false;
    // A result that another message separates from its call may be taken for one without.
    const Kind previous = KindOfMessage(messages_[at - 1]);
    return (Instructs(previous) || previous == Kind::kReminder || previous == Kind::kFunction) &&
           Place(kind, Speaker::kUser, UserFollows(at), false) == Shown::kNo;
  }

  bool UserFollows(size_t at) const { return last_user_ != kNone && at < last_user_; }

  Status Missing(size_t at, Kind kind) const {
    if (kind == Kind::kCall && messages_[at].Find("tool_calls") != nullptr) {
      return LeftOut(PlaceOf(at) + ".tool_calls", RoleOf(kind), "leave them out");
    }
    const char* member = kind == Kind::kCall ? ".function_call" : "";
    return LeftOut(PlaceOf(at) + member, RoleOf(kind), "leave it out here");
  }

  void Look() {
    while (leading_ < messages_.size() && Instructs(KindOfMessage(messages_[leading_]))) ++leading_;
    for (size_t i = messages_.size(); i > leading_; --i) {
      const Kind kind = KindOfMessage(messages_[i - 1]);
      if (last_ == Speaker::kNobody) last_ = SpeakerAfter(kind, last_);
      if (kind == Kind::kUser && last_user_ == kNone) last_user_ = i - 1;
      if (kind == Kind::kAssistant && last_answer_ == kNone) last_answer_ = i - 1;
      if (last_user_ != kNone && last_answer_ != kNone) break;
    }
  }

  // Of a leading message: the role that shows it.
  Kind LeadingKind(size_t at) const {
    const Kind kind = KindOfMessage(messages_[at]);
    return kind == Kind::kDeveloper && IsMissing(Leading(kind)) ? Kind::kSystem : kind;
  }

  // What becomes of the leading messages of system and developer.
  Status PlanLeading() {
    if (leading_ == 0) return OkStatus();
    leading_kind_ = LeadingKind(0);
    bool same = true;
    for (size_t i = 1; i < leading_; ++i) {
      const auto first = static_cast<size_t>(LeadingKind(i - 1));
      const auto second = static_cast<size_t>(LeadingKind(i));
      joins_leading_ = joins_leading_ || IsMissing(facts_.leading_pairs[first][second]);
      same = same && first == second;
    }
    if (!same) {
      leading_kind_ = IsMissing(Leading(Kind::kSystem)) ? Kind::kDeveloper : Kind::kSystem;
    }
    moves_leading_ = Leading(leading_kind_) == Shown::kNo;
    if (moves_leading_ && last_user_ == kNone) return Missing(0, KindOfMessage(messages_[0]));
    if (moves_leading_) return OkStatus();
    instructed_ = leading_ - 1;
    instructed_kind_ = KindOfMessage(messages_[leading_ - 1]);
    return OkStatus();
  }

  // After everything else: it moves messages.
  Status FitLeading() {
    if (!joins_leading_ && !moves_leading_) {
      for (size_t i = 0; i < leading_; ++i) {
        const Kind kind = LeadingKind(i);
        if (kind != KindOfMessage(messages_[i])) messages_[i].Set("role", RoleOf(kind));
        PORTICO_RETURN_IF_ERROR(FitContent(i, kind, Speaker::kNobody));
      }
      return OkStatus();
    }
    std::string text;
    for (size_t i = 0; i < leading_; ++i) {
      if (const Json* part = MediumIn(messages_[i], ContentForm())) return NoPlace(i, part);
      if (i > 0) text += "\n\n";
      if (const Json* content = messages_[i].Find("content")) text += TextOfContent(*content);
    }
    const std::ptrdiff_t kept = moves_leading_ ? 0 : 1;
    messages_.erase(messages_.begin() + kept,
                    messages_.begin() + static_cast<std::ptrdiff_t>(leading_));
    if (moves_leading_) {
      PutBeforeFirstUser(text.append("\n\n"));
    } else {
      messages_[0].Set("role", RoleOf(leading_kind_));
      messages_[0].Set("content", ContentOf(std::move(text), FormOf(leading_kind_)));
    }
    return OkStatus();
  }

  void PutBeforeFirstUser(const std::string& text) {
    const auto user = std::find_if(messages_.begin(), messages_.end(), [](const Json& message) {
      return KindOfMessage(message) == Kind::kUser;
    });
    Json* content = user->Find("content");
    if (content->is_array()) {
      JsonArray& parts = content->as_array();
      auto first = std::find_if(parts.begin(), parts.end(), IsTextPart);
      if (first == parts.end()) {
        first = parts.insert(parts.begin(), Json(JsonObject{{"type", "text"}, {"text", Json("")}}));
      }
      content = first->Find("text");
    }
    content->as_string().insert(0, text);
  }

  Status FitLater(size_t at, Speaker before, Kind* kind) {
    const bool follows = UserFollows(at);
    const bool system_before = instructed_ != kNone;
    if (before == Speaker::kNobody) before = Speaker::kUser;
    const Kind sent = *kind;
    Shown shown = Place(sent, before, follows, system_before);
    if (sent == Kind::kDeveloper && IsMissing(shown)) {
      *kind = Kind::kSystem;
      shown = Place(*kind, before, follows, system_before);
      messages_[at].Set("role", "system");
    }
    if (shown == Shown::kNo) return Missing(at, sent);
    if (shown == Shown::kHidesAnother) {
      return LeftOut(PlaceOf(instructed_), RoleOf(instructed_kind_),
                     "leave it out because of " + PlaceOf(at) + ", another one");
    }
    instructed_ = at;
    instructed_kind_ = sent;
    return OkStatus();
  }

  static bool Takes(const ContentForm& form, std::string_view type) {
    return type == "image"   ? form.takes_images
           : type == "video" ? form.takes_videos
                             : type == "audio" && form.takes_audio;
  }

  // The first of another kind than text and those that the form takes.
  static const Json* MediumIn(const Json& message, const ContentForm& form) {
    const Json* content = message.Find("content");
    if (content == nullptr || !content->is_array()) return nullptr;
    for (const Json& part : content->as_array()) {
      if (!IsTextPart(part) && !Takes(form, part.GetString("type"))) return &part;
    }
    return nullptr;
  }

  Status NoPlace(size_t at, const Json* part) const {
    const Json& message = messages_[at];
    const auto index = part - message.Find("content")->as_array().data();
    const std::string type = part->GetString("type");
    std::string text = PlaceOf(at) + ".content[" + std::to_string(index) + "] is ";
    text += type == "audio" ? "audio" : type == "video" ? "a video" : "an image";
    text += ", but this model's chat template has no place for ";
    text += type == "audio" ? "it" : "one";
    text += " in a message of the role ";
    return InvalidArgument("messages", text.append(message.GetString("role")));
  }

  Status FitContent(size_t at, Kind kind, Speaker before) {
    Json* content = messages_[at].Find("content");
    if (content == nullptr) return OkStatus();
    const ContentForm& form = FormOf(kind);
    if (content->is_string()) {
      if (form.text_is_part) *content = ContentOf(std::move(content->as_string()), form);
      return OkStatus();
    }
    if (!content->is_array()) return OkStatus();
    const bool reports = kind == Kind::kTool || kind == Kind::kFunction || kind == Kind::kReminder;
    // Some templates take the first message for the user's, whoever speaks.
    const bool is_taken_for_users = kind == Kind::kAssistant && before == Speaker::kNobody;
    const bool keeps_list = form.takes_parts && !reports && !is_taken_for_users;
    const ContentForm texts;
    if (const Json* part = MediumIn(messages_[at], keeps_list ? form : texts)) {
      return NoPlace(at, part);
    }
    if (!keeps_list) *content = ContentOf(TextOfContent(*content), form);
    return OkStatus();
  }

  Status FitCalls(size_t at) {
    Json& message = messages_[at];
    Json* calls = message.Find("tool_calls");
    if (calls == nullptr) {
      const Json* content = message.Find("content");
      if (content == nullptr || content->is_null()) {
        message.Set("content", ContentOf("", FormOf(Kind::kAssistant)));
      }
      return OkStatus();
    }
    const bool again = caller_ != kNone;
    const bool answered = last_answer_ != kNone && at < last_answer_;
    caller_ = at;
    if (calls->as_array().size() > 1 && facts_.parallel_calls == Shown::kNo) {
      return LeftOut(PlaceOf(at) + ".tool_calls", "assistant", "leave out all but one");
    }
    for (Json& call : calls->as_array()) FitCall(&call);
    const Json* content = message.Find("content");
    if (content == nullptr || TextOfContent(*content).empty()) {
      message.Set("content", NoContent());
      return OkStatus();
    }
    const TextWithCalls shown = facts_.text_with_calls[again][answered];
    if (shown == TextWithCalls::kNever) {
      return LeftOut(PlaceOf(at), "assistant", "leave out its content or its tool_calls");
    }
    if (shown == TextWithCalls::kApart) apart_.push_back(at);
    return OkStatus();
  }

  Json NoContent() const {
    if (facts_.empty_content != EmptyContent::kText) return Json();
    return ContentOf("", FormOf(Kind::kAssistant));
  }

  void FitCall(Json* call) const {
    Json* function = call->Find("function");
    if (function == nullptr) return;
    FitArguments(function);
    if (!facts_.calls_are_functions) return;
    const JsonObject members = function->as_object();
    for (const auto& [name, value] : members) call->Set(name, value);
  }

  void FitArguments(Json* function) const {
    const Json none = facts_.arguments_are_text ? Json("{}") : Json(JsonObject{});
    Json* arguments = function->Find("arguments");
    if (arguments == nullptr) return function->Set("arguments", none);
    const bool is_text = arguments->is_string();
    if (is_text && arguments->as_string().find_first_not_of(" \t\r\n") == std::string::npos) {
      *arguments = none;
    } else if (facts_.arguments_are_text && !is_text) {
      *arguments = Json(arguments->Dump());
    } else if (!facts_.arguments_are_text && is_text) {
      // Text that is no object stays as it was sent, as in SGLang.
      StatusOr<Json> parsed = Json::Parse(arguments->as_string());
      if (parsed.ok() && parsed->is_object()) *arguments = *std::move(parsed);
    }
  }

  // A result may lack the call's id, as SGLang and vLLM let it, and templates that show it would show "None".
  void FitResult(size_t at) {
    if (caller_ == kNone) return;
    Json& result = messages_[at];
    const std::string id = result.GetString("tool_call_id");
    const JsonArray& calls = messages_[caller_].Find("tool_calls")->as_array();
    const auto call = std::find_if(calls.begin(), calls.end(), [&](const Json& one) {
      return calls.size() == 1 || one.GetString("id") == id;
    });
    if (call == calls.end()) return;
    const std::string own = call->GetString("id");
    if (calls.size() == 1 && id.empty() && !own.empty()) result.Set("tool_call_id", own);
    const Json* function = call->Find("function");
    if (!facts_.tool_needs_name || result.Find("name") != nullptr || function == nullptr) return;
    result.Set("name", function->GetString("name"));
  }

  // The text, and what was thought before it, become a message before the calls'.
  void SplitCalls() {
    if (apart_.empty()) return;
    JsonArray split;
    split.reserve(messages_.size() + apart_.size());
    auto next = apart_.begin();
    for (size_t i = 0; i < messages_.size(); ++i) {
      Json& message = messages_[i];
      if (next != apart_.end() && *next == i) {
        ++next;
        Json text = message;
        std::erase_if(text.as_object(), [](const auto& m) { return m.first == "tool_calls"; });
        split.push_back(std::move(text));
        std::erase_if(message.as_object(), [](const auto& m) {
          return m.first == "reasoning_content" || m.first == "reasoning" || m.first == "thinking";
        });
        message.Set("content", NoContent());
      }
      split.push_back(std::move(message));
    }
    messages_ = std::move(split);
  }

  static constexpr size_t kNone = static_cast<size_t>(-1);

  const TemplateFacts& facts_;
  JsonArray& messages_;
  size_t leading_ = 0;          // messages of system and developer at the beginning
  size_t last_user_ = kNone;    // the last message of a user
  size_t last_answer_ = kNone;  // the last message of the assistant without calls
  Speaker last_ = Speaker::kNobody;
  Kind leading_kind_ = Kind::kSystem;
  bool joins_leading_ = false;
  bool moves_leading_ = false;  // before the first user message
  size_t instructed_ = kNone;   // the last message of system or developer that stays one
  Kind instructed_kind_ = Kind::kSystem;
  size_t caller_ = kNone;      // the last message with calls
  std::vector<size_t> apart_;  // messages whose calls go into one of their own
};

}  // namespace

Status FitConversation(const TemplateFacts& facts, Json* messages) {
  return Fitting(facts, &messages->as_array()).Run();
}

void FitRequest(const TemplateFacts& facts, Json* tools, ChatTemplate::Request* request) {
  request->keep_null_content = facts.empty_content == EmptyContent::kNull;
  request->no_tools_are_a_list = facts.no_tools_are_a_list;
  request->tools = tools->is_array() ? tools : nullptr;
  if (request->tools == nullptr || !facts.tools_are_functions) return;
  for (Json& tool : tools->as_array()) {
    if (Json* function = tool.Find("function")) tool = Json(std::move(*function));
  }
}

bool MovesSystem(const TemplateFacts& facts) {
  return std::any_of(std::begin(facts.leading[0]) + static_cast<size_t>(Speaker::kUser),
                     std::end(facts.leading[0]), [](Shown shown) { return shown == Shown::kNo; });
}

}  // namespace portico
