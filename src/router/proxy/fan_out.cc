#include "router/proxy/fan_out.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "net/http/http_text.h"

namespace portico::router {
namespace {

// After it, nothing comes from the engine until another control ends it. vLLM's server sleeps, or pauses; others pause.
bool PausesEngine(std::string_view path) {
  return path == "/pause_generation" || path == "/pause" || path == "/sleep";
}
bool EndsPause(std::string_view path) {
  return path == "/continue_generation" || path == "/resume" || path == "/wake_up";
}

PauseReading PauseReadingOf(std::string_view path) {
  if (path == "/pause_generation") return PauseReading::kInference;
  return path == "/sleep" ? PauseReading::kIsSleeping : PauseReading::kIsPaused;
}

// The values of a query's field, in order.
std::vector<std::string> QueryValues(std::string_view query, std::string_view name) {
  std::vector<std::string> values;
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    std::string_view field = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (!field.starts_with(name) || !field.substr(name.size()).starts_with('=')) continue;
    std::string value;
    field.remove_prefix(name.size() + 1);
    if (net::DecodeQuery(field, &value)) values.push_back(std::move(value));
  }
  return values;
}

constexpr uint8_t kAllMemory = kWeightsMemory | kCacheMemory;

// Of vLLM's /sleep: at level 0 the engine pauses, but keeps its memory.
uint8_t PutToSleep(std::string_view query) {
  const std::vector<std::string> levels = QueryValues(query, "level");
  return !levels.empty() && levels.back() == "0" ? 0 : kAllMemory;
}

// Of vLLM's /wake_up, which wakes what its tags name; without tags all of it wakes. The engine infers when none of its
// memory sleeps any more (v1/engine/core.py, wake_up()).
uint8_t Awakened(std::string_view query) {
  const std::vector<std::string> tags = QueryValues(query, "tags");
  if (tags.empty()) return kAllMemory;
  uint8_t memory = 0;
  for (const std::string& tag : tags) {
    if (tag == "weights") memory |= kWeightsMemory;
    if (tag == "kv_cache") memory |= kCacheMemory;
  }
  return memory;
}

// An update of weights that comes in parts: SGLang's names, and vLLM's.
bool BeginsUpdate(std::string_view path) {
  return path == "/begin_weight_update" || path == "/start_weight_update" ||
         path == "/start_draft_weight_update";
}
bool EndsUpdate(std::string_view path) {
  return path == "/end_weight_update" || path == "/finish_weight_update";
}

// While a worker does it nothing else comes from its engine; after a pause, and within an update of weights
// that comes in parts, until another control ends it.
bool HoldsEngineBack(std::string_view path) {
  if (path == "/weight_info") return false;  // a reading
  return PausesEngine(path) || path == "/collective_rpc" || path.find("weight") != path.npos ||
         path.find("profile") != path.npos || path.find("lora_adapter") != path.npos;
}

// What makes an engine infer again. A worker that is stalled or unhealthy gets it too: it may have been paused past this
// gateway, and nothing else through it would wake it.
bool LetsEngineGoOn(std::string_view path) { return EndsPause(path) || EndsUpdate(path); }

bool IsOut(const Worker& worker) {
  return worker.health() == Health::kUnhealthy || worker.health() == Health::kStalled;
}

// The worker, and the other ranks of its server: what one is told concerns the engines of all.
std::vector<Worker*> RanksBeside(const WorkerSet& set, Worker& asked) {
  std::vector<Worker*> ranks = {&asked};
  for (const WorkerPtr& worker : set.workers()) {
    const bool other = worker.get() != &asked && SameServer(worker->spec(), asked.spec());
    if (other) ranks.push_back(worker.get());
  }
  return ranks;
}

// Whether the engine was paused before. Its pause counts from here on: with vLLM's /pause?mode=wait the answer comes
// after the last one of the requests, later than any time limit, and a /resume may overtake it.
PauseBefore NoteSent(std::string_view path, std::string_view query, Worker& worker) {
  if (HoldsEngineBack(path)) worker.BeginControl();
  if (!PausesEngine(path)) return {};
  const PauseBefore before = worker.BeginPause(PauseReadingOf(path));
  if (path == "/sleep") worker.NoteAsleep(PutToSleep(query));
  return before;
}

// A control that may have been done, or not: it was lost on its way there or back, failed halfway, or a server in
// between says so.
bool MayBeDone(const StatusOr<SmallAnswer>& answer) {
  return !answer.ok() || (answer->status >= 500 && answer->status != 501);
}

void NoteOutcome(std::string_view path, std::string_view query, const StatusOr<SmallAnswer>& answer,
                 const PauseBefore& before, Worker& worker) {
  if (HoldsEngineBack(path)) worker.EndControl();
  // Whatever it has come to, nothing of it follows.
  if (EndsUpdate(path)) worker.SetUpdating(false);
  if (MayBeDone(answer)) {
    const bool was_sure = before.paused && before.doubt.number == 0;
    if (PausesEngine(path) ? !was_sure : EndsPause(path)) worker.DoubtPause(false);
    return;
  }
  if (answer->status != 200) {
    if (PausesEngine(path)) worker.RefusePause(before);
    return;
  }
  if (EndsPause(path) && (path != "/wake_up" || worker.NoteAwake(Awakened(query)))) {
    worker.EndPause();
  }
  if (BeginsUpdate(path)) worker.SetUpdating(true);
}

}  // namespace

