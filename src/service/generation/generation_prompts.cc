// How a generation's prompts come to its sink: spelled and encoded on the shard, or, where that would hold other streams
// up, on the CPU pool, while the deltas of their choices wait.
#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu_pool.h"
#include "service/generation/generation_choice.h"
#include "service/generation/generation_pool_link.h"
#include "service/generation/spelled_logprobs.h"

namespace portico {
namespace {

// So many values are spelled and encoded in about half a millisecond.
constexpr size_t kFewPromptValues = 1 << 10;
// Where the pool is full, up to so many are done on the shard all the same: a request with many prompts may fill the pool
// by itself.
constexpr size_t kManyPromptValues = 1 << 14;
// Of each choice; as many tokens as a stream's cost counts (service/plan/request_cost.cc).
constexpr size_t kMaxHeldDeltas = 4096;
// Of deltas that waited, so many tokens of a prompt's choices go on in a turn: more than engines bring meanwhile.
constexpr size_t kReplayedTokens = 128;

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

// Else the sink hears nothing of it.
bool GivesText(const TokenDelta& delta) {
  return !delta.tokens.empty() || delta.finish != FinishReason::kNone;
}

}  // namespace

size_t Generation::ValuesOf(const std::vector<PositionLogprobs>& logprobs) const {
  const size_t by_id = plan_.logprob_ids == nullptr ? 0 : plan_.logprob_ids->size();
  return logprobs.size() * (1 + static_cast<size_t>(plan_.options.top_logprobs) + by_id);
}

bool Generation::PassPrompt(Choice* choice, TokenDelta* delta, TimePoint now) {
  using State = PromptReport::State;
  const int32_t prompt = choice->prompt;
  PromptReport& report = reports_[static_cast<size_t>(prompt)];
  if (report.state == State::kNone) {
    if (!BeginReport(prompt, std::move(delta->prompt_logprobs))) {
      FailPrompt(prompt,
                 Error(StatusCode::kUnavailable, "too many long requests at once; try again"), now);
      return false;
    }
  } else if (pool_ != nullptr && ValuesOf(delta->prompt_logprobs) > kFewPromptValues) {
    FreeOnPool(prompt, std::move(delta->prompt_logprobs));
  }
  if (report.state != State::kEncoding && report.state != State::kReplaying) return true;
  std::deque<PoolWork::HeldDelta>& held = report.work->held;
  if (held.size() >= kMaxHeldDeltas * static_cast<size_t>(plan_.options.n)) {
    FailPrompt(
        prompt,
        Error(StatusCode::kUnavailable, "the prompt's log-probabilities took too long; try again"),
        now);
    return false;
  }
  if (GivesText(*delta)) ++choice->held;
  held.push_back({choice, std::move(*delta)});
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
  const bool is_long = pool_ != nullptr && values > kFewPromptValues;
  if (is_long && aborted_) {
    FreeOnPool(prompt, std::move(logprobs));
    GiveUpReport(prompt);
    return true;
  }
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
  if (!is_long) {
    sink_->OnPrompt(MakeEcho(std::move(facts)));
    return true;
  }
  report.state = PromptReport::State::kEncoding;
  CpuPool::Task task = [facts = std::move(facts), encode = sink_->LongPromptEncoder(),
                        link = WorkOf(prompt).link, &shard = hub_.net_shard()]() mutable {
    if (link->unwanted.load(std::memory_order_relaxed)) return;
    const int32_t index = facts.prompt;
    shard.Post(
        [link = std::move(link), index, taken = encode(MakeEcho(std::move(facts)))]() mutable {
          if (link->generation != nullptr) link->generation->FinishReport(index, std::move(taken));
        });
  };
  if (pool_->Submit(std::move(task))) return true;
  if (values > kManyPromptValues) return false;
  task();
  return true;
}

void Generation::FinishReport(int32_t prompt, PromptTaken taken) {
  PromptReport& report = reports_[static_cast<size_t>(prompt)];
  if (report.state != PromptReport::State::kEncoding) return;
  report.state = PromptReport::State::kReplaying;
  taken();
  Replay(prompt);
}

void Generation::GiveUpReport(int32_t prompt) {
  PromptReport& report = reports_[static_cast<size_t>(prompt)];
  report.state = PromptReport::State::kReplaying;
  report.given_up = true;
  WorkOf(prompt).link->unwanted.store(true, std::memory_order_relaxed);
  PostReplay(prompt);
}

void Generation::Replay(int32_t prompt) {
  PromptReport& report = reports_[static_cast<size_t>(prompt)];
  if (report.state != PromptReport::State::kReplaying) return;
  std::deque<PoolWork::HeldDelta>& held = report.work->held;
  const TimePoint now = Clock::now();
  const size_t before = held.size();
  size_t tokens = 0;
  while (!held.empty() && tokens < kReplayedTokens) {
    PoolWork::HeldDelta next = std::move(held.front());
    held.pop_front();
    Choice& choice = *next.choice;
    tokens += std::max<size_t>(next.delta.tokens.size(), 1);
    // A sink repeats the prompt with the choice's first delta, or with the first that no other follows: once a turn.
    bool repeats = false;
    if (GivesText(next.delta)) {
      --choice.held;
      repeats = !choice.replays || (!choice.caught_up && choice.held == 0);
      choice.replays = true;
      choice.caught_up = choice.caught_up || choice.held == 0;
    }
    // A stop string may have ended it before.
    if (!choice.finished) choice.Take(next.delta, now, /*replayed=*/true);
    if (repeats) break;
  }
  metrics_.held_deltas.Add(static_cast<double>(held.size()) - static_cast<double>(before));
  if (held.empty()) {
    report.state = PromptReport::State::kReported;
  } else {
    PostReplay(prompt);
  }
}

void Generation::PostReplay(int32_t prompt) {
  hub_.net_shard().Post([link = WorkOf(prompt).link, prompt] {
    if (link->generation != nullptr) link->generation->Replay(prompt);
  });
}

void Generation::FailPrompt(int32_t prompt, const Status& failure, TimePoint now) {
  PromptReport& report = reports_[static_cast<size_t>(prompt)];
  report.state = PromptReport::State::kFailed;
  if (report.work != nullptr) {
    report.work->link->unwanted.store(true, std::memory_order_relaxed);
    std::deque<PoolWork::HeldDelta> held = std::exchange(report.work->held, {});
    metrics_.held_deltas.Add(-static_cast<double>(held.size()));
    if (held.size() > kFewPromptValues) pool_->Submit([unused = std::move(held)] {});
  }
  for (auto& choice : choices_) {
    if (choice->prompt == prompt && !choice->finished) choice->Fail(failure, now);
  }
}

void Generation::FreeOnPool(int32_t prompt, std::vector<PositionLogprobs> unused) {
  WorkOf(prompt).unused.push_back(std::move(unused));
  FreeUnused(prompt);
}

void Generation::FreeUnused(int32_t prompt) {
  PoolWork& work = WorkOf(prompt);
  if (work.frees || work.unused.empty()) return;
  // Where the pool is full it is done here, with the task.
  work.frees = pool_->Submit([unused = std::exchange(work.unused, {}), link = work.link, prompt,
                              &shard = hub_.net_shard()]() mutable {
    unused.clear();
    shard.Post([link = std::move(link), prompt] {
      if (link->generation == nullptr) return;
      link->generation->WorkOf(prompt).frees = false;
      link->generation->FreeUnused(prompt);
    });
  });
}

Generation::PoolWork& Generation::WorkOf(int32_t prompt) {
  PromptReport& report = reports_[static_cast<size_t>(prompt)];
  if (report.work == nullptr) report.work = std::make_unique<PoolWork>(this);
  return *report.work;
}

void Generation::LeavePool() {
  for (PromptReport& report : reports_) {
    if (report.work == nullptr) continue;
    report.work->link->generation = nullptr;
    report.work->link->unwanted.store(true, std::memory_order_relaxed);
    if (report.work->held.empty()) continue;
    metrics_.held_deltas.Add(-static_cast<double>(report.work->held.size()));
  }
}

}  // namespace portico
