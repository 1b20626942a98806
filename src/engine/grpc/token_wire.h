// How token workers over gRPC say things: one implementation for each protocol. Stateless; what a
// stream has to remember is in StreamProgress.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "message/generate.h"
#include "message/pooling.h"

namespace portico {

// In the order in which a worker is asked which one it speaks: a Portico server speaks the first and the last, and
// the first says more.
enum class TokenProtocol : uint8_t {
  kSglangScheduler,  // sglang.grpc.scheduler.SglangScheduler
  kVllmEngine,       // vllm.grpc.engine.VllmEngine
  kSglangNative,     // sglang.runtime.v1.SglangService
};
inline constexpr TokenProtocol kTokenProtocols[] = {
    TokenProtocol::kSglangScheduler, TokenProtocol::kVllmEngine, TokenProtocol::kSglangNative};

// What a worker has said of itself.
struct TokenWorkerFacts {
  EngineInfo info;
  std::string tokenizer_path;
  std::string served_model_name;
  std::string default_sampling_json;  // generation_config.json's values, or empty
  // SGLang's: "prefill", "decode" or "null"; empty: it does not say.
  std::string disaggregation_mode = {};
};

struct TokenWorkerLoad {
  double running = -1;  // -1: not said
  double waiting = -1;
  double used_tokens = -1;
  double total_tokens = -1;
  double token_usage = -1;
  double throughput = -1;
};

// Of one stream, between its messages.
struct StreamProgress {
  int32_t prompt_logprobs_start = -1;  // of the request
  int32_t received = 0;                // tokens, one that is held back included
  bool told_prompt = false;
};

// A call with one message each way.
struct TokenWireCall {
  std::string_view method;  // of the protocol's service
  std::string request;
};

class TokenWire {
 public:
  virtual ~TokenWire() = default;

  virtual std::string_view service() const = 0;  // "package.Service"
  // It has fields by which a prefill and a decode worker find each other (RequestExtras::bootstrap_room).
  virtual bool takes_pairs() const { return false; }
  // INVALID_ARGUMENT, with the field: the protocol cannot say it. `request_id` is this stream's alone.
  virtual Status EncodeGenerate(const GenerateRequest& request, const std::string& request_id,
                                std::string* bytes) const = 0;
  // Appends what the message brings that is new; `out->finish` is set by a stream's last message.
  // Errors: the message makes no sense.
  virtual Status DecodeGenerate(std::string_view bytes, StreamProgress* progress,
                                TokenDelta* out) const = 0;

  // A text's vector or row of logits, by what `task` is. Errors as EncodeGenerate().
  virtual StatusOr<TokenWireCall> EncodePooling(const PoolingRequest& request, ModelTask task,
                                                const std::string& request_id) const = 0;
  // All but the stream.
  virtual StatusOr<PoolingOutput> DecodePooling(std::string_view bytes) const = 0;

  virtual StatusOr<TokenWorkerFacts> DecodeModelInfo(std::string_view bytes) const = 0;
  virtual Status DecodeServerInfo(std::string_view bytes, TokenWorkerFacts* facts) const = 0;
  // A third call for facts; empty: there is none.
  virtual std::string_view models_method() const { return {}; }
  virtual Status DecodeModels(std::string_view, TokenWorkerFacts*) const { return OkStatus(); }

  virtual std::string_view loads_method() const { return "GetLoads"; }
  // Of a data-parallel rank, or of all added up if it is -1.
  virtual StatusOr<TokenWorkerLoad> DecodeLoads(std::string_view bytes, int rank) const = 0;
  // A call whose first message has the engine's state; empty: there is none.
  virtual std::string_view state_method() const { return {}; }
  virtual StatusOr<bool> DecodePaused(std::string_view) const { return false; }
  // OK: it can take requests.
  virtual Status DecodeHealth(std::string_view bytes) const = 0;

  // FAILED_PRECONDITION: the protocol has no such control.
  virtual StatusOr<TokenWireCall> EncodeControl(const EngineControl& control) const = 0;
  // What came of it: FAILED_PRECONDITION with the worker's reason where it says that it has not been done.
  virtual Status DecodeControl(const EngineControl& control, std::string_view bytes) const = 0;
};

// Lives for ever.
const TokenWire& WireOf(TokenProtocol protocol);

// What can be wrong with facts of whichever protocol: a worker that lies is refused, not believed.
Status CheckFacts(const TokenWorkerFacts& facts);

// For DecodeControl(): whether the worker says that it has done it.
Status ControlOutcome(bool success, std::string_view reason);

}  // namespace portico