void FanOut::Take(size_t index, StatusOr<SmallAnswer> answer, bool out) {
  left_out_[index] = out && (!answer.ok() || answer->status / 100 != 2);
  answers_[index].answer = std::move(answer);
}

std::vector<FanOutAnswer> FanOut::Answers() {
  std::vector<FanOutAnswer> answers;
  for (size_t i = 0; i < answers_.size(); ++i) {
    if (!left_out_[i]) answers.push_back(std::move(answers_[i]));
  }
  return answers;
}

void FanOut::Start(GatewayShard& shard, SmallRequest request, Done done) {
  std::shared_ptr<FanOut> self(new FanOut(shard, std::move(done)));
  self->set_ = shard.set();
  const size_t path_end = std::min(request.target.find('?'), request.target.size());
  const std::string path = request.target.substr(0, path_end);
  const std::string query = request.target.substr(std::min(path_end + 1, request.target.size()));
  std::vector<Worker*> workers;
  for (const WorkerPtr& worker : self->set_->workers()) {
    const bool down = IsOut(*worker) && !LetsEngineGoOn(path);
    const bool usable = worker->protocol() == Protocol::kHttp ||
                        (worker->protocol() == Protocol::kGrpc && request.to_token_workers &&
                         shard.gateway().tokens() != nullptr);
    const bool asked = std::any_of(workers.begin(), workers.end(), [&](const Worker* other) {
      return SameServer(other->spec(), worker->spec());
    });
    if (usable && !down && !asked) workers.push_back(worker.get());
  }
  if (workers.empty()) return self->done_({});
  self->open_ = workers.size();
  self->left_out_.resize(workers.size());
  const std::string& common = shard.gateway().options().api_key;
  for (Worker* worker : workers) {
    const std::string own = worker->api_key();
    const std::string& key = own.empty() ? common : own;
    const size_t index = self->answers_.size();
    self->answers_.push_back({worker->id(), Error(StatusCode::kUnavailable, "")});
    SmallRequest one = request;
    if (!key.empty()) one.authorization = "Bearer " + key;
    const bool out = IsOut(*worker);
    if (out) one.timeout = std::min(one.timeout, shard.gateway().options().health.timeout);
    // Each with what NoteSent() says.
    std::vector<std::pair<Worker*, PauseBefore>> ranks;
    for (Worker* rank : RanksBeside(*self->set_, *worker)) {
      ranks.emplace_back(rank, NoteSent(path, query, *rank));
    }
    auto take = [self, index, ranks, out, path, query](StatusOr<SmallAnswer> answer) {
      for (const auto& [rank, before] : ranks) {
        NoteOutcome(path, query, answer, before, *rank);
      }
      self->Take(index, std::move(answer), out);
      if (--self->open_ > 0) return;
      self->shard_.shard().AtEndOfTurn([self] {
        self->calls_.clear();
        self->done_(self->Answers());
      });
    };
    if (worker->protocol() == Protocol::kGrpc) {
      self->calls_.push_back(std::make_unique<SmallCall>(shard.shard(), *shard.gateway().tokens(),
                                                         *worker, std::move(one), std::move(take)));
    } else {
      self->calls_.push_back(std::make_unique<SmallCall>(shard.shard(), shard.clients().Of(*worker),
                                                         *worker, std::move(one), std::move(take)));
    }
  }
}

}  // namespace portico::router
