// Any bytes as the message of each gRPC request that has a decoder of its own: either a request or an
// INVALID_ARGUMENT with details that are a google.rpc.Status.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/grpc/native/decode_native.h"
#include "api/grpc/scheduler/decode_scheduler.h"
#include "api/grpc/status_details.h"
#include "google/rpc/status.pb.h"
#include "message/protobuf.h"

namespace {

using portico::Status;

void Check(const Status& status) {
  if (status.ok()) return;
  if (status.code() != portico::StatusCode::kInvalidArgument) std::abort();
  google::rpc::Status details;
  if (!details.ParseFromString(portico::api::rpc::StatusDetails(status))) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  sglang::runtime::v1::TextGenerateRequest text;
  Status parsed = portico::ParseProtobuf(bytes, &text);
  Check(parsed.ok() ? portico::api::rpc::DecodeTextGenerate(&text).status() : parsed);
  sglang::runtime::v1::GenerateRequest ids;
  parsed = portico::ParseProtobuf(bytes, &ids);
  Check(parsed.ok() ? portico::api::rpc::DecodeGenerate(&ids).status() : parsed);
  sglang::grpc::scheduler::GenerateRequest scheduler;
  parsed = portico::ParseProtobuf(bytes, &scheduler);
  Check(parsed.ok() ? portico::api::rpc::DecodeScheduler(scheduler).status() : parsed);
  return 0;
}
