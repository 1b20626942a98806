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

// Of vLLM's /wake_up, which wakes what its tags name: the weights come back first, and the engine infers with a cache
// only. Without tags all of it wakes.
bool WakesWeightsOnly(std::string_view query) {
  bool weights = false;
  std::string tag;
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    std::string_view field = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    constexpr std::string_view kTags = "tags=";
    if (!field.starts_with(kTags)) continue;
    field.remove_prefix(kTags.size());
    if (!net::DecodeQuery(field, &tag) || tag != "weights") return false;
    weights = true;
  }
  return weights;
}

// While a worker does it nothing else comes from its engine; after a pause, and within an update of weights
// that comes in parts, until another control ends it.
bool HoldsEngineBack(std::string_view path) {
  return PausesEngine(path) || path.find("weight") != path.npos ||
         path.find("profile") != path.npos || path.find("lora_adapter") != path.npos;
}

// What makes an engine infer again. A worker that is stalled gets it too: it may have been paused past this
// gateway, and nothing else through it would wake it.
bool LetsEngineGoOn(std::string_view path) {
  return EndsPause(path) || path == "/end_weight_update";
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

void NoteOutcome(std::string_view path, std::string_view query, const StatusOr<SmallAnswer>& answer,
                 Worker& worker) {
  if (HoldsEngineBack(path)) worker.EndControl();
  // Whatever it has come to, nothing of it follows.
  if (path == "/end_weight_update") worker.SetUpdating(false);
  if (!answer.ok() || answer->status != 200) return;
  if (PausesEngine(path)) worker.SetPaused(true);
  if (EndsPause(path) && !WakesWeightsOnly(query)) worker.SetPaused(false);
  if (path == "/begin_weight_update") worker.SetUpdating(true);
}

}  // namespace

void FanOut::Take(size_t index, StatusOr<SmallAnswer> answer, bool stalled) {
  left_out_[index] = stalled && !answer.ok();
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
    const bool down = worker->health() == Health::kUnhealthy ||
                      (worker->health() == Health::kStalled && !LetsEngineGoOn(path));
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
    const bool stalled = worker->health() == Health::kStalled;
    if (stalled) one.timeout = std::min(one.timeout, shard.gateway().options().health.timeout);
    const std::vector<Worker*> ranks = RanksBeside(*self->set_, *worker);
    if (HoldsEngineBack(path)) {
      for (Worker* rank : ranks) rank->BeginControl();
    }
    auto take = [self, index, ranks, stalled, path, query](StatusOr<SmallAnswer> answer) {
      for (Worker* rank : ranks) NoteOutcome(path, query, answer, *rank);
      self->Take(index, std::move(answer), stalled);
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
