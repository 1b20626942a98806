// One request on its way through an engine: prompts × choices streams of tokens, turned into text. Lives on a
// shard. Destroying it aborts what has not finished (the RAII guard of every transport); not from within a
// callback of its sink, which posts the destruction instead.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "message/generate.h"
#include "message/text_delta.h"
#include "message/text_request.h"
#include "service/active_rids.h"
#include "service/generation/stream_hub.h"
#include "service/output/output_plan.h"
#include "service/service_metrics.h"
#include "service/serving_model.h"
#include "tokenizer/decode/stop_matcher.h"

namespace portico {

class CpuPool;

struct GenerationPlan {
  struct Prompt {
    std::shared_ptr<const std::vector<TokenId>> ids;
    std::string text;     // as it is echoed; used only with `echo`
    bool is_ids = false;  // given as ids: its text is what they say, by skip_special_tokens
    int32_t max_new_tokens = 0;
  };
  std::vector<Prompt> prompts;
  // Of the options, what all streams share is in `sampling` and `stops` only (service/plan/sampling_rules.h).
  std::shared_ptr<const SamplingParams> sampling;  // not null; shared by all streams
  std::shared_ptr<const StopStrings> stops;        // null: none
  std::shared_ptr<const Constraint> constraint;    // null: none
  std::shared_ptr<const RequestExtras> extras;     // null: none
  std::optional<TimePoint> deadline;               // when the client stops waiting
  int32_t priority = 0;
  TraceContext trace;
  GenerationOptions options;
  bool echo = false;  // report each prompt's text first
  // The answer's text goes on where the prompt ends; else it begins a message, and its decoder may take a space off.
  bool continues_prompt = false;
  // With options.logprobs: the first prompt token whose log-probability is reported (it has none
  // itself), or -1 for none.
  int32_t prompt_logprobs_start = -1;
  // With options.logprobs: tokens whose log-probability is reported at every position; null: none.
  std::shared_ptr<const std::vector<TokenId>> logprob_ids;
  bool spell_logprobs = true;  // else they have ids and numbers only
  // Of SGLang's streams: tokens of a choice from one event to the next, at least 1.
  int32_t stream_interval = 1;
  // How the output is read; null: it is text.
  std::shared_ptr<const OutputPlan> output;
  std::string log_name;  // what the log calls it where it has no rid
  // Keeps options.rid from other requests; the generation gives it back before it reports its end.
  RidLease rid_lease;
  TimePoint arrival = Clock::now();
};

// Takes the plan's rid: ALREADY_EXISTS where it names a running request.
Status TakeRids(ActiveRids& rids, GenerationPlan* plan);

class Generation {
 public:
  // Submits every stream; deltas come to `sink` from later turns of the shard on, never from within this call. `model`,
  // `hub` and `metrics` outlive the generation; so does `sink` until it is destroyed. Long prompts' log-probabilities are
  // spelled and encoded on `pool`, and where it is full the choices of the longest fail (UNAVAILABLE); null: all is done
  // on the shard. The pool is destroyed before the hub's shard.
  // Fails as Engine::Submit does, and then nothing runs.
  static StatusOr<std::unique_ptr<Generation>> Start(const ServingModel& model, StreamHub& hub,
                                                     ServiceMetrics& metrics, GenerationPlan&& plan,
                                                     TextSink* sink, CpuPool* pool = nullptr);
  ~Generation();
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  // Asks the engine to end every running stream; their last deltas say kAbort. Prompts that are being encoded are not
  // reported any more, and all their choices end so.
  void Abort();
  // Before the end, where the client has left.
  void FreeRid() { plan_.rid_lease.Release(); }

 private:
  class Choice;
  friend class Choice;
  struct PoolLink;
  struct PoolWork;
  // How far the sink knows a prompt.
  struct PromptReport {
    enum class State {
      kNone,
      kEncoding,   // and its choices' deltas wait
      kReplaying,  // they go on, some in each turn, and new ones wait behind them
      kReported,
      kFailed,  // and so have its choices
    };
    State state = State::kNone;
    bool given_up = false;           // the sink will not know it
    std::unique_ptr<PoolWork> work;  // null: it has been nothing for the pool
  };

  Generation(const ServingModel& model, StreamHub& hub, ModelMetrics& metrics,
             GenerationPlan&& plan, TextSink* sink, CpuPool* pool);
  Status SubmitAll();
  // Reports the prompt once, before the first delta of any of its choices. False: the choice does not go on with this
  // delta, which has been taken, or the choice has failed.
  bool PassPrompt(Choice* choice, TokenDelta* delta, TimePoint now);
  // False: the pool is full, and the prompt too long for the shard.
  bool BeginReport(int32_t prompt, std::vector<PositionLogprobs> logprobs);
  void FinishReport(int32_t prompt, PromptTaken taken);
  // The prompt's choices go on without it.
  void GiveUpReport(int32_t prompt);
  // Passes on what waited, as much as a turn of the shard may do, and posts the rest.
  void Replay(int32_t prompt);
  void PostReplay(int32_t prompt);
  // Ends every choice of the prompt.
  void FailPrompt(int32_t prompt, const Status& failure, TimePoint now);
  // Frees them on the pool; of a prompt with one task at a time, however many choices bring some.
  void FreeOnPool(int32_t prompt, std::vector<PositionLogprobs> unused);
  void FreeUnused(int32_t prompt);
  PoolWork& WorkOf(int32_t prompt);
  // In the destructor.
  void LeavePool();
  // The values that a prompt's log-probabilities have.
  size_t ValuesOf(const std::vector<PositionLogprobs>& logprobs) const;
  void ChoiceEnded(const Choice& choice);
  // With ServingModel::log_requests: a line with what it asks for, and one with `end`, how it came to that.
  void LogParameters() const;
  void LogOutcome(std::string_view end) const;

  const ServingModel& model_;
  StreamHub& hub_;
  ModelMetrics& metrics_;
  GenerationPlan plan_;
  TextSink* sink_;
  std::vector<std::unique_ptr<Choice>> choices_;
  CpuPool* const pool_;
  std::vector<PromptReport> reports_;  // by prompt
  bool aborted_ = false;
  size_t running_ = 0;
  TokenUsage total_;
};

}  // namespace portico
