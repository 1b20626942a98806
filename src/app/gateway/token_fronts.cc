#include "app/gateway/token_fronts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <latch>
#include <utility>

#include "absl/hash/hash.h"
#include "app/gateway/tokenizer_folder.h"
#include "app/load/load_model.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/processors.h"
#include "router/fleet/pair_mode.h"
#include "router/proxy/local_call.h"

namespace portico {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxPooledTasks = 256;
constexpr size_t kMaxKeeperTasks = 4096;
constexpr Duration kTokenizerTimeout = std::chrono::seconds(60);

size_t PoolThreads() { return static_cast<size_t>(std::max(1, UsableProcessors() / 2)); }

router::ReportedLoad ReportOf(const TokenWorkerLoad& load) {
  return {.running_requests = load.running,
          .waiting_requests = load.waiting,
          .used_tokens = load.used_tokens,
          .total_tokens = load.total_tokens,
          .token_usage = load.token_usage,
          .throughput = load.throughput,
          .at = Clock::now()};
}

router::TokenWorkers::Facts FactsOf(const ServingModel& model) {
  const EngineInfo& info = model.engine->info();
  return {.models = {{.id = model.id,
                      .root = model.id,
                      .created = model.created,
                      .max_model_len = info.context_length}},
          .ranks = info.can.data_parallel_ranks};
}

// Whether the worker can be what it is configured as: half of a pair.
Status CheckHalf(const router::Worker& worker, const TokenWire& wire,
                 const TokenWorkerFacts& facts) {
  const std::string_view role = RoleName(worker.spec().role);
  if (!wire.takes_pairs()) {
    return Error(StatusCode::kFailedPrecondition,
                 fmt::format("its protocol, {}, has no fields for the requests of a {} worker; use "
                             "sglang.grpc.scheduler",
                             wire.service(), role));
  }
  return router::CheckPairMode(worker.spec().role, facts.disaggregation_mode);
}

}  // namespace

TokenFronts::TokenFronts(TokenFrontsOptions options)
    : options_(std::move(options)), routes_(api::MakeRouteTable()) {}

TokenFronts::~TokenFronts() { Stop(); }

CpuPool& TokenFronts::pool() {
  const MutexLock lock(&mutex_);
  if (pool_ == nullptr) pool_ = std::make_unique<CpuPool>(PoolThreads(), kMaxPooledTasks);
  return *pool_;
}

void TokenFronts::OnKeeper(CpuPool::Task task) {
  const MutexLock lock(&mutex_);
  if (stopped_) return;
  if (keeper_ == nullptr) keeper_ = std::make_unique<CpuPool>(1, kMaxKeeperTasks, "token-fronts");
  keeper_->Submit(std::move(task));
}

StatusOr<TokenFronts::FrontPtr> TokenFronts::MakeFront(const router::WorkerPtr& worker) {
  const router::WorkerSpec& spec = worker->spec();
  GrpcEngineOptions engine;
  engine.channel.host = spec.host;
  engine.channel.port = spec.port;
  engine.channel.connect_timeout = options_.connect_timeout;
  engine.channel.keepalive_time = std::chrono::seconds(300);
  // Probes look at a worker that is down: connections must not back off longer than they.
  engine.channel.backoff.initial = std::chrono::milliseconds(200);
  engine.channel.backoff.max = std::chrono::milliseconds(400);
  if (spec.tls) {
    if (tls_ == nullptr) {
      PORTICO_ASSIGN_OR_RETURN(tls_, net::TlsClientContext::Load(options_.tls));
    }
    engine.channel.tls = tls_;
  }
  // One of a server with a single rank need not be named, and not every worker takes it.
  if (spec.dp_size > 1) engine.data_parallel_rank = spec.dp_rank;
  engine.half_of_pair = spec.role != router::Role::kRegular;
  engine.api_key_now = [&common = options_.api_key, weak = std::weak_ptr<router::Worker>(worker)] {
    const router::WorkerPtr still = weak.lock();
    std::string own = still == nullptr ? std::string() : still->api_key();
    return own.empty() ? common : own;
  };
  engine.request_timeout = options_.request_timeout;
  engine.shards = options_.shards;
  const std::weak_ptr<router::Worker> weak(worker);
  engine.on_lost = [this, weak](bool reached) {
    if (const router::WorkerPtr lost = weak.lock()) options_.on_lost(lost, reached);
  };
  engine.on_malformed = [this, weak](std::string_view why) {
    if (const router::WorkerPtr liar = weak.lock()) options_.on_malformed(liar, why);
  };
  return std::make_shared<TokenFront>(worker->number(), std::move(engine));
}

