#include "api/grpc/native/weights_rpc.h"

#include <utility>

#include "api/control_call.h"
#include "api/grpc/field_checks.h"
#include "service/control/each_engine.h"
#include "service/control/weight_update.h"
#include "sglang/runtime/v1/sglang.pb.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::sglang::runtime::v1;

// What was wrong with the path is an answer: upstream's message has a place for it. What this engine
// cannot do, or not now, is a status.
bool BlamesPath(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument || status.code() == StatusCode::kNotFound;
}

void Answer(CallPtr call, ShardContext& shard, const Status& status) {
  if (!status.ok() && !BlamesPath(status)) return Refuse(*call, shard.api, status);
  pb::UpdateWeightsResponse response;
  response.set_success(status.ok());
  response.set_message(status.ok() ? "The weights are updated." : std::string(MessageOf(status)));
  Reply(*call, response);
}

}  // namespace

void AddWeightsRpc(RpcContext& context) {
  context.methods.Add("/sglang.runtime.v1.SglangService/UpdateWeightsFromDisk",
                      [&context](CallPtr call, std::string bytes) {
                        pb::UpdateWeightsRequest request;
                        Status status = ParseProtobuf(bytes, &request);
                        if (status.ok()) status = CheckNumbersKnown(request);
                        if (!status.ok()) return Refuse(*call, context.api, status);
                        WeightUpdate update;
                        update.control.path = request.model_path();
                        update.control.load_format = request.load_format();
                        ShardContext& shard = context.ShardOf(*call);
                        UpdateWeights(*context.api.models, "", std::move(update),
                                      Clock::now() + kWeightsPatience,
                                      AnswerWhenDone(std::move(call), shard, Answer));
                      });
}

}  // namespace portico::api::rpc
