#include "engine/sglang/sglang_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "base/log.h"
#include "engine/sglang/engine_state.h"
#include "engine/sglang/link/load_snapshot.h"
#include "engine/sglang/wire/wire_requests.h"

namespace portico::sglang {
namespace {

constexpr std::chrono::seconds kFirstAnswer{60};
constexpr std::chrono::seconds kMaxBackoff{60};
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
  info_.can.media = life->media != nullptr;
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
               fmt::format("the engine is full: {} requests run or wait", live));
}

void SglangEngine::OnStreamEnd(const SchedulerLink::Stream& stream) {
  if (stream.lora.empty() || !adapters_.GiveBack(stream.lora)) return;
  if (const auto life = Life(); life.ok()) TrimAdapters(*life);
}

StatusOr<SglangEngine::Extras> SglangEngine::ResolveExtras(const LifePtr& life,
                                                           const RequestExtras& extras) {
  Extras resolved;
  if (extras.session) {
    PORTICO_ASSIGN_OR_RETURN(
        resolved.session_rid,
        sessions_.WireRidOf(extras.session->id, extras.session->rid, Clock::now()));
  }
  if (!extras.lora_path.empty() || !extras.lora_id.empty()) {
    PORTICO_ASSIGN_OR_RETURN(resolved.lora, TakeAdapter(life, extras.lora_path, extras.lora_id));
  }
  return resolved;
}

Status SglangEngine::Submit(GenerateRequest request, TokenSink* sink) {
  PORTICO_ASSIGN_OR_RETURN(const LifePtr life, Life());
  if (!life->facts.is_generation) {
    return Error(StatusCode::kFailedPrecondition, "this model returns vectors, not tokens");
  }
  PORTICO_RETURN_IF_ERROR(CheckRoom(*life, 1));
  SchedulerLink::Stream stream;
  stream.id = request.stream;
  stream.tokens = sink;
  stream.logprobs = request.return_logprobs;
  stream.prompt_logprobs_start = request.prompt_logprobs_start;
  const std::string rid = life->link->RidOf(request.stream);
  WireNames names;
  names.rid = rid;
  Extras extras;
  if (request.extras != nullptr) {
    PORTICO_ASSIGN_OR_RETURN(extras, ResolveExtras(life, *request.extras));
    stream.hidden_states = request.extras->return_hidden_states;
    stream.lora = extras.lora.id;
    stream.awaits_lora = extras.lora.is_loading;
    names.lora_id = extras.lora.id;
    names.lora_name = extras.lora.name;
    names.session_rid = extras.session_rid;
  }
  if (request.extras != nullptr && request.extras->media != nullptr) {
    return SubmitMedia(life, std::move(request), std::move(stream), std::move(extras));
  }
  auto frame = EncodeRequest(*life->codec, life->facts, request, names);
  if (!frame.ok()) {
    OnStreamEnd(stream);
    return frame.status();
  }
  std::string prefix;
  if (WantsPrefix(life->facts, request)) {
    stream.prefix = SchedulerLink::PrefixOf(request.first_choice);
    if (request.choice == 0) {
      const std::string prefix_rid = life->link->RidOf(stream.prefix);
      names.rid = prefix_rid;
      auto encoded = EncodePrefix(*life->codec, life->facts, request, names);
      if (!encoded.ok()) {
        OnStreamEnd(stream);
        return encoded.status();
      }
      prefix = *std::move(encoded);
    }
  }
  if (request.extras != nullptr && request.extras->session && request.choice == 0) {
    sessions_.Note(request.extras->session->id, request.rid, rid);
  }
  std::vector<SchedulerLink::Stream> streams;
  streams.push_back(std::move(stream));
  std::vector<std::string> frames;
  frames.push_back(*std::move(frame));
  if (life->link->Submit(std::move(streams), std::move(frames), std::move(prefix))) {
    return OkStatus();
  }
  if (!extras.lora.id.empty()) adapters_.GiveBack(extras.lora.id);
  return Error(StatusCode::kUnavailable, "the engine failed");
}

Status SglangEngine::SubmitMedia(const LifePtr& life, GenerateRequest request,
                                 SchedulerLink::Stream stream, Extras extras) {
  if (life->media == nullptr) {  // of a later life
    OnStreamEnd(stream);
    return Error(StatusCode::kUnavailable, "the process that reads media is not running");
  }
  MediaLink::Work work;
  work.stream = request.stream;
  work.sink = stream.tokens;
  work.media = request.extras->media;
  work.ids = request.prompt;
  const bool notes_session = request.extras->session && request.choice == 0;
  const std::string session = notes_session ? request.extras->session->id : "";
  const std::string client_rid = request.rid;
  const std::string rid = life->link->RidOf(request.stream);
  // The life outlives what waits in it.
  Incarnation* in = life.get();
  work.encode = [in, rid, request = std::move(request),
                 extras = std::move(extras)](const MediaInputs& media) {
    WireNames names;
    names.rid = rid;
    names.lora_id = extras.lora.id;
    names.lora_name = extras.lora.name;
    names.session_rid = extras.session_rid;
    return EncodeRequest(*in->codec, in->facts, request, names, &media);
  };
  work.on_end = [this, stream] { OnStreamEnd(stream); };
  work.send = [this, in, stream, notes_session, session, client_rid, rid](std::string frame) {
    if (notes_session) sessions_.Note(session, client_rid, rid);
    std::vector<SchedulerLink::Stream> streams{stream};
    std::vector<std::string> frames;
    frames.push_back(std::move(frame));
    return in->link->Submit(std::move(streams), std::move(frames));
  };
  Status taken = life->media->Submit(std::move(work));
  if (!taken.ok()) OnStreamEnd(stream);
  return taken;
}

