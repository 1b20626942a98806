// sglang.grpc.scheduler: what SGLang's gRPC servicer and Portico's own servers speak.
#pragma once

#include "engine/grpc/token_wire.h"

namespace portico {

class SchedulerWire final : public TokenWire {
 public:
  std::string_view service() const override { return "sglang.grpc.scheduler.SglangScheduler"; }
  bool takes_pairs() const override { return true; }
  Status EncodeGenerate(const GenerateRequest& request, const std::string& request_id,
                        std::string* bytes) const override;
  Status DecodeGenerate(std::string_view bytes, StreamProgress* progress,
                        TokenDelta* out) const override;
  StatusOr<TokenWireCall> EncodePooling(const PoolingRequest& request, ModelTask task,
                                        const std::string& request_id) const override;
  StatusOr<PoolingOutput> DecodePooling(std::string_view bytes) const override;
  StatusOr<TokenWorkerFacts> DecodeModelInfo(std::string_view bytes) const override;
  Status DecodeServerInfo(std::string_view bytes, TokenWorkerFacts* facts) const override;
  StatusOr<TokenWorkerLoad> DecodeLoads(std::string_view bytes, int rank) const override;
  Status DecodeHealth(std::string_view bytes) const override;
  StatusOr<TokenWireCall> EncodeControl(const EngineControl& control) const override;
  Status DecodeControl(const EngineControl& control, std::string_view bytes) const override;
};

}  // namespace portico
