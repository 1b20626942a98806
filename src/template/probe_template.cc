#include "template/probe_template.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace portico {
namespace {

// All probes of a template together stay within what one request may take.
constexpr uint64_t kProbeSteps = 50'000;
constexpr size_t kProbeOutput = size_t{256} << 10;
constexpr size_t kProbeMemory = size_t{4} << 20;
constexpr int kMostLimitsReached = 3;

// Conversations are spelled by the kinds of their messages, in the order of MessageKind.
constexpr std::string_view kKindLetters = "SDUACTFR";
// What leads to a speaker, in the order of Speaker.
constexpr std::string_view kUpTo[kSpeakers] = {"", "U", "UA", "UC", "UCT"};
constexpr std::string_view kWithoutUser[kSpeakers] = {"", "", "A", "C", "CT"};

constexpr std::string_view kToolName = "zqtool";
constexpr std::string_view kArgument = "zqkey";
constexpr char kSaid[] = "zqsaid";

size_t CountOf(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// What message `at` says, or what its call number `call` is about: a word that the template has not.
std::string WordAt(size_t at, size_t call = 0) {
  return "zq" + std::to_string(at) + static_cast<char>('x' + call);
}

Json TextPart(std::string text) {
  return Json(JsonObject{{"type", "text"}, {"text", std::move(text)}});
}

Json ProbeFunction() {
  const Json property(JsonObject{{"type", "string"}, {"description", "zqabout"}});
  const Json parameters(JsonObject{{"type", "object"},
                                   {"properties", JsonObject{{std::string(kArgument), property}}},
                                   {"required", JsonArray{kArgument}}});
  return Json(
      JsonObject{{"name", kToolName}, {"description", "zqdoes"}, {"parameters", parameters}});
}

// How many results follow message `at`.
size_t ResultsAfter(std::string_view kinds, size_t at) {
  size_t end = at + 1;
  while (end < kinds.size() && (kinds[end] == 'T' || kinds[end] == 'F')) ++end;
  return end - at - 1;
}

class Prober {
 public:
  Prober(const Template& chat_template, const Template::Variables& tokens, bool with_tools)
      : template_(chat_template), tokens_(tokens), with_tools_(with_tools) {}

  TemplateFacts Run() {
    if (with_tools_) FindTools();
    FindTextForm(MessageKind::kUser, "U", 0);
    if (!with_tools_) FindNoTools();
    plain_ = Render("U").value_or("");
    FindParts(MessageKind::kUser, "U", 0);
    FindContent(MessageKind::kAssistant, "UAU", 1);
    FindCalls();
    FindContent(MessageKind::kTool, "UCT", 2);
    FindContent(MessageKind::kSystem, "SU", 0);
    FindContent(MessageKind::kDeveloper, "DU", 0);
    FindContent(MessageKind::kFunction, "UCF", 2);
    FindContent(MessageKind::kReminder, "UARU", 2);
    FindMoreOfCalls();
    FindLeading();
    FindPlaces();
    return facts_;
  }

 private:
  Json CallAt(size_t at, size_t call) const {
    const Json arguments(JsonObject{{std::string(kArgument), WordAt(at, call)}});
    const Json function(
        JsonObject{{"name", kToolName},
                   {"arguments", facts_.arguments_are_text ? Json(arguments.Dump()) : arguments}});
    Json made(JsonObject{{"id", IdOf(at, call)}, {"type", "function"}, {"function", function}});
    if (facts_.calls_are_functions) {
      for (const auto& [name, value] : function.as_object()) made.Set(name, value);
    }
    return made;
  }

  // Nine letters and digits: Mistral's templates want no other.
  static std::string IdOf(size_t at, size_t call) {
    return "zqcall" + std::to_string(at) + std::to_string(call) + "0";
  }

  Json InForm(MessageKind kind, std::string text) const {
    if (!facts_.content[static_cast<size_t>(kind)].text_is_part) return Json(std::move(text));
    return Json(JsonArray{TextPart(std::move(text))});
  }

  Json MessageAt(std::string_view kinds, size_t at, size_t call, size_t result) const {
    const auto kind = static_cast<MessageKind>(kKindLetters.find(kinds[at]));
    JsonObject message = {{"role", RoleOf(kind)}};
    if (kind == MessageKind::kCall) {
      if (facts_.empty_content == EmptyContent::kText) {
        message.emplace_back("content", InForm(MessageKind::kAssistant, ""));
      } else if (facts_.empty_content == EmptyContent::kNull) {
        message.emplace_back("content", Json());
      }
      JsonArray calls = {CallAt(at, 0)};
      for (size_t i = 1; i < ResultsAfter(kinds, at); ++i) calls.push_back(CallAt(at, i));
      message.emplace_back("tool_calls", std::move(calls));
      return Json(std::move(message));
    }
    message.emplace_back("content", InForm(kind, WordAt(at)));
    if (kind == MessageKind::kTool) message.emplace_back("tool_call_id", IdOf(call, result));
    if (kind == MessageKind::kFunction || (kind == MessageKind::kTool && facts_.tool_needs_name)) {
      message.emplace_back("name", kToolName);
    }
    return Json(std::move(message));
  }

  JsonArray Conversation(std::string_view kinds) const {
    JsonArray messages;
    size_t call = 0, result = 0;
    for (size_t at = 0; at < kinds.size(); ++at) {
      if (kinds[at] == 'C') call = at, result = 0;
      messages.push_back(MessageAt(kinds, at, call, kinds[at] == 'T' ? result++ : result));
    }
    return messages;
  }

  StatusOr<std::string> Render(JsonArray conversation) {
    static const Json kNull, kTrue(true);
    if (limits_reached_ == kMostLimitsReached) {
      return Error(StatusCode::kResourceExhausted, "too many limits reached");
    }
    const Json messages(std::move(conversation));
    Template::Variables variables = tokens_;
    variables.emplace_back("messages", &messages);
    variables.emplace_back("tools", with_tools_ || facts_.no_tools_are_a_list ? &tools_ : &kNull);
    variables.emplace_back("documents", &kNull);
    variables.emplace_back("add_generation_prompt", &kTrue);
    RenderOptions options;
    options.max_steps = kProbeSteps;
    options.max_output_bytes = kProbeOutput;
    options.max_memory_bytes = kProbeMemory;
    StatusOr<std::string> text = template_.Render(variables, options);
    if (text.status().code() == StatusCode::kResourceExhausted) ++limits_reached_;
    return text;
  }

  StatusOr<std::string> Render(std::string_view kinds) { return Render(Conversation(kinds)); }

  static Shown Outcome(const StatusOr<std::string>& text,
                       std::initializer_list<std::string_view> words) {
    if (!text.ok()) {
      const bool limit = text.status().code() == StatusCode::kResourceExhausted;
      return limit ? Shown::kUnknown : Shown::kRefused;
    }
    for (std::string_view word : words) {
      if (text->find(word) == std::string::npos) return Shown::kNo;
    }
    return Shown::kYes;
  }

  // Of message `at`.
  Shown OutcomeOf(std::string_view kinds, size_t at) {
    return Outcome(Render(kinds), {WordAt(at)});
  }

  // Whether the text has this more often than what a single question gives.
  bool HasMore(std::string_view text, std::string_view part) const {
    return CountOf(text, part) > CountOf(plain_, part);
  }

  void FindTools() {
    const Json function = ProbeFunction();
    const JsonArray functions = {function};
    tools_ = Json(JsonArray{Json(JsonObject{{"type", "function"}, {"function", function}})});
    facts_.tools = Outcome(Render("U"), {kToolName});
    if (facts_.tools == Shown::kYes) return;
    Json as_tools = std::exchange(tools_, Json(functions));
    const Shown bare = Outcome(Render("U"), {kToolName});
    facts_.tools_are_functions =
        bare == Shown::kYes || (facts_.tools == Shown::kRefused && bare == Shown::kNo);
    if (facts_.tools_are_functions) facts_.tools = bare;
    if (!facts_.tools_are_functions) tools_ = std::move(as_tools);
  }

  // Some go through the tools without asking whether there are any.
  void FindNoTools() {
    if (OutcomeOf("U", 0) != Shown::kRefused) return;
    facts_.no_tools_are_a_list = true;
    FindTextForm(MessageKind::kUser, "U", 0);
    facts_.no_tools_are_a_list = OutcomeOf("U", 0) == Shown::kYes;
  }

  // `kinds`: a conversation in which message `at` is of this kind.
  void FindContent(MessageKind kind, std::string_view kinds, size_t at) {
    FindTextForm(kind, kinds, at);
    FindParts(kind, kinds, at);
  }

  void FindTextForm(MessageKind kind, std::string_view kinds, size_t at) {
    if (OutcomeOf(kinds, at) == Shown::kYes) return;
    ContentForm& form = facts_.content[static_cast<size_t>(kind)];
    form.text_is_part = true;
    form.text_is_part = OutcomeOf(kinds, at) == Shown::kYes;
  }

  void FindParts(MessageKind kind, std::string_view kinds, size_t at) {
    ContentForm& form = facts_.content[static_cast<size_t>(kind)];
    JsonArray messages = Conversation(kinds);
    form.takes_parts = TakesParts(messages, at, WordAt(at));
    if (!form.takes_parts) return;
    const auto with_parts = [&](JsonArray parts) {
      messages[at].Set("content", std::move(parts));
      return Render(messages);
    };
    const StatusOr<std::string> text = with_parts({TextPart(WordAt(at))});
    const auto takes = [&](const std::string& type) {
      const StatusOr<std::string> marked =
          with_parts({Json(JsonObject{{"type", type}}), TextPart(WordAt(at))});
      return Outcome(marked, {WordAt(at)}) == Shown::kYes && text.ok() && *text != *marked &&
             !HasMore(*marked, "'" + type + "'") && !HasMore(*marked, "\"" + type + "\"");
    };
    form.takes_images = takes("image");
    form.takes_videos = takes("video");
    form.takes_audio = takes("audio");
  }

  bool TakesParts(JsonArray messages, size_t at, const std::string& word) {
    messages[at].Set("content", JsonArray{TextPart(word), TextPart(word + "more")});
    const StatusOr<std::string> text = Render(std::move(messages));
    return Outcome(text, {word, word + "more"}) == Shown::kYes && CountOf(*text, word) > 1 &&
           !HasMore(*text, "'text'") && !HasMore(*text, "\"text\"");
  }

  // How an assistant's calls and their results have to be: the first form that shows them best.
  void FindCalls() {
    TemplateFacts best = facts_;
    int best_score = -1;
    for (int form = 0; form < 8; ++form) {
      for (EmptyContent content :
           {EmptyContent::kText, EmptyContent::kNull, EmptyContent::kAbsent}) {
        facts_.arguments_are_text = (form & 1) != 0;
        facts_.tool_needs_name = (form & 2) != 0;
        facts_.calls_are_functions = (form & 4) != 0;
        facts_.empty_content = content;
        const int score = ScoreOfCalls();
        if (score > best_score) {
          best = facts_;
          best_score = score;
        }
        if (score == kBestScore) return;
      }
    }
    facts_ = best;
  }

  static constexpr int kBestScore = 7;
  int ScoreOfCalls() {
    const StatusOr<std::string> text = Render("UCT");
    if (!text.ok()) return 0;
    int score = 1;
    if (Outcome(text, {WordAt(1)}) == Shown::kYes) score += 4;
    if (Outcome(text, {WordAt(2)}) == Shown::kYes) score += 2;
    // Printed as Python's dict, or as JSON in a JSON string.
    for (std::string_view wrong : {"'zqkey'", "\\\"zqkey"}) {
      if (HasMore(*text, wrong)) score -= 3;
    }
    return score;
  }

  void FindMoreOfCalls() {
    facts_.parallel_calls = Outcome(Render("UCTT"), {WordAt(1, 0), WordAt(1, 1)});
    ContentForm& caller = facts_.content[static_cast<size_t>(MessageKind::kCall)];
    caller = facts_.content[static_cast<size_t>(MessageKind::kAssistant)];
    for (const bool again : {false, true}) {
      for (const bool answered : {false, true}) {
        TextWithCalls* found = &facts_.text_with_calls[again][answered];
        FindTextWithCalls(again ? "UCT" : "U", answered ? "TAU" : "T", found);
      }
    }
    JsonArray messages = Conversation("UCT");
    const Json arguments(JsonObject{{std::string(kArgument), WordAt(1)}});
    JsonObject call = {{"name", kToolName}, {"arguments", arguments.Dump()}};
    messages[1] = MessageAt("UAU", 1, 0, 0);
    messages[1].Set("content", InForm(MessageKind::kAssistant, ""));
    messages[1].Set("function_call", std::move(call));
    messages[2] = MessageAt("UCF", 2, 1, 0);
    facts_.function_call = Outcome(Render(std::move(messages)), {WordAt(1)});
  }

  void FindTextWithCalls(const std::string& start, std::string_view end, TextWithCalls* found) {
    const size_t at = start.size();
    JsonArray messages = Conversation((start + 'C').append(end));
    messages[at].Set("content", InForm(MessageKind::kAssistant, kSaid));
    const Shown together = Outcome(Render(messages), {kSaid, WordAt(at), WordAt(at + 1)});
    if (together == Shown::kYes) {
      ContentForm& form = facts_.content[static_cast<size_t>(MessageKind::kCall)];
      form.takes_parts = form.takes_parts && TakesParts(std::move(messages), at, kSaid);
      form.takes_images = form.takes_videos = form.takes_audio = false;
      return;
    }
    const auto apart = Render((start + "AC").append(end));
    if (Outcome(apart, {WordAt(at), WordAt(at + 1), WordAt(at + 2)}) == Shown::kYes) {
      *found = TextWithCalls::kApart;
    } else if (together == Shown::kNo) {
      *found = TextWithCalls::kNever;
    }
  }

  void FindLeading() {
    for (size_t first = 0; first < 2; ++first) {
      const std::string leading(1, kKindLetters[first]);
      for (size_t last = 0; last < kSpeakers; ++last) {
        facts_.leading[first][last] = OutcomeOf(leading + std::string(kUpTo[last]), 0);
        facts_.leading_without_user[first][last] =
            OutcomeOf(leading + std::string(kWithoutUser[last]), 0);
      }
      for (size_t second = 0; second < 2; ++second) {
        const std::string kinds = {kKindLetters[first], kKindLetters[second], 'U'};
        facts_.leading_pairs[first][second] = Outcome(Render(kinds), {WordAt(0), WordAt(1)});
      }
    }
  }

  // What may follow a message, so that the conversation is an ordinary one otherwise; the likeliest first.
  static std::vector<std::string> Rests(MessageKind kind, Speaker before, bool user_follows) {
    const bool result = kind == MessageKind::kTool || kind == MessageKind::kFunction;
    const bool call = kind == MessageKind::kCall || (before == Speaker::kCall && !result);
    if (call && !user_follows) return {"T", "", "A"};
    if (call) return {"TAU", "TU", "AU", "U"};
    if (!user_follows) return {""};
    const bool assistant_is_next =
        result || kind == MessageKind::kUser ||
        (kind != MessageKind::kAssistant && (before == Speaker::kUser || before == Speaker::kTool));
    if (assistant_is_next) return {"AU", "U"};
    return {"U", "AU"};
  }

  // The first of them that the template does not refuse.
  StatusOr<std::string> RenderPlace(const std::string& kinds, MessageKind kind, Speaker before,
                                    bool user_follows) {
    StatusOr<std::string> text = Error(StatusCode::kInternal, "");
    for (const std::string& rest : Rests(kind, before, user_follows)) {
      text = Render(kinds + rest);
      if (text.ok()) break;
    }
    return text;
  }

  void FindPlaces() {
    constexpr auto kUser = static_cast<size_t>(Speaker::kUser);
    const char earlier = facts_.leading[0][kUser] == Shown::kYes ? 'S' : 'D';
    for (size_t k = 0; k < kMessageKinds; ++k) {
      const auto kind = static_cast<MessageKind>(k);
      const bool instructs = kind == MessageKind::kSystem || kind == MessageKind::kDeveloper;
      for (size_t b = instructs ? kUser : 0; b < kSpeakers; ++b) {
        const auto before = static_cast<Speaker>(b);
        const std::string kinds = std::string(kUpTo[b]) + kKindLetters[k];
        const size_t at = kUpTo[b].size();
        for (const bool follows : {false, true}) {
          Shown* const place = facts_.places[k][b][follows];
          place[0] = Outcome(RenderPlace(kinds, kind, before, follows), {WordAt(at)});
          if (!instructs) continue;
          const auto text = RenderPlace(earlier + kinds, kind, before, follows);
          place[1] = Outcome(text, {WordAt(at + 1)});
          if (place[1] == Shown::kYes && Outcome(text, {WordAt(0)}) == Shown::kNo) {
            place[1] = Shown::kHidesAnother;
          }
        }
      }
    }
  }

  const Template& template_;
  const Template::Variables& tokens_;
  const bool with_tools_;
  Json tools_{JsonArray{}};
  TemplateFacts facts_;
  std::string plain_;  // what a single question gives
  int limits_reached_ = 0;
};

}  // namespace

TemplateFacts ProbeTemplate(const Template& chat_template, const Template::Variables& tokens,
                            bool with_tools) {
  return Prober(chat_template, tokens, with_tools).Run();
}

}  // namespace portico
