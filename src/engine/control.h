// What is asked of an engine beside requests: one value each, so that an engine of several workers passes it on as it
// is. They complete later (Engine::Control).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace portico {

class Engine;

// Drops all cached prefixes. FAILED_PRECONDITION while requests run or wait, unless a pause has taken their cells.
struct FlushCacheControl {};

// What a pause does with the streams that are running or waiting. Those submitted later wait.
enum class PauseMode {
  kAbort,    // they end, as if aborted
  kRetract,  // they go back to the queue and hold no cells; they go on from the tokens they have
  kInPlace,  // they stand still and keep their cells
};

// Stops computing within one step, until ContinueControl. Streams can be submitted and aborted meanwhile, and an abort
// takes effect at once. A pause during a pause does to the streams what its mode says. UNAVAILABLE: the engine has
// stopped or died.
struct PauseControl {
  PauseMode mode = PauseMode::kInPlace;
};

// Ends the pause; OK without one.
struct ContinueControl {
  bool torch_empty_cache = true;  // of engines that run PyTorch: gives unused memory back before
};

// Goes on with the weights at `path` (what --model-path takes): those of a model with the same architecture, sizes,
// vocabulary and end tokens. Cached prefixes are dropped; running streams keep the tokens they have, which are computed
// again. The engine computes meanwhile, unless it is paused, and stays paused then. info() stays as it is. Updates are
// done one by one, in their order.
// Errors, after which nothing has changed but that requests were aborted: NOT_FOUND and INVALID_ARGUMENT for the path;
// INVALID_ARGUMENT for another field that this engine cannot honour; FAILED_PRECONDITION: another model, or this engine
// has no weights; RESOURCE_EXHAUSTED: no memory for a second model, or too many updates wait; UNAVAILABLE: the engine has
// stopped or died.
struct UpdateWeightsControl {
  std::string path;
  std::string load_format;      // for engines that have several; empty: their own
  std::string weight_version;   // the new weights' name; empty: unchanged
  bool abort_requests = false;  // end what runs or waits before the weights are read
  // False: prefixes and running streams keep the cells that the old weights have computed.
  bool flush_cache = true;
  // Fields of the engine's own protocol that ask for something: names, and values as JSON.
  std::vector<std::pair<std::string, std::string>> others;
};

// FAILED_PRECONDITION where nothing can be profiled, or where a profile runs already (or none, to stop).
struct StartProfileControl {
  std::string output_dir;  // empty: the engine's own choice
  std::optional<int64_t> start_step;
  std::optional<int64_t> num_steps;
  std::vector<std::string> activities;  // "CPU", "GPU", …; empty: the engine's own choice
  std::optional<bool> with_stack;
  std::optional<bool> record_shapes;
  bool by_stage = false;  // prefills and decodes each for num_steps, which it needs
  bool merge = false;     // the traces of all ranks into one
  std::string prefix;     // of the files' names; letters, digits, dots, dashes and underscores
};
struct StopProfileControl {};

// Requests that name the session (RequestExtras::session) continue each other. INVALID_ARGUMENT: it is open already.
struct OpenSessionControl {
  std::string id;        // not empty, valid UTF-8
  int64_t capacity = 0;  // characters that it may hold
  std::optional<bool> streaming;
  std::optional<double> timeout;  // seconds without a request after which it ends
};
// NOT_FOUND: no such session is open.
struct CloseSessionControl {
  std::string id;
};

// Adapters that requests name (RequestExtras::lora_path). INVALID_ARGUMENT: one of that name is loaded, or the engine
// refuses it.
struct LoadLoraControl {
  std::string name;  // not empty, valid UTF-8; nor is the path
  std::string path;
  bool pinned = false;
  // In place of what the path holds: the engine's own fields, a JSON object; empty: the adapter is at the path.
  std::string tensors;
};
// NOT_FOUND: none of that name is loaded. FAILED_PRECONDITION: requests use it.
struct UnloadLoraControl {
  std::string name;
};

// A call of the engine's own, which passes through as it is: for what operators of one kind of engine ask, and no other
// kind has. INVALID_ARGUMENT names the field that the engine does not know, lacks or has of another type.
struct NativeCall {
  // What came back: JSON objects, one a rank. Several engines may answer one call; thread safe.
  class Replies {
   public:
    void Add(std::string json) {
      const MutexLock lock(&mutex_);
      json_.push_back(std::move(json));
    }
    std::vector<std::string> Take() {
      const MutexLock lock(&mutex_);
      return std::move(json_);
    }

   private:
    Mutex mutex_;
    std::vector<std::string> json_ ABSL_GUARDED_BY(mutex_);
  };

  std::string message;  // its name in the engine's protocol
  std::string fields;   // a JSON object
  bool replies_expected = true;
  std::shared_ptr<Replies> replies;  // not null
};

using EngineControl =
    std::variant<FlushCacheControl, PauseControl, ContinueControl, UpdateWeightsControl,
                 StartProfileControl, StopProfileControl, OpenSessionControl, CloseSessionControl,
                 LoadLoraControl, UnloadLoraControl, NativeCall>;

// For std::visit.
template <typename... Calls>
struct Overloaded : Calls... {
  using Calls::operator()...;
};
template <typename... Calls>
Overloaded(Calls...) -> Overloaded<Calls...>;

// Called exactly once.
using ControlDone = absl::AnyInvocable<void(Status)>;

// FAILED_PRECONDITION: the refusal of an engine that lacks what was asked for.
Status CannotControl(std::string_view engine_name, const EngineControl& control);
// INVALID_ARGUMENT: the refusal of one field of it.
Status CannotControlField(std::string_view engine_name, std::string_view field);

// Blocks until it is done, or for `patience`: never on a shard.
Status ControlAndWait(Engine& engine, EngineControl control,
                      Duration patience = std::chrono::minutes(10));

}  // namespace portico