StatusOr<TokenFronts::Entry> TokenFronts::EntryOf(const router::WorkerPtr& worker) {
  const MutexLock lock(&mutex_);
  if (stopped_) return Error(StatusCode::kUnavailable, "the gateway is stopping");
  Entry& entry = fronts_[worker->number()];
  if (entry.front == nullptr) {
    auto made = MakeFront(worker);
    if (!made.ok()) {
      fronts_.erase(worker->number());
      return made.status();
    }
    entry.front = *std::move(made);
  }
  return entry;
}

void TokenFronts::Probe(const router::WorkerPtr& worker, bool fresh, Duration timeout,
                        ProbeDone done) {
  auto entry = EntryOf(worker);
  if (!entry.ok()) return done(entry.status());
  GrpcEngine& engine = entry->front->engine();
  auto visit = std::make_shared<Visit>(Visit{worker, entry->front, timeout, std::move(done), {}});
  // The engine may be all that holds the visit.
  engine.CheckHealth(timeout, [this, visit, known = entry->ready && !fresh](const Status& health) {
    if (!health.ok()) return visit->done(health);
    if (known) return visit->done(FactsOf(visit->front->model()));
    visit->front->engine().FetchFacts(visit->timeout, [this, visit](auto facts) {
      if (!facts.ok()) return visit->done(facts.status());
      visit->facts = *std::move(facts);
      OnFacts(visit);
    });
  });
}

const std::string* TokenFronts::NamedModel(const router::Worker& worker,
                                           const TokenWorkerFacts& facts) const {
  std::vector<std::string> names = {facts.served_model_name, facts.info.model_path};
  names.insert(names.end(), worker.spec().models.begin(), worker.spec().models.end());
  for (const std::string& name : names) {
    const auto found = options_.named_models.find(name);
    if (found != options_.named_models.end()) return &found->first;
  }
  return nullptr;
}

const ModelOptions& TokenFronts::OptionsOf(const std::string* name) const {
  return name == nullptr ? options_.model : options_.named_models.find(*name)->second;
}

std::string TokenFronts::LocalTexts(const ModelOptions& model, const TokenWorkerFacts& facts) {
  if (!model.tokenizer_path.empty()) return model.tokenizer_path;
  if (!model.model_path.empty()) return model.model_path;
  std::error_code ignored;
  for (const std::string& path : {facts.tokenizer_path, facts.info.model_path}) {
    if (!path.empty() && fs::exists(path, ignored)) return path;
  }
  return "";
}

void TokenFronts::OnFacts(const VisitPtr& visit) {
  if (visit->worker->spec().role != router::Role::kRegular) {
    const Status half = CheckHalf(*visit->worker, visit->front->engine().wire(), visit->facts);
    if (!half.ok()) return visit->done(half);
    visit->facts.info.can.disaggregation = true;
  }
  {
    const MutexLock lock(&mutex_);
    const auto found = fronts_.find(visit->worker->number());
    if (stopped_ || found == fronts_.end()) {
      return visit->done(Error(StatusCode::kUnavailable, "the worker was removed"));
    }
    if (found->second.ready) {
      if (found->second.front->Fits(visit->facts)) {
        return visit->done(FactsOf(visit->front->model()));
      }
      // Another model: what runs there ends as it may.
      auto made = MakeFront(visit->worker);
      if (!made.ok()) return visit->done(made.status());
      retired_.push_back(std::move(found->second.front));
      found->second = {*std::move(made), false};
    }
    visit->front = found->second.front;
  }
  const std::string* name = NamedModel(*visit->worker, visit->facts);
  if (!LocalTexts(OptionsOf(name), visit->facts).empty()) {
    return OnKeeper([this, visit] { Build(visit, ""); });
  }
  visit->front->engine().FetchTokenizer(kTokenizerTimeout, [this, visit](auto archive) {
    if (!archive.ok()) {
      return visit->done(
          Error(archive.status().code(),
                fmt::format("its tokenizer is not on this machine and the worker does not send it "
                            "({}): set --tokenizer-path",
                            MessageOf(archive.status()))));
    }
    OnKeeper([this, visit, bytes = *std::move(archive)] { Build(visit, bytes); });
  });
}

