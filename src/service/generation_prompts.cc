// How a generation's prompts come to its sink: spelled and encoded on the shard, or, where that would hold other streams
// up, on the CPU pool, while the deltas of their choices wait.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu_pool.h"
#include "service/generation_choice.h"
#include "service/generation_pool_link.h"
#include "service/spelled_logprobs.h"

namespace portico {
namespace {

// So many values are spelled and encoded in about half a millisecond.
constexpr size_t kFewPromptValues = 1 << 10;
// Of each choice; as many tokens as a stream's cost counts (request_cost.cc).
constexpr size_t kMaxHeldDeltas = 4096;

// What the report of a prompt is made of, apart from the generation.
struct PromptFacts {
  int32_t prompt = 0;
  std::shared_ptr<const std::vector<TokenId>> ids;
  std::string text;
  int32_t start = -1;
  std::vector<PositionLogprobs> logprobs;
  bool spells = true;
  bool decoded = false;
  bool skip_special_tokens = true;
  std::shared_ptr<const Tokenizer> tokenizer;
};

PromptEcho MakeEcho(PromptFacts facts) {
  PromptEcho echo;
  echo.prompt = facts.prompt;
  echo.tokens = *facts.ids;
  echo.text = std::move(facts.text);
  if (facts.start >= 0) {
    echo.logprobs = SpellPrompt({.tokens = echo.tokens,
                                 .start = static_cast<size_t>(facts.start),
                                 .from_engine = facts.logprobs,
                                 .spells = facts.spells,
                                 .decoded = facts.decoded,
                                 .skip_special_tokens = facts.skip_special_tokens},
                                *facts.tokenizer);
  }
  return echo;
}

}  // namespace

size_t Generation::ValuesOf(const std::vector<PositionLogprobs>& logprobs) const {
  const size_t by_id = plan_.logprob_ids == nullptr ? 0 : plan_.logprob_ids->size();
  return logprobs.size() * (1 + static_cast<size_t>(plan_.options.top_logprobs) + by_id);
}

bool Generation::PassPrompt(Choice* choice, TokenDelta* delta, TimePoint now) {
  const int32_t prompt = choice->prompt;
  PromptReport& report = reports_[static_cast<size_t>(prompt)];
  if (report.state == PromptReport::State::kNone) {
    if (!BeginReport(prompt, std::move(delta->prompt_logprobs))) {
      FailPrompt(prompt,
                 Error(StatusCode::kUnavailable, "too many long requests at once; try again"), now);
      return false;
    }
  } else if (pool_ != nullptr && ValuesOf(delta->prompt_logprobs) > kFewPromptValues) {
    // Each choice brings its prompt's; to free them takes long too. Where the pool is full it is done here.
    pool_->Submit([unused = std::move(delta->prompt_logprobs)] {});
  }
  if (report.state != PromptReport::State::kEncoding) return true;
  if (report.held.size() >= kMaxHeldDeltas * static_cast<size_t>(plan_.options.n)) {
    FailPrompt(
        prompt,
        Error(StatusCode::kUnavailable, "the prompt's log-probabilities took too long; try again"),
        now);
    return false;
  }
  report.held.push_back({choice, std::move(*delta)});
  metrics_.held_deltas.Add(1);
  return false;
}

bool Generation::BeginReport(int32_t prompt, std::vector<PositionLogprobs> logprobs) {
  PromptReport& report = reports_[static_cast<size_t>(prompt)];
  report.state = PromptReport::State::kReported;
  const int32_t start = plan_.prompt_logprobs_start;
  if (!plan_.echo && !plan_.options.return_token_ids && start < 0) return true;
  GenerationPlan::Prompt& from = plan_.prompts[static_cast<size_t>(prompt)];
  const size_t values = start < 0 ? 0 : ValuesOf(logprobs);
  PromptFacts facts;
  facts.prompt = prompt;
  facts.ids = from.ids;
  if (plan_.echo) facts.text = std::move(from.text);
  facts.start = start;
  facts.logprobs = std::move(logprobs);
  facts.spells = plan_.spell_logprobs;
  facts.decoded = from.is_ids;
  facts.skip_special_tokens = plan_.options.skip_special_tokens;
  facts.tokenizer = model_.tokenizer;
  if (pool_ == nullptr || values <= kFewPromptValues) {
    sink_->OnPrompt(MakeEcho(std::move(facts)));
    return true;
  }
  report.state = PromptReport::State::kEncoding;
  if (pool_link_ == nullptr) pool_link_ = std::make_shared<PoolLink>(this);
  return pool_->Submit([facts = std::move(facts), encode = sink_->LongPromptEncoder(),
                        link = pool_link_, &shard = hub_.net_shard()]() mutable {
    if (link->severed.load(std::memory_order_relaxed)) return;
    const int32_t index = facts.prompt;
    shard.Post(
        [link = std::move(link), index, taken = encode(MakeEcho(std::move(facts)))]() mutable {
          if (link->generation != nullptr) link->generation->FinishReport(index, std::move(taken));
        });
  });
}

void Generation::FinishReport(int32_t prompt, PromptTaken taken) {
  PromptReport& report = reports_[static_cast<size_t>(prompt)];
  if (report.state != PromptReport::State::kEncoding) return;
  report.state = PromptReport::State::kReported;
  taken();
  const TimePoint now = Clock::now();
  for (HeldDelta& held : TakeHeld(&report)) {
    // A stop string may have ended it before.
    if (!held.choice->finished) held.choice->Take(held.delta, now);
  }
}

void Generation::FailPrompt(int32_t prompt, const Status& failure, TimePoint now) {
  PromptReport& report = reports_[static_cast<size_t>(prompt)];
  report.state = PromptReport::State::kFailed;
  TakeHeld(&report);
  for (auto& choice : choices_) {
    if (choice->prompt == prompt && !choice->finished) choice->Fail(failure, now);
  }
}

std::vector<Generation::HeldDelta> Generation::TakeHeld(PromptReport* report) {
  std::vector<HeldDelta> held;
  held.swap(report->held);
  if (!held.empty()) metrics_.held_deltas.Add(-static_cast<double>(held.size()));
  return held;
}

}  // namespace portico
