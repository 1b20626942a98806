#include "api/grpc/weights_rpc.h"

#include <utility>

#include "service/weight_update.h"
#include "sglang/runtime/v1/sglang.pb.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::sglang::runtime::v1;

// What was wrong with the path is an answer: upstream's message has a place for it. What this engine
// cannot do, or not now, is a status.
bool BlamesPath(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument || status.code() == StatusCode::kNotFound;
}

StatusOr<std::string> Update(const RpcContext& context, const std::string& bytes) {
  pb::UpdateWeightsRequest request;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &request));
  const Status status = UpdateWeights(*context.api.models, "", request.model_path());
  if (!status.ok() && !BlamesPath(status)) return status;
  pb::UpdateWeightsResponse response;
  response.set_success(status.ok());
  response.set_message(status.ok() ? "The weights are updated." : std::string(MessageOf(status)));
  return response.SerializeAsString();
}

}  // namespace

void AddWeightsRpc(RpcContext& context) {
  context.methods.Add(
      "/sglang.runtime.v1.SglangService/UpdateWeightsFromDisk",
      [&context](CallPtr call, std::string bytes) {
        auto update = [&context](const std::string& from) { return Update(context, from); };
        auto answer = [](CallPtr owned, ShardContext&, StatusOr<std::string> response) {
          if (!response.ok()) return Refuse(*owned, response.status());
          owned->Reply(*response);
        };
        // It blocks while the weights are read, so it never runs on the shard.
        if (PlanOnPool(call, bytes, context.ShardOf(*call), update, answer)) return;
        Refuse(*call, Error(StatusCode::kResourceExhausted, "the server is busy"));
      });
}

}  // namespace portico::api::rpc
