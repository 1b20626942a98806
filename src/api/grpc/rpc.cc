#include "api/grpc/rpc.h"

#include <fmt/format.h>

#include <string>

#include "api/grpc/status_details.h"
#include "api/refusal_log.h"

namespace portico::api::rpc {

void Refuse(net::GrpcCall& call, const Status& status) {
  const std::string field = FieldOf(status);
  if (MessageOf(status).find(field) != std::string_view::npos) {
    return call.Finish(status, {}, StatusDetails(status));
  }
  // Some messages are SGLang's own words, and most clients show no details.
  const Status named =
      Error(status.code(), field + ": " + std::string(MessageOf(status)), field, ReasonOf(status));
  call.Finish(named, {}, StatusDetails(named));
}

void Refuse(net::GrpcCall& call, const ApiContext& api, const Status& status) {
  if (api.log_requests && !status.ok()) {
    const std::string what =
        fmt::format("gRPC {:.200} {}", call.method(), absl::StatusCodeToString(status.code()));
    LogRefusal(api, what, call.Metadata("x-request-id"), status);
  }
  Refuse(call, status);
}

void Reply(net::GrpcCall& call, const google::protobuf::MessageLite& message) {
  std::string bytes;
  message.SerializeToString(&bytes);
  call.Reply(bytes);
}

}  // namespace portico::api::rpc