StatusOr<std::unique_ptr<ServingModel>> TokenFronts::MakeModel(
    TokenFront& front, const std::string& id, const ModelOptions& options,
    const std::string& archive, const std::string& path, const std::string& texts) {
  FrontPtr like;
  {
    const MutexLock lock(&mutex_);
    for (const auto& [number, entry] : fronts_) {
      if (entry.ready && entry.front->texts() == texts) like = entry.front;
    }
  }
  std::unique_ptr<Engine> engine = front.MakeEngineRef();
  if (like != nullptr) {
    return MakeRemoteModel(options, id, std::move(engine), path, &like->model());
  }
  if (!path.empty()) return MakeRemoteModel(options, id, std::move(engine), path, nullptr);
  PORTICO_ASSIGN_OR_RETURN(const OwnFolder folder, UnpackTokenizer(archive));
  return MakeRemoteModel(options, id, std::move(engine), folder.path(), nullptr);
}

void TokenFronts::Build(const VisitPtr& visit, const std::string& archive) {
  {
    // Removed while this waited for the thread: Sweep() may have closed the front on it.
    const MutexLock lock(&mutex_);
    const auto found = fronts_.find(visit->worker->number());
    if (stopped_ || found == fronts_.end() || found->second.front != visit->front) {
      return visit->done(Error(StatusCode::kUnavailable, "the worker was removed"));
    }
  }
  const std::string* name = NamedModel(*visit->worker, visit->facts);
  const ModelOptions& options = OptionsOf(name);
  const std::string path = LocalTexts(options, visit->facts);
  std::string texts =
      path.empty() ? fmt::format("archive {} {}", archive.size(), absl::HashOf(archive)) : path;
  if (name != nullptr) texts += fmt::format(" as {}", *name);
  visit->front->engine().SetInfo(visit->facts.info);
  const TokenWorkerFacts& facts = visit->facts;
  const std::string& id =
      facts.served_model_name.empty() ? facts.info.model_path : facts.served_model_name;
  auto model = MakeModel(*visit->front, id, options, archive, path, texts);
  if (!model.ok()) return visit->done(model.status());
  visit->front->Publish(facts, texts, *std::move(model), &pool());
  {
    const MutexLock lock(&mutex_);
    const auto found = fronts_.find(visit->worker->number());
    if (found != fronts_.end() && found->second.front == visit->front) found->second.ready = true;
  }
  Follow(visit->worker, *visit->front);
  LogInfo("worker {} takes tokens: model `{}`, context {} tokens, tokenizer {}",
          visit->worker->id(), id, facts.info.context_length,
          path.empty() ? std::string("of its own") : path);
  visit->done(FactsOf(visit->front->model()));
}

// Until another front, or none, is the worker's.
void TokenFronts::Follow(const router::WorkerPtr& worker, TokenFront& front) {
  if (options_.on_kv_events == nullptr) return;
  front.engine().FollowKvEvents([this, &front, weak = std::weak_ptr<router::Worker>(worker)](
                                    const KvEventBatch* batch, bool reset) {
    const router::WorkerPtr still = weak.lock();
    if (still == nullptr) return KvWish::kNothing;
    {
      const MutexLock lock(&mutex_);
      const auto found = fronts_.find(still->number());
      if (found == fronts_.end() || found->second.front.get() != &front) return KvWish::kNothing;
    }
    const int rank = still->spec().dp_size > 1 ? still->spec().dp_rank : -1;
    if (rank < 0 || batch == nullptr) return options_.on_kv_events(still, batch, reset);
    // The server tells of all its ranks.
    if (batch->rank >= 0 && batch->rank != rank)
      return options_.on_kv_events(still, nullptr, reset);
    KvEventBatch own = *batch;
    own.rank = -1;
    return options_.on_kv_events(still, &own, reset);
  });
}

