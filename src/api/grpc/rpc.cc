#include "api/grpc/rpc.h"

#include "api/grpc/status_details.h"

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

void Reply(net::GrpcCall& call, const google::protobuf::MessageLite& message) {
  std::string bytes;
  message.SerializeToString(&bytes);
  call.Reply(bytes);
}

}  // namespace portico::api::rpc
