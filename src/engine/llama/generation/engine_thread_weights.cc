// Other weights for a running engine: loaded beside the old ones on the caller's thread, then exchanged
// between two steps on the engine's.
#include <utility>

#include "base/mutex.h"
#include "engine/llama/generation/engine_thread.h"
#include "engine/llama/kv/kv_size.h"
#include "engine/llama/model/model_folder.h"
#include "fmt/format.h"

namespace portico::llama {
namespace {

// That wait, beside the one that is being read.
constexpr size_t kMostUpdates = 8;

Status Differs(const std::string& path, std::string_view what, std::string_view theirs,
               std::string_view ours) {
  return Error(StatusCode::kFailedPrecondition,
               fmt::format("{}: the {} is {}, this server's model has {}: restart the server for "
                           "another model",
                           path, what, theirs, ours),
               "model_path");
}

// What this engine can do of what was asked; nothing has been read yet but what stands at the path.
Status CheckAsked(const UpdateWeightsControl& update, std::string_view engine) {
  if (!update.others.empty()) return CannotControlField(engine, update.others.front().first);
  if (!update.flush_cache) {
    return InvalidArgument("flush_cache",
                           fmt::format("flush_cache must be true: the engine {} computes cached "
                                       "prefixes anew with other weights",
                                       engine));
  }
  PORTICO_ASSIGN_OR_RETURN(const ModelSource source, FindModel(update.path));
  const std::string& asked = update.load_format;
  const std::string_view found = source.is_folder ? "safetensors" : "gguf";
  if (asked.empty() || asked == "auto" || asked == found) return OkStatus();
  return InvalidArgument(
      "load_format", fmt::format("load_format must be auto or {}, which {} holds, got \"{:.48}\"",
                                 found, update.path, asked));
}

// The tokenizer, the limits and the end tokens were taken from the old model and stay.
Status CheckSame(const ModelInfo& theirs, const ModelInfo& ours, int32_t context_length) {
  if (theirs.architecture != ours.architecture) {
    return Differs(theirs.path, "architecture", theirs.architecture, ours.architecture);
  }
  const auto check = [&](std::string_view what, int64_t a, int64_t b) {
    return a == b ? OkStatus() : Differs(theirs.path, what, fmt::to_string(a), fmt::to_string(b));
  };
  PORTICO_RETURN_IF_ERROR(check("vocabulary size", theirs.vocab_size, ours.vocab_size));
  PORTICO_RETURN_IF_ERROR(check("hidden size", theirs.hidden_size, ours.hidden_size));
  PORTICO_RETURN_IF_ERROR(check("number of layers", theirs.layers, ours.layers));
  if (theirs.eos_token_ids != ours.eos_token_ids) {
    return Differs(theirs.path, "list of end tokens",
                   fmt::format("{}", fmt::join(theirs.eos_token_ids, ",")),
                   fmt::format("{}", fmt::join(ours.eos_token_ids, ",")));
  }
  if (theirs.context_length >= context_length) return OkStatus();
  return Differs(theirs.path, "context length", fmt::to_string(theirs.context_length),
                 fmt::to_string(context_length));
}

}  // namespace

// Reading weights takes as long as a start, and must hold up neither a shard nor the pool that plans requests.
void EngineThread::UpdateWeights(UpdateWeightsControl update, TimePoint deadline,
                                 ControlDone done) {
  auto shared = std::make_shared<ControlDone>(std::move(done));
  Status gone;
  {
    const MutexLock lock(&mutex_);
    gone = Gone();
  }
  if (!gone.ok()) return (*shared)(gone);
  bool queued = false;
  {
    const MutexLock lock(&update_mutex_);
    if (!updates_) updates_ = std::make_unique<CpuPool>(1, kMostUpdates, "weights");
    queued = updates_->Submit([this, update = std::move(update), deadline, shared] {
      (*shared)(Update(update, deadline));
    });
  }
  if (!queued) {
    (*shared)(Error(StatusCode::kResourceExhausted, "too many weight updates are waiting"));
  }
}

// Stopped engines refuse the swap, so an update that is being read ends as it would have.
void EngineThread::Stop() {
  StepEngine::Stop();
  std::unique_ptr<CpuPool> last;
  {
    const MutexLock lock(&update_mutex_);
    last.swap(updates_);
  }
}

Status EngineThread::Update(const UpdateWeightsControl& update, TimePoint deadline) {
  PORTICO_RETURN_IF_ERROR(BetweenSteps([] {}));  // the engine still lives
  if (Clock::now() > deadline) {
    return Error(StatusCode::kDeadlineExceeded, "other weight updates took too long");
  }
  PORTICO_RETURN_IF_ERROR(CheckAsked(update, info_.name));
  if (update.abort_requests) {
    PORTICO_RETURN_IF_ERROR(BetweenSteps([this] { Freeze(PauseMode::kAbort); }));
  }
  PORTICO_ASSIGN_OR_RETURN(std::shared_ptr<Weights> weights, LoadWeights(update.path));
  std::future<void> swapped = weights->swapped.get_future();
  PORTICO_RETURN_IF_ERROR(BetweenSteps([this, weights] { Swap(weights.get()); }));
  swapped.wait();
  return OkStatus();
}

StatusOr<std::shared_ptr<EngineThread::Weights>> EngineThread::LoadWeights(
    const std::string& path) const {
  ModelOptions options = model_->options();
  options.path = path;
  auto weights = std::make_shared<Weights>();
  PORTICO_ASSIGN_OR_RETURN(weights->model, LlamaModel::Load(options, nullptr));
  const ModelInfo& theirs = weights->model->info();
  PORTICO_RETURN_IF_ERROR(CheckSame(theirs, model_->info(), info_.context_length));
  const int64_t needed = runner_options_.cells * theirs.kv_bytes_per_cell;
  if (needed > FreeMemoryBytes(LlamaModel::LoadedBytes())) {
    return Error(StatusCode::kResourceExhausted,
                 fmt::format("a second KV cache of {} does not fit into memory next to the old one",
                             HumanBytes(needed)));
  }
  PORTICO_ASSIGN_OR_RETURN(weights->runner, ModelRunner::Create(*weights->model, runner_options_));
  const std::string_view why = weights->runner->unshared_because();
  if (!why.empty() && runner_->unshared_because().empty()) {
    return Error(StatusCode::kFailedPrecondition,
                 fmt::format("{}: prefixes cannot be shared ({}), this server's can: restart the "
                             "server for another model",
                             path, why),
                 "model_path");
  }
  return weights;
}

// The old cells are given back before the cache moves, so that no request and no prefix points into
// them.
void EngineThread::Swap(Weights* weights) {
  scheduler_.RetractAll();
  cache_.Flush();
  runner_.swap(weights->runner);
  model_.swap(weights->model);
  cache_.Use(runner_.get());
  weights->swapped.set_value();
}

}  // namespace portico::llama
