// The token workers of a gateway: a TokenFront for each. A worker's tokenizer is, in this order, what
// the options name, what the worker names if that is on this machine, and what its GetTokenizer sends.
// Workers with the same tokenizer share it. What the options name for a model holds for the workers whose
// name of their model, or whose configured models, it is.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "app/gateway/token_front.h"
#include "app/options/options.h"
#include "base/cpu_pool.h"
#include "base/mutex.h"
#include "net/tls/tls_client.h"
#include "router/fleet/token_workers.h"

namespace portico {

struct TokenFrontsOptions {
  ModelOptions model;  // paths and templates that the operator has named
  std::map<std::string, ModelOptions, std::less<>> named_models;  // in its place for these models
  Duration request_timeout = std::chrono::seconds(1800);
  Duration connect_timeout = std::chrono::seconds(5);
  size_t max_unsent_bytes = 4 << 20;
  std::string api_key;              // for workers without their own
  net::TlsClientOptions tls;        // for grpcs://
  std::vector<net::Shard*> shards;  // the server's, by index
  // As GrpcEngineOptions; on any shard.
  std::function<void(const router::WorkerPtr&, bool reached)> on_lost;
  std::function<void(const router::WorkerPtr&, std::string_view why)> on_malformed;
  // As KvListener, on the first shard; null: nobody wants to know.
  std::function<KvWish(const router::WorkerPtr&, const KvEventBatch* batch, bool reset)>
      on_kv_events;
};

// Thread safe.
class TokenFronts final : public router::TokenWorkers {
 public:
  explicit TokenFronts(TokenFrontsOptions options);
  // After Stop().
  ~TokenFronts() override;

  void Probe(const router::WorkerPtr& worker, bool fresh, Duration timeout,
             ProbeDone done) override;
  void AskLoad(const router::WorkerPtr& worker, Duration timeout, LoadDone done) override;
  void AskPaused(const router::WorkerPtr& worker, Duration timeout, PausedDone done) override;
  StatusOr<std::unique_ptr<net::HttpCall>> Start(const router::Worker& worker, net::Shard& shard,
                                                 net::HttpRequest request,
                                                 net::HttpCallEvents& events) override;
  void Keep(const router::WorkerSet& set) override;

  // Ends all that runs, while the shards still do. Nothing is asked of this any more.
  void Stop();

 private:
  using FrontPtr = std::shared_ptr<TokenFront>;
  struct Entry {
    FrontPtr front;
    bool ready = false;  // it has been published
  };
  // A probe of a worker that is new or has been down.
  struct Visit {
    router::WorkerPtr worker;
    FrontPtr front;
    Duration timeout;
    ProbeDone done;
    TokenWorkerFacts facts;
  };
  using VisitPtr = std::shared_ptr<Visit>;

  StatusOr<Entry> EntryOf(const router::WorkerPtr& worker);
  StatusOr<FrontPtr> MakeFront(const router::WorkerPtr& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnFacts(const VisitPtr& visit);
  // The model that the operator has named, of those that the worker may mean; else null.
  const std::string* NamedModel(const router::Worker& worker, const TokenWorkerFacts& facts) const;
  const ModelOptions& OptionsOf(const std::string* name) const;
  // What the visit's tokenizer is made from: a path, or empty for the worker's own archive.
  static std::string LocalTexts(const ModelOptions& model, const TokenWorkerFacts& facts);
  // On the keeper's thread.
  void Build(const VisitPtr& visit, const std::string& archive);
  StatusOr<std::unique_ptr<ServingModel>> MakeModel(TokenFront& front, const std::string& id,
                                                    const ModelOptions& options,
                                                    const std::string& archive,
                                                    const std::string& path,
                                                    const std::string& texts);
  void Follow(const router::WorkerPtr& worker, TokenFront& front);
  void Sweep();
  void OnKeeper(CpuPool::Task task);
  CpuPool& pool();

  const TokenFrontsOptions options_;
  const api::RouteTable routes_;
  Mutex mutex_;
  absl::flat_hash_map<uint64_t, Entry> fronts_ ABSL_GUARDED_BY(mutex_);  // by the worker's number
  std::vector<FrontPtr> retired_ ABSL_GUARDED_BY(mutex_);  // their requests may still run
  bool sweeping_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<CpuPool> pool_ ABSL_GUARDED_BY(mutex_);    // for long requests; made when needed
  std::unique_ptr<CpuPool> keeper_ ABSL_GUARDED_BY(mutex_);  // one thread that reads tokenizers
  std::shared_ptr<const net::TlsClientContext> tls_ ABSL_GUARDED_BY(mutex_);  // made when needed
};

}  // namespace portico
