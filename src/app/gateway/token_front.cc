#include "app/gateway/token_front.h"

#include <atomic>
#include <latch>
#include <utility>

namespace portico {
namespace {

// The front's engine for its model, which owns one.
class EngineRef final : public Engine {
 public:
  explicit EngineRef(GrpcEngine& engine) : engine_(engine) {}

  const EngineInfo& info() const override { return engine_.info(); }
  Status Submit(GenerateRequest request, TokenSink* sink) override {
    return engine_.Submit(std::move(request), sink);
  }
  Status SubmitPooling(std::vector<PoolingRequest> requests, PoolingSink* sink) override {
    return engine_.SubmitPooling(std::move(requests), sink);
  }
  void Abort(StreamId stream, ShardIndex shard) override { engine_.Abort(stream, shard); }
  EngineLoad load() const override { return engine_.load(); }
  void Control(EngineControl control, TimePoint deadline, ControlDone done) override {
    engine_.Control(std::move(control), deadline, std::move(done));
  }
  void Stop() override {}  // the front does

 private:
  GrpcEngine& engine_;
};

}  // namespace

TokenFront::TokenFront(uint64_t worker, GrpcEngineOptions options)
    : worker_(worker),
      shards_(options.shards),
      engine_(std::make_unique<GrpcEngine>(std::move(options))) {}

TokenFront::~TokenFront() = default;

std::unique_ptr<Engine> TokenFront::MakeEngineRef() {
  return std::make_unique<EngineRef>(*engine_);
}

void TokenFront::Publish(const TokenWorkerFacts& facts, std::string texts,
                         std::unique_ptr<ServingModel> model, CpuPool* pool) {
  facts_ = facts;
  texts_ = std::move(texts);
  const std::string id = model->id;
  models_.Add(std::move(model));
  metrics_ = std::make_unique<ServiceMetrics>(registry_, models_, std::vector<std::string>{id});
  models_.Publish();
  api_.models = &models_;
  api_.registry = &registry_;
  api_.metrics = metrics_.get();
  api_.pool = pool;
  for (net::Shard* shard : shards_) {
    contexts_.push_back(std::make_unique<api::ShardContext>(*shard, api_));
    api_.shards.push_back(contexts_.back().get());
  }
}

bool TokenFront::Fits(const TokenWorkerFacts& facts) const {
  const EngineInfo& is = facts_.info;
  const EngineInfo& says = facts.info;
  return is.vocab_size == says.vocab_size && is.eos_token_ids == says.eos_token_ids &&
         is.context_length == says.context_length && is.model_path == says.model_path &&
         is.can.data_parallel_ranks == says.can.data_parallel_ranks &&
         facts_.served_model_name == facts.served_model_name &&
         facts_.tokenizer_path == facts.tokenizer_path;
}

void TokenFront::Handle(const api::RouteTable& routes, std::unique_ptr<net::Exchange> exchange) {
  const auto shard = static_cast<size_t>(exchange->shard().index());
  routes.Dispatch(std::move(exchange), *contexts_[shard]);
}

template <typename Task>
void TokenFront::OnEveryShard(const Task& task) {
  std::latch done(static_cast<std::ptrdiff_t>(contexts_.size()));
  for (const auto& context : contexts_) {
    context->shard.Post([&task, &done, at = context.get()] {
      task(*at);
      done.count_down();
    });
  }
  done.wait();
}

size_t TokenFront::Running() {
  std::atomic<size_t> running{0};
  OnEveryShard([&running](api::ShardContext& context) {
    running += context.calls.size() + context.hub.streams();
  });
  return running;
}

void TokenFront::DropCalls() {
  OnEveryShard([](api::ShardContext& context) { context.calls.Clear(); });
}

void TokenFront::Close() {
  for (const auto& context : contexts_) {
    context->hub.Close();
    context->pooling_hub.Close();
  }
  engine_->Stop();
  // What was posted before finds the contexts still there.
  OnEveryShard([](api::ShardContext&) {});
}

}  // namespace portico