void TokenFronts::AskLoad(const router::WorkerPtr& worker, Duration timeout, LoadDone done) {
  auto entry = EntryOf(worker);
  if (!entry.ok()) return done(entry.status());
  GrpcEngine& engine = entry->front->engine();
  engine.FetchLoad(timeout, [front = entry->front, done = std::move(done)](auto load) mutable {
    load.ok() ? done(ReportOf(*load)) : done(load.status());
  });
}

void TokenFronts::AskPaused(const router::WorkerPtr& worker, Duration timeout, PausedDone done) {
  auto entry = EntryOf(worker);
  if (!entry.ok()) return done(entry.status());
  GrpcEngine& engine = entry->front->engine();
  engine.FetchPaused(timeout, [front = entry->front, done = std::move(done)](
                                  StatusOr<bool> paused) mutable { done(std::move(paused)); });
}

StatusOr<std::unique_ptr<net::HttpCall>> TokenFronts::Start(const router::Worker& worker,
                                                            net::Shard& shard,
                                                            net::HttpRequest request,
                                                            net::HttpCallEvents& events) {
  FrontPtr front;
  {
    const MutexLock lock(&mutex_);
    const auto found = fronts_.find(worker.number());
    if (found != fronts_.end() && found->second.ready && !stopped_) front = found->second.front;
  }
  if (front == nullptr) {
    return Error(StatusCode::kUnavailable, "the worker is not ready for requests");
  }
  router::LocalCall local =
      router::MakeLocalCall(shard, std::move(request), events, options_.max_unsent_bytes);
  front->Handle(routes_, std::move(local.exchange));
  return std::move(local.call);
}

void TokenFronts::Keep(const router::WorkerSet& set) {
  const MutexLock lock(&mutex_);
  for (auto at = fronts_.begin(); at != fronts_.end();) {
    const auto here = at++;
    const bool stays = std::any_of(set.workers().begin(), set.workers().end(),
                                   [&](const auto& one) { return one->number() == here->first; });
    if (stays) continue;
    retired_.push_back(std::move(here->second.front));
    fronts_.erase(here);
  }
  if (retired_.empty() || stopped_ || std::exchange(sweeping_, true)) return;
  if (keeper_ == nullptr) keeper_ = std::make_unique<CpuPool>(1, kMaxKeeperTasks, "token-fronts");
  if (!keeper_->Submit([this] { Sweep(); })) sweeping_ = false;
}

// Destroys those of the retired fronts that nothing uses any more.
void TokenFronts::Sweep() {
  std::vector<FrontPtr> retired;
  {
    const MutexLock lock(&mutex_);
    retired = retired_;
  }
  for (const FrontPtr& front : retired) {
    if (front->Running() > 0) continue;
    // A request that has left may still be in the pool: wait for one moment without.
    CpuPool& workers = pool();
    const size_t threads = workers.threads();
    auto all_here = std::make_shared<std::latch>(static_cast<std::ptrdiff_t>(threads));
    size_t waiting = 0;
    while (waiting < threads && workers.Submit([all_here] { all_here->arrive_and_wait(); })) {
      ++waiting;
    }
    if (waiting < threads) {
      all_here->count_down(static_cast<std::ptrdiff_t>(threads - waiting));
      continue;
    }
    all_here->wait();
    front->DropCalls();
    front->Close();
    const MutexLock lock(&mutex_);
    std::erase(retired_, front);
  }
  const MutexLock lock(&mutex_);
  sweeping_ = false;
}

void TokenFronts::Stop() {
  std::unique_ptr<CpuPool> keeper;
  {
    const MutexLock lock(&mutex_);
    if (std::exchange(stopped_, true)) return;
    keeper = std::move(keeper_);
  }
  keeper.reset();
  std::vector<FrontPtr> all;
  std::unique_ptr<CpuPool> workers;
  {
    const MutexLock lock(&mutex_);
    all = std::move(retired_);
    for (auto& [number, entry] : fronts_) all.push_back(std::move(entry.front));
    fronts_.clear();
    workers = std::move(pool_);
  }
  for (const FrontPtr& front : all) front->DropCalls();
  workers.reset();
  for (const FrontPtr& front : all) front->Close();
}

}  // namespace portico
