// SglangScheduler's generate request as a native request: as api/grpc/native/decode_native.h. Zero stands for
// "absent" where it is outside a value's range: proto3 does not tell them apart there.
#pragma once

#include "base/status.h"
#include "message/native_generate.h"
#include "sglang/grpc/scheduler/sglang_scheduler.pb.h"

namespace portico::api::rpc {

StatusOr<NativeGenerateRequest> DecodeScheduler(
    const ::sglang::grpc::scheduler::GenerateRequest& request);

}  // namespace portico::api::rpc
