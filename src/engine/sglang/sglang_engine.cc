#include "engine/sglang/sglang_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "engine/sglang/engine_state.h"
#include "engine/sglang/link/load_snapshot.h"
#include "message/queue_full.h"

namespace portico::sglang {
namespace {

constexpr std::chrono::seconds kFirstAnswer{60};
constexpr int64_t kRunningWhereUnknown = 4096;

// Requests that run or wait.
int64_t LiveIn(const Incarnation& life) {
  return life.link->live() + (life.media == nullptr ? 0 : life.media->waiting());
}

}  // namespace

LinkOwner SglangEngine::Owner() {
  LinkOwner owner;
  owner.counters = &counters_;
  owner.kv_events = &kv_events_;
  owner.on_death = [this] {
    const MutexLock lock(&mutex_);
    died_ = true;
    wake_.NotifyAll();
  };
  owner.on_stream_end = [this](const SchedulerLink::Stream& stream) { OnStreamEnd(stream); };
  owner.check_lora = [this](const std::string& lora) { return adapters_.IsReady(lora); };
  return owner;
}

Status SglangEngine::Start(const Launcher::Progress& progress) {
  PORTICO_ASSIGN_OR_RETURN(LifePtr life, Incarnation::Start(options_, progress, Owner()));
  MakeInfo(life->facts);
  if (life->media != nullptr) info_.can.media = life->facts.takes_media;
  publishes_kv_events_ = !life->facts.kv_events.empty();
  PORTICO_RETURN_IF_ERROR(AskForLimits(*life));
  AddAdapters(life->facts);
  {
    const MutexLock lock(&mutex_);
    life_ = std::move(life);
  }
  const MutexLock lock(&join_mutex_);
  supervisor_ = std::thread([this] { Supervise(); });
  return OkStatus();
}

void SglangEngine::MakeInfo(const Facts& facts) {
  info_.name = "sglang";
  info_.model_path = facts.model_path;
  info_.architecture = facts.architecture;
  info_.dtype = facts.dtype;
  info_.vocab_size = facts.vocab_size;
  info_.context_length = facts.context_length;
  info_.max_total_tokens = facts.max_total_tokens * facts.ranks;
  info_.max_running_requests = facts.max_running_requests;
  info_.max_queued_requests = options_.max_queued_requests;
  info_.eos_token_ids = facts.eos_token_ids;
  if (!facts.is_generation) {
    const bool classifies = std::any_of(
        facts.architectures.begin(), facts.architectures.end(), [](const std::string& name) {
          return name.find("SequenceClassification") != std::string::npos ||
                 name.find("RewardModel") != std::string::npos;
        });
    info_.task = classifies ? ModelTask::kClassify : ModelTask::kEmbed;
    info_.pooling = Pooling::kLast;
    info_.embedding_size = facts.hidden_size;
    info_.normalized = true;
    if (classifies) info_.labels = facts.labels;
    if (facts.problem_type == "multi_label_classification") {
      info_.problem_type = ProblemType::kMultiLabel;
    } else if (facts.problem_type == "regression") {
      info_.problem_type = ProblemType::kRegression;
    }
  }
  EngineCapabilities& can = info_.can;
  can.logprobs = facts.is_generation;
  can.prompt_logprobs = facts.is_generation;
  can.grammars =
      facts.has_tokenizer && !facts.grammar_backend.empty() && facts.grammar_backend != "none";
  can.compiles_grammars = can.grammars;
  can.hidden_states = facts.hidden_states;
  // The scheduler makes bfloat16 of the rows, and dies where the weights are something else.
  can.input_embeddings = !facts.caches_prefixes && facts.dtype == "bfloat16";
  info_.no_media = facts.no_media;
  can.lora = facts.lora;
  can.sessions = facts.is_generation;
  can.custom_logit_processors = facts.custom_logit_processors;
  can.priorities = facts.priorities;
  can.disaggregation = facts.half_of_pair;
  can.cache_keys = true;
  can.stop_regex = facts.has_tokenizer;
  can.data_parallel_ranks = facts.ranks;
  can.pooling_ranks = facts.ranks;
  can.pooling = !facts.is_generation;
  can.pooling_lora = !facts.is_generation && facts.lora;
  can.pause = true;
  can.weight_updates = true;
  can.profiles = true;
}

Status SglangEngine::AskForLimits(Incarnation& life) {
  auto promise = std::make_shared<std::promise<StatusOr<SchedulerLink::Replies>>>();
  auto answer = promise->get_future();
  life.link->Call("GetInternalStateReq", Map{}, static_cast<size_t>(life.facts.ranks),
                  Clock::now() + kFirstAnswer, [promise](StatusOr<SchedulerLink::Replies> got) {
                    promise->set_value(std::move(got));
                  });
  PORTICO_ASSIGN_OR_RETURN(const SchedulerLink::Replies replies, answer.get());
  int64_t running = 0;
  for (const Message& reply : replies) {
    const Value* state = reply.fields.Find("internal_state");
    const Value* most =
        state == nullptr ? nullptr : state->Find("effective_max_running_requests_per_dp");
    if (most != nullptr && most->As<int64_t>() != nullptr) running += *most->As<int64_t>();
  }
  if (running <= 0) running = kRunningWhereUnknown;
  info_.max_running_requests = static_cast<int32_t>(std::min<int64_t>(running, INT32_MAX));
  room_ = running + options_.max_queued_requests;
  return OkStatus();
}

StatusOr<SglangEngine::LifePtr> SglangEngine::Life() const {
  const MutexLock lock(&mutex_);
  if (stopping_) return Error(StatusCode::kUnavailable, "the engine has stopped");
  if (life_ == nullptr || died_) {
    return Error(StatusCode::kUnavailable, options_.restart
                                               ? "the engine failed and is being restarted"
                                               : "the engine failed");
  }
  return life_;
}

Status SglangEngine::CheckRoom(const Incarnation& life, size_t requests) const {
  const int64_t live = LiveIn(life);
  if (live + static_cast<int64_t>(requests) <= room_) return OkStatus();
  return Error(StatusCode::kResourceExhausted,
               fmt::format("the engine is full: {} requests run or wait", live), {}, kQueueFull);
}

void SglangEngine::OnStreamEnd(const SchedulerLink::Stream& stream) {
  if (stream.lora.empty() || !adapters_.GiveBack(stream.lora)) return;
  if (const auto life = Life(); life.ok()) TrimAdapters(*life);
}

void SglangEngine::Abort(StreamId stream, ShardIndex) {
  const auto life = Life();
  if (!life.ok()) return;
  if ((*life)->media != nullptr && (*life)->media->Abort(stream)) return;
  (*life)->link->Abort(stream);
}

EngineLoad SglangEngine::load() const {
  EngineLoad sum;
  for (const EngineLoad& rank : rank_loads()) {
    sum.running += rank.running;
    sum.waiting += rank.waiting;
    sum.kv_cells_used += rank.kv_cells_used;
    sum.kv_cells_total += rank.kv_cells_total;
  }
  sum.prompt_tokens = counters_.prompt_tokens.load(std::memory_order_relaxed);
  sum.cached_tokens = counters_.cached_tokens.load(std::memory_order_relaxed);
  sum.generated_tokens = counters_.generated_tokens.load(std::memory_order_relaxed);
  sum.retractions = counters_.retractions.load(std::memory_order_relaxed);
  sum.steps = counters_.steps.load(std::memory_order_relaxed);
  sum.bad_frames = counters_.bad_frames.load(std::memory_order_relaxed);
  sum.paused = paused_.load(std::memory_order_relaxed);
  const auto life = Life();
  sum.healthy = life.ok();
  if (!sum.healthy) return sum;
  // What is on its way to the scheduler, or has ended there since it published its load.
  const int64_t live = LiveIn(**life);
  sum.running = std::min(sum.running, live);
  sum.waiting = live - sum.running;
  return sum;
}

std::vector<EngineLoad> SglangEngine::rank_loads() const {
  std::vector<EngineLoad> loads;
  const auto life = Life();
  if (!life.ok()) return {EngineLoad{.healthy = false}};
  for (const RankLoad& rank : ReadLoads((*life)->facts.load_snapshot)) {
    EngineLoad load;
    load.running = rank.running;
    load.waiting = rank.waiting;
    load.kv_cells_used = rank.used_tokens;
    load.kv_cells_total = rank.max_total_tokens;
    load.tokens_per_second = rank.tokens_per_second;
    load.cache_hit_rate = rank.cache_hit_rate;
    load.paused = paused_.load(std::memory_order_relaxed);
    loads.push_back(load);
  }
  if (!loads.empty()) return loads;
  EngineLoad load;  // no snapshot: what this side knows
  load.running = (*life)->link->live();
  load.kv_cells_total = info_.max_total_tokens;
  return {load};
}

StatusOr<std::unique_ptr<Engine>> NewSglangEngine(
    const SglangOptions& options,
    const std::function<void(std::string_view stage, double fraction)>& progress) {
  auto engine = std::make_unique<SglangEngine>(options);
  double fraction = 0.05;
  PORTICO_RETURN_IF_ERROR(engine->Start([&](std::string_view stage) {
    if (progress) progress(stage, fraction);
    fraction = std::min(fraction + 0.3, 0.9);
  }));
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace portico::sglang
