#include "api/grpc/native/native_messages.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "api/grpc/wire.h"
#include "base/unix_time.h"
#include "text/json_writer.h"

namespace portico::api::rpc {
namespace {

// Numbers that both responses share. Field 1 is the text or the ids.
constexpr int kAnswer = 1;
constexpr int kMetaInfo = 2;
constexpr int kFinished = 3;
constexpr int kTextBesideIds = 4;

void AppendMeta(std::string_view key, std::string_view json, std::string* out) {
  AppendMapEntry(kMetaInfo, key, json, out);
}

void AppendMeta(std::string_view key, int64_t number, std::string* out) {
  char digits[24];
  AppendMeta(key,
             {digits, static_cast<size_t>(
                          std::to_chars(digits, digits + sizeof digits, number).ptr - digits)},
             out);
}

// `completion_tokens` changes with every message, so it is written by hand: 0x12 LENGTH 0x0a 17 KEY
// 0x12 LENGTH DIGITS.
void AppendCompletionTokens(int32_t count, std::string* out) {
  constexpr std::string_view kKey = "completion_tokens";
  char entry[48] = {kMetaInfo << 3 | 2, 0, 1 << 3 | 2, kKey.size()};
  char* at = std::copy(kKey.begin(), kKey.end(), entry + 4);
  *at++ = 2 << 3 | 2;
  char* const end = std::to_chars(at + 1, entry + sizeof entry, count).ptr;
  *at = static_cast<char>(end - at - 1);
  entry[1] = static_cast<char>(end - entry - 2);
  out->append(entry, static_cast<size_t>(end - entry));
}

// The finish reason of all messages but the last.
const std::string& NoFinishReason() {
  static const std::string entry = [] {
    std::string bytes;
    AppendMeta("finish_reason", "null", &bytes);
    return bytes;
  }();
  return entry;
}

void AppendList(std::string_view key, const std::string& items, std::string* out) {
  AppendMeta(key, "[" + items + "]", out);
}

std::string SecondsText(double seconds) {
  std::string text;
  AppendJsonDouble(seconds, &text);
  return text;
}

}  // namespace

NativeMessages::NativeMessages(const NativePlan& plan, Form form, bool cumulative)
    : form_(form),
      stream_(plan.stream),
      keeps_(cumulative && plan.stream),
      logprobs_(plan.prompts.front().options.logprobs),
      with_top_(plan.prompts.front().options.top_logprobs > 0),
      text_in_logprobs_(plan.return_text_in_logprobs),
      rid_(plan.prompts.front().options.rid),
      arrival_(plan.prompts.front().arrival),
      choices_(static_cast<size_t>(plan.n)),
      running_(choices_.size()) {
  AppendJsonString(plan.weight_version, &weight_version_);
}

NativeMessages::EncodedPrompt NativeMessages::PromptForm::operator()(const PromptEcho& echo) const {
  sglang::LogprobLists logprobs;
  for (const TextPositionLogprobs& position : echo.logprobs) {
    logprobs.Add(position, with_top, with_text);
  }
  EncodedPrompt encoded;
  AppendList("input_token_logprobs", logprobs.tokens, &encoded.tokens);
  AppendList("input_top_logprobs", logprobs.top, &encoded.top);
  return encoded;
}

bool NativeMessages::OnDelta(const TextDelta& delta, std::string* out) {
  Choice& choice = choices_[static_cast<size_t>(delta.index)];
  Gather(delta, &choice);
  const bool ends = delta.finish != FinishReason::kNone;
  if (ends) --running_;
  if (!stream_ && !ends) return false;
  UpdateHead(delta, &choice);
  if (keeps_ && delta.more_at_once) return false;
  AppendMessage(delta, &choice, out);
  choice.started = true;
  if (keeps_) return true;
  choice.text.clear();
  choice.ids.clear();
  if (logprobs_) choice.logprobs = {};
  return true;
}

void NativeMessages::Gather(const TextDelta& delta, Choice* choice) const {
  if (form_ != Form::kIds) choice->text += delta.text;
  if (form_ != Form::kText) {
    for (TokenId id : delta.tokens) AppendVarint(static_cast<uint32_t>(id), &choice->ids);
  }
  for (const TextPositionLogprobs& position : delta.logprobs) {
    choice->logprobs.Add(position, with_top_, text_in_logprobs_);
  }
}

void NativeMessages::AppendMessage(const TextDelta& delta, Choice* choice, std::string* out) {
  const std::string& answer = form_ == Form::kText ? choice->text : choice->ids;
  if (!answer.empty()) AppendBytesField(kAnswer, answer, out);
  const bool ends = delta.finish != FinishReason::kNone;
  out->append(choice->head);
  if (!ends) {
    out->append(NoFinishReason());
  } else {
    std::string reason;
    sglang::AppendFinishReason(delta.finish, delta.matched_stop, delta.usage.completion_tokens,
                               &reason);
    AppendMeta("finish_reason", reason, out);
    AppendMeta("e2e_latency", SecondsText(Seconds(Clock::now() - arrival_)), out);
    std::string versions;
    sglang::AppendWeightVersions(delta.extras.get(), weight_version_, delta.usage.completion_tokens,
                                 &versions);
    AppendMeta("weight_versions", versions, out);
    if (delta.extras != nullptr && delta.extras->speculation) {
      for (const auto& [name, value] :
           sglang::SpeculationMeta(*delta.extras->speculation, delta.usage.completion_tokens)) {
        AppendMeta(name, value, out);
      }
    }
  }
  AppendCompletionTokens(delta.usage.completion_tokens, out);
  if (logprobs_) AppendLogprobs(*choice, keeps_ || !choice->started, out);
  if (!choice->started) AppendMeta("response_sent_to_client_ts", SecondsText(UnixTime()), out);
  if (running_ == 0) AppendVarintField(kFinished, 1, out);
  if (form_ == Form::kIdsAndText && !choice->text.empty()) {
    AppendBytesField(kTextBesideIds, choice->text, out);
  }
}

void NativeMessages::UpdateHead(const TextDelta& delta, Choice* choice) const {
  if (choice->cached == delta.usage.cached_tokens &&
      choice->retractions == delta.usage.retractions && delta.finish == FinishReason::kNone) {
    return;
  }
  std::string& head = choice->head;
  head.clear();
  std::string id;
  AppendJsonString(rid_, &id);
  AppendMeta("id", id, &head);
  AppendMeta("prompt_tokens", delta.usage.prompt_tokens, &head);
  AppendMeta("cached_tokens", delta.usage.cached_tokens, &head);
  std::string details;
  sglang::AppendCachedDetails(delta.extras.get(), &details);
  AppendMeta("cached_tokens_details", details, &head);
  for (const MediaKind kind : kEachMediaKind) {
    const int32_t tokens = delta.usage.Of(kind);
    if (tokens > 0) AppendMeta(std::string(NameOf(kind)) + "_tokens", tokens, &head);
  }
  AppendMeta("reasoning_tokens", std::max(delta.usage.reasoning_tokens, 0), &head);
  AppendMeta("num_retractions", delta.usage.retractions, &head);
  std::string rank;
  sglang::AppendRank(delta.extras.get(), &rank);
  AppendMeta("dp_rank", rank, &head);
  AppendMeta("weight_version", weight_version_, &head);
  if (choices_.size() > 1) AppendMeta("index", delta.index, &head);
  choice->cached = delta.usage.cached_tokens;
  choice->retractions = delta.usage.retractions;
}

void NativeMessages::AppendLogprobs(const Choice& choice, bool with_prompt,
                                    std::string* out) const {
  static const EncodedPrompt kNoPrompt = PromptForm()(PromptEcho());
  const EncodedPrompt& prompt = with_prompt && prompt_reported_ ? prompt_ : kNoPrompt;
  out->append(prompt.tokens);
  AppendList("output_token_logprobs", choice.logprobs.tokens, out);
  AppendMeta("output_token_logprobs_length", choice.logprobs.count, out);
  if (!with_top_) return;
  out->append(prompt.top);
  AppendList("output_top_logprobs", choice.logprobs.top, out);
}

}  // namespace portico::api::rpc
