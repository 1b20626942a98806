#include "api/grpc/scheduler/scheduler_messages.h"

#include "api/grpc/wire.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::sglang::grpc::scheduler;

void AddTop(const TextPositionLogprobs& position, pb::TopLogProbs* top) {
  for (const TextLogprob& candidate : position.top) {
    top->add_values(candidate.logprob.value_or(0));
    top->add_token_ids(static_cast<uint32_t>(candidate.token));
  }
}

void AddOutput(const std::vector<TextPositionLogprobs>& positions, pb::OutputLogProbs* out) {
  for (const TextPositionLogprobs& position : positions) {
    out->add_token_logprobs(position.chosen.logprob.value_or(0));
    out->add_token_ids(static_cast<uint32_t>(position.chosen.token));
    if (!position.top.empty()) AddTop(position, out->add_top_logprobs());
  }
}

// Chunk and complete name their counts alike.
template <typename Message>
void FillUsage(const TextDelta& delta, Message* message) {
  message->set_prompt_tokens(static_cast<uint32_t>(delta.usage.prompt_tokens));
  message->set_completion_tokens(static_cast<uint32_t>(delta.usage.completion_tokens));
  message->set_cached_tokens(static_cast<uint32_t>(delta.usage.cached_tokens));
  message->set_index(static_cast<uint32_t>(delta.index));
}

// A message a position: the prompt's, then one for each token but the last.
void AddHiddenStates(const DeltaExtras& extras, pb::GenerateComplete* complete) {
  int32_t position = 0;
  for (const DeltaExtras::HiddenStates& states : extras.hidden_states) {
    for (const std::vector<float>& row : states.rows) {
      pb::HiddenStates& to = *complete->add_all_hidden_states();
      to.mutable_values()->Add(row.begin(), row.end());
      to.set_position(position++);
    }
  }
}

}  // namespace

SchedulerMessages::SchedulerMessages(const NativePlan& plan)
    : stream_(plan.stream),
      logprobs_(plan.prompts.front().options.logprobs),
      hidden_states_(plan.prompts.front().extras != nullptr &&
                     plan.prompts.front().extras->return_hidden_states),
      running_(static_cast<size_t>(plan.n)),
      choices_(running_) {
  response_.set_request_id(plan.prompts.front().options.rid);
}

std::string SchedulerMessages::PromptForm::operator()(const PromptEcho& echo) const {
  pb::InputLogProbs prompt;
  for (const TextPositionLogprobs& position : echo.logprobs) {
    pb::InputTokenLogProb& value = *prompt.add_token_logprobs();
    if (position.chosen.logprob) value.set_value(*position.chosen.logprob);
    prompt.add_token_ids(static_cast<uint32_t>(position.chosen.token));
    if (!position.top.empty()) AddTop(position, prompt.add_top_logprobs());
  }
  return prompt.SerializeAsString();
}

void SchedulerMessages::OnDelta(const TextDelta& delta, std::string* scratch,
                                absl::FunctionRef<void(std::string_view)> write) {
  Choice& choice = choices_[static_cast<size_t>(delta.index)];
  choice.ids.insert(choice.ids.end(), delta.tokens.begin(), delta.tokens.end());
  if (logprobs_) AddOutput(delta.logprobs, &choice.logprobs);
  if (hidden_states_ && delta.extras != nullptr && !delta.extras->hidden_states.empty()) {
    choice.hidden = delta.extras;
  }
  if (stream_ && !delta.tokens.empty()) {
    FillChunk(delta, choice);
    Write(logprobs_ && !choice.started, scratch, write);
    choice.started = true;
  }
  if (delta.finish == FinishReason::kNone) return;
  --running_;
  FillComplete(delta, choice);
  Write(logprobs_, scratch, write);
}

void SchedulerMessages::FillChunk(const TextDelta& delta, const Choice& choice) {
  pb::GenerateStreamChunk& chunk = *response_.mutable_chunk();
  chunk.Clear();
  for (TokenId id : delta.tokens) chunk.add_token_ids(static_cast<uint32_t>(id));
  FillUsage(delta, &chunk);
  if (choice.hidden != nullptr && choice.hidden == delta.extras) {
    const std::vector<float>& last = choice.hidden->hidden_states.back().rows.back();
    chunk.mutable_hidden_states()->Add(last.begin(), last.end());
  }
  if (logprobs_) AddOutput(delta.logprobs, chunk.mutable_output_logprobs());
}

void SchedulerMessages::FillComplete(const TextDelta& delta, const Choice& choice) {
  pb::GenerateComplete& complete = *response_.mutable_complete();
  complete.Clear();
  for (TokenId id : choice.ids) complete.add_output_ids(static_cast<uint32_t>(id));
  FillUsage(delta, &complete);
  complete.set_finish_reason(std::string(FinishReasonName(delta.finish)));
  if (!delta.matched_stop.text.empty()) {
    complete.set_matched_stop_str(delta.matched_stop.text);
  } else if (delta.matched_stop.token >= 0) {
    complete.set_matched_token_id(static_cast<uint32_t>(delta.matched_stop.token));
  }
  if (choice.hidden != nullptr) AddHiddenStates(*choice.hidden, &complete);
  if (logprobs_) *complete.mutable_output_logprobs() = choice.logprobs;
}

void SchedulerMessages::Write(bool with_prompt, std::string* scratch,
                              absl::FunctionRef<void(std::string_view)> write) const {
  if (!with_prompt || prompt_.empty()) {
    response_.AppendToString(scratch);
  } else {
    // The prompt is bytes already, so the messages around it are written by hand: it is their last field.
    int field = pb::GenerateResponse::kChunkFieldNumber;
    int of_prompt = pb::GenerateStreamChunk::kInputLogprobsFieldNumber;
    std::string inner;
    if (response_.has_complete()) {
      field = pb::GenerateResponse::kCompleteFieldNumber;
      of_prompt = pb::GenerateComplete::kInputLogprobsFieldNumber;
      response_.complete().AppendToString(&inner);
    } else {
      response_.chunk().AppendToString(&inner);
    }
    AppendBytesField(pb::GenerateResponse::kRequestIdFieldNumber, response_.request_id(), scratch);
    AppendTag(field, scratch);
    AppendVarint(inner.size() + BytesFieldSize(prompt_.size()), scratch);
    scratch->append(inner);
    AppendBytesField(of_prompt, prompt_, scratch);
  }
  write(*scratch);
  scratch->clear();
}

}  // namespace portico::api::rpc
