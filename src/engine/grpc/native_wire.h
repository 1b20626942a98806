// sglang.runtime.v1: what the gRPC listener inside SGLang (--grpc-port) speaks. Messages bring either what is new
// or all tokens so far, as the server was started; their count tells which. Its facts are JSON and say neither the
// vocabulary nor the end tokens, unless a Portico server speaks: they are read from the model's folder, which must
// be on this machine then.
#pragma once

#include "engine/grpc/token_wire.h"

namespace portico {

class NativeWire final : public TokenWire {
 public:
  std::string_view service() const override { return "sglang.runtime.v1.SglangService"; }
  Status EncodeGenerate(const GenerateRequest& request, const std::string& request_id,
                        std::string* bytes) const override;
  Status DecodeGenerate(std::string_view bytes, StreamProgress* progress,
                        TokenDelta* out) const override;
  StatusOr<TokenWireCall> EncodePooling(const PoolingRequest& request, ModelTask task,
                                        const std::string& request_id) const override;
  StatusOr<PoolingOutput> DecodePooling(std::string_view bytes) const override;
  StatusOr<TokenWorkerFacts> DecodeModelInfo(std::string_view bytes) const override;
  Status DecodeServerInfo(std::string_view bytes, TokenWorkerFacts* facts) const override;
  std::string_view models_method() const override { return "ListModels"; }
  Status DecodeModels(std::string_view bytes, TokenWorkerFacts* facts) const override;
  std::string_view loads_method() const override { return "GetLoad"; }
  StatusOr<TokenWorkerLoad> DecodeLoads(std::string_view bytes, int rank) const override;
  std::string_view state_method() const override { return "WatchEngineState"; }
  StatusOr<bool> DecodePaused(std::string_view bytes) const override;
  Status DecodeHealth(std::string_view bytes) const override;
  StatusOr<TokenWireCall> EncodeControl(const EngineControl& control) const override;
  Status DecodeControl(const EngineControl& control, std::string_view bytes) const override;
};

}  // namespace portico
