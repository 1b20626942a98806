#include "api/sglang/generate_answer.h"

#include <algorithm>
#include <span>
#include <utility>

#include "text/json_writer.h"

namespace portico::api::sglang {
namespace {

void AppendList(std::string_view name, const std::string& items, std::string* out) {
  out->append(name);
  out->push_back('[');
  out->append(items);
  out->push_back(']');
}

void AppendIds(std::span<const TokenId> ids, std::string* out) {
  for (TokenId id : ids) {
    if (!out->empty()) out->push_back(',');
    AppendJsonInt(id, out);
  }
}

void AppendNumbers(const std::vector<float>& row, std::string* out) {
  for (size_t i = 0; i < row.size(); ++i) {
    if (i > 0) out->push_back(',');
    AppendJsonDouble(static_cast<double>(row[i]), out);
  }
}

void AppendRow(const std::vector<float>& row, std::string* out) {
  out->push_back('[');
  AppendNumbers(row, out);
  out->push_back(']');
}

// The items of the list.
void AppendHiddenStates(const DeltaExtras& extras, bool only_last, std::string* out) {
  if (only_last) return AppendNumbers(extras.hidden_states.back().rows.back(), out);
  for (const DeltaExtras::HiddenStates& states : extras.hidden_states) {
    if (!out->empty()) out->push_back(',');
    if (!states.is_prompt) {
      for (const std::vector<float>& row : states.rows) AppendRow(row, out);
      continue;
    }
    out->push_back('[');
    for (const std::vector<float>& row : states.rows) {
      if (&row != &states.rows.front()) out->push_back(',');
      AppendRow(row, out);
    }
    out->push_back(']');
  }
}

}  // namespace

GenerateAnswer::GenerateAnswer(const NativePlan& plan, bool cumulative)
    : answers_(plan.answers()),
      is_list_(plan.is_list),
      stream_(plan.stream),
      cumulative_(cumulative || !plan.stream),
      text_in_logprobs_(plan.return_text_in_logprobs),
      arrival_(plan.prompts.front().arrival) {
  AppendJsonString(plan.weight_version, &weight_version_);
  for (const GenerationPlan& from : plan.prompts) {
    Prompt prompt;
    prompt.rid = from.options.rid;
    prompt.logprobs = from.options.logprobs;
    prompt.with_top = from.options.top_logprobs > 0;
    prompt.with_ids = from.logprob_ids != nullptr;
    if (from.extras != nullptr) {
      prompt.with_hidden_states = from.extras->return_hidden_states;
      prompt.only_last_hidden_state = from.extras->only_last_hidden_state;
    }
    prompt.stream_interval = from.stream_interval;
    prompt.with_prompt_ids = from.options.return_token_ids;
    prompt.max_new_tokens = from.prompts.front().max_new_tokens;
    prompts_.push_back(std::move(prompt));
  }
  for (size_t i = 0; i < answers_.size(); ++i) answers_[i].prompt = i % prompts_.size();
}

GenerateAnswer::EncodedPrompt GenerateAnswer::PromptForm::operator()(const PromptEcho& echo) const {
  EncodedPrompt encoded;
  if (with_ids_of_prompt) AppendIds(echo.tokens, &encoded.ids);
  encoded.reported = !echo.logprobs.empty();
  for (const TextPositionLogprobs& position : echo.logprobs) {
    encoded.logprobs.Add(position, with_top, with_text, with_ids);
  }
  return encoded;
}

GenerateAnswer::PromptForm GenerateAnswer::prompt_form(size_t prompt) const {
  const Prompt& of = prompts_[prompt];
  return {of.with_prompt_ids, of.with_top, text_in_logprobs_, of.with_ids};
}

void GenerateAnswer::TakePrompt(size_t prompt, EncodedPrompt encoded) {
  prompts_[prompt].encoded = std::move(encoded);
}

size_t GenerateAnswer::OnDelta(size_t prompt, TextDelta& delta) {
  const size_t index = static_cast<size_t>(delta.index) * prompts_.size() + prompt;
  Answer& answer = answers_[index];
  const Prompt& from = prompts_[prompt];
  answer.text += delta.text;
  AppendIds(delta.tokens, &answer.ids);
  answer.unsent_tokens += static_cast<int32_t>(delta.tokens.size());
  for (const TextPositionLogprobs& position : delta.logprobs) {
    answer.output.Add(position, from.with_top, text_in_logprobs_, from.with_ids);
  }
  if (delta.extras != nullptr) {
    if (from.with_hidden_states && !delta.extras->hidden_states.empty()) {
      answer.hidden_states.clear();
      AppendHiddenStates(*delta.extras, from.only_last_hidden_state, &answer.hidden_states);
    }
    answer.extras = std::move(delta.extras);
  }
  answer.usage = delta.usage;
  answer.finish = delta.finish;
  answer.more_at_once = delta.more_at_once;
  if (delta.finish != FinishReason::kNone) answer.stop = delta.matched_stop;
  return index;
}

bool GenerateAnswer::IsDue(size_t answer) const {
  const Answer& of = answers_[answer];
  if (cumulative_ && of.more_at_once) return false;
  return !of.prompt_sent || of.finish != FinishReason::kNone ||
         of.unsent_tokens >= prompts_[of.prompt].stream_interval;
}

void GenerateAnswer::AppendEvent(size_t answer, std::string* out) {
  out->append("data: ");
  AppendAnswer(answer, out);
  out->append("\n\n");
}

size_t GenerateAnswer::LogprobBytes() const {
  size_t bytes = 0;
  for (const Answer& answer : answers_) {
    bytes += answer.output.bytes() + prompts_[answer.prompt].encoded.logprobs.bytes();
  }
  return bytes;
}

std::string GenerateAnswer::Body() {
  std::string body;
  if (!is_list_) {
    AppendAnswer(0, &body);
    return body;
  }
  for (size_t i = 0; i < answers_.size(); ++i) {
    body.push_back(i == 0 ? '[' : ',');
    AppendAnswer(i, &body);
  }
  body.push_back(']');
  return body;
}

void GenerateAnswer::AppendAnswer(size_t index, std::string* out) {
  Answer& answer = answers_[index];
  out->append("{\"text\":");
  AppendJsonString(answer.text, out);
  AppendList(",\"output_ids\":", answer.ids, out);
  out->append(",\"meta_info\":");
  AppendMeta(answer, out);
  const Prompt& prompt = prompts_[answer.prompt];
  if (prompt.with_prompt_ids && (cumulative_ || !answer.prompt_sent)) {
    AppendList(",\"prompt_token_ids\":", prompt.encoded.ids, out);
  }
  if (is_list_ && stream_) {
    out->append(",\"index\":");
    AppendJsonInt(static_cast<int64_t>(index), out);
  }
  out->push_back('}');
  answer.prompt_sent = true;
  answer.unsent_tokens = 0;
  if (cumulative_) return;
  answer.text.clear();
  answer.ids.clear();
  answer.output = {};
}

void GenerateAnswer::AppendMeta(Answer& answer, std::string* out) {
  const Prompt& prompt = prompts_[answer.prompt];
  out->append("{\"id\":");
  AppendJsonString(prompt.rid, out);
  out->append(",\"finish_reason\":");
  AppendFinishReason(answer.finish, answer.stop, answer.usage.completion_tokens, out);
  out->append(",\"prompt_tokens\":");
  AppendJsonInt(answer.usage.prompt_tokens, out);
  out->append(",\"weight_version\":").append(weight_version_);
  if (prompt.logprobs) AppendLogprobs(answer, out);
  out->append(",\"completion_tokens\":");
  AppendJsonInt(answer.usage.completion_tokens, out);
  out->append(",\"cached_tokens\":");
  AppendJsonInt(answer.usage.cached_tokens, out);
  const DeltaExtras* extras = answer.extras.get();
  out->append(",\"cached_tokens_details\":");
  AppendCachedDetails(extras, out);
  AppendMediaTokens(answer.usage, out);
  out->append(",\"reasoning_tokens\":");
  AppendJsonInt(std::max(answer.usage.reasoning_tokens, 0), out);
  out->append(",\"num_retractions\":");
  AppendJsonInt(answer.usage.retractions, out);
  out->append(",\"dp_rank\":");
  AppendRank(extras, out);
  if (prompt.with_hidden_states) AppendList(",\"hidden_states\":", answer.hidden_states, out);
  if (answer.finish != FinishReason::kNone) {
    out->append(",\"e2e_latency\":");
    AppendJsonDouble(Seconds(Clock::now() - arrival_), out);
    out->append(",\"weight_versions\":");
    AppendWeightVersions(extras, weight_version_, answer.usage.completion_tokens, out);
    if (extras != nullptr && extras->speculation) {
      for (const auto& [name, value] :
           SpeculationMeta(*extras->speculation, answer.usage.completion_tokens)) {
        out->append(",\"").append(name).append("\":").append(value);
      }
    }
  }
  out->push_back('}');
}

void GenerateAnswer::AppendLogprobs(Answer& answer, std::string* out) {
  const Prompt& prompt = prompts_[answer.prompt];
  static const LogprobLists kNone;
  const bool with_prompt = prompt.encoded.reported && (cumulative_ || !answer.prompt_sent);
  const LogprobLists& input = with_prompt ? prompt.encoded.logprobs : kNone;
  AppendList(",\"input_token_logprobs\":", input.tokens, out);
  AppendList(",\"output_token_logprobs\":", answer.output.tokens, out);
  out->append(",\"output_token_logprobs_length\":");
  AppendJsonInt(answer.output.count, out);
  if (prompt.with_top) {
    AppendList(",\"input_top_logprobs\":", input.top, out);
    AppendList(",\"output_top_logprobs\":", answer.output.top, out);
  }
  if (prompt.with_ids) {
    AppendList(",\"input_token_ids_logprobs\":", input.of_ids, out);
    AppendList(",\"output_token_ids_logprobs\":", answer.output.of_ids, out);
  }
}

}  // namespace portico::api::sglang
