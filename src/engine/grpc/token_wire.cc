#include "engine/grpc/token_wire.h"

#include <fmt/format.h>

#include "engine/grpc/native_wire.h"
#include "engine/grpc/scheduler_wire.h"
#include "engine/grpc/vllm_wire.h"

namespace portico {
namespace {

constexpr int32_t kMaxVocabulary = 1 << 24;
constexpr int32_t kMaxContext = 1 << 28;

}  // namespace

const TokenWire& WireOf(TokenProtocol protocol) {
  static const SchedulerWire scheduler;
  static const VllmWire vllm;
  static const NativeWire native;
  switch (protocol) {
    case TokenProtocol::kVllmEngine:
      return vllm;
    case TokenProtocol::kSglangNative:
      return native;
    case TokenProtocol::kSglangScheduler:
      break;
  }
  return scheduler;
}

Status ControlOutcome(bool success, std::string_view reason) {
  if (success) return OkStatus();
  return Error(StatusCode::kFailedPrecondition,
               reason.empty() ? std::string("the worker has refused it") : std::string(reason));
}

Status CheckFacts(const TokenWorkerFacts& facts) {
  auto bad = [](std::string_view field, int64_t value) {
    return Error(StatusCode::kFailedPrecondition,
                 fmt::format("the worker's model info cannot be: {} {}", field, value));
  };
  const EngineInfo& info = facts.info;
  if (info.vocab_size <= 0 || info.vocab_size > kMaxVocabulary) {
    return bad("vocab_size", info.vocab_size);
  }
  if (info.context_length <= 1 || info.context_length > kMaxContext) {
    return bad("max_context_length", info.context_length);
  }
  for (const TokenId id : info.eos_token_ids) {
    if (id < 0 || id >= info.vocab_size) return bad("eos_token_ids", id);
  }
  if (info.max_total_tokens < 0) return bad("max_total_num_tokens", info.max_total_tokens);
  return OkStatus();
}

}  // namespace portico