Status SglangEngine::SubmitPooling(std::vector<PoolingRequest> requests, PoolingSink* sink) {
  PORTICO_ASSIGN_OR_RETURN(const LifePtr life, Life());
  if (life->facts.is_generation) {
    return Error(
        StatusCode::kFailedPrecondition,
        "this model returns tokens, not vectors; start SGLang with --is-embedding for vectors");
  }
  // Together they are one request of the queue's bound.
  PORTICO_RETURN_IF_ERROR(CheckRoom(*life, 1));
  std::vector<SchedulerLink::Stream> streams(requests.size());
  std::vector<std::string> frames;
  // All or none: what has been taken for the first is given back where a later one is refused.
  const auto give_back = [&] {
    for (const SchedulerLink::Stream& stream : streams) OnStreamEnd(stream);
  };
  for (size_t i = 0; i < requests.size(); ++i) {
    streams[i].id = requests[i].stream;
    streams[i].pooling = sink;
    const std::string rid = life->link->RidOf(requests[i].stream);
    WireNames names;
    names.rid = rid;
    Adapters::Use lora;
    if (!requests[i].lora_path.empty()) {
      auto taken = TakeAdapter(life, requests[i].lora_path, "");
      if (!taken.ok()) {
        give_back();
        return taken.status();
      }
      lora = *std::move(taken);
      streams[i].lora = lora.id;
      streams[i].awaits_lora = lora.is_loading;
      names.lora_id = lora.id;
      names.lora_name = lora.name;
    }
    auto frame = EncodeRequest(*life->codec, life->facts, requests[i], names);
    if (!frame.ok()) {
      give_back();
      return frame.status();
    }
    frames.push_back(*std::move(frame));
  }
  std::vector<std::string> taken;
  for (const SchedulerLink::Stream& stream : streams) {
    if (!stream.lora.empty()) taken.push_back(stream.lora);
  }
  if (life->link->Submit(std::move(streams), std::move(frames))) return OkStatus();
  for (const std::string& lora : taken) adapters_.GiveBack(lora);
  return Error(StatusCode::kUnavailable, "the engine failed");
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

void SglangEngine::Bury(LifePtr life) {
  if (life->media != nullptr) {
    life->media->Stop(
        FinishReason::kError,
        Error(StatusCode::kUnavailable, "the engine failed while the request was running"));
  }
  life->link->Stop();
  LogError("SGLang failed: {}", life->LastWords());
  // Calls that still hold it are short; its processes must not end on their threads.
  while (life.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

Status SglangEngine::StartAgain() {
  {
    const MutexLock lock(&mutex_);
    died_ = false;  // before the new one can say that it has died
  }
  PORTICO_ASSIGN_OR_RETURN(LifePtr life, Incarnation::Start(options_, nullptr, Owner()));
  const Facts& facts = life->facts;
  if (facts.vocab_size != info_.vocab_size || facts.context_length != info_.context_length) {
    return Error(StatusCode::kFailedPrecondition, "SGLang has come back with another model");
  }
  paused_.store(false, std::memory_order_relaxed);
  sessions_.Clear();
  released_.Clear();
  adapters_.Clear();
  AddAdapters(facts);
  const MutexLock lock(&mutex_);
  if (stopping_) return Error(StatusCode::kUnavailable, "the engine has stopped");
  lives_.fetch_add(1, std::memory_order_relaxed);
  life_ = std::move(life);
  return OkStatus();
}

std::optional<SglangEngine::LifePtr> SglangEngine::WaitForDeath() {
  const MutexLock lock(&mutex_);
  while (!stopping_ && !died_) wake_.Wait(&mutex_);
  if (stopping_) return std::nullopt;
  return std::exchange(life_, nullptr);
}

bool SglangEngine::StopsWithin(Duration time) {
  const TimePoint until = Clock::now() + time;
  const MutexLock lock(&mutex_);
  while (!stopping_ && wake_.WaitUntil(&mutex_, until)) {
  }
  return stopping_;
}

void SglangEngine::Supervise() {
  auto backoff = std::chrono::seconds(1);
  while (std::optional<LifePtr> dead = WaitForDeath()) {
    if (*dead != nullptr) Bury(*std::move(dead));
    if (!options_.restart) return;
    LogInfo("SGLang is started again in {} s", backoff.count());
    if (StopsWithin(backoff)) return;
    const Status started = StartAgain();
    if (started.ok()) {
      backoff = std::chrono::seconds(1);
      LogInfo("SGLang serves again");
      continue;
    }
    LogError("SGLang cannot be started again: {}", MessageOf(started));
    {
      const MutexLock lock(&mutex_);
      died_ = true;
    }
    backoff = std::min(2 * backoff, kMaxBackoff);
  }
}

void SglangEngine::Stop() {
  LifePtr life;
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    life = std::exchange(life_, nullptr);
    wake_.NotifyAll();
  }
  if (life != nullptr && life->media != nullptr) {
    life->media->Stop(FinishReason::kAbort, OkStatus());
  }
  if (life != nullptr) life->link->Stop();
  const MutexLock lock(&join_mutex_);
  if (supervisor_.joinable()) supervisor_.join();
  if (life == nullptr) return;
  while (life.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
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
