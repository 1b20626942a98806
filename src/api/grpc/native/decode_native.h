// SglangService's generate requests as native requests. Errors are INVALID_ARGUMENT naming the
// field; what this server cannot honour is refused, never ignored. Pure; any thread.
#pragma once

#include "base/status.h"
#include "message/native_generate.h"
#include "sglang/runtime/v1/sglang.pb.h"

namespace portico::api::rpc {

// May move from the request.
StatusOr<NativeGenerateRequest> DecodeTextGenerate(
    ::sglang::runtime::v1::TextGenerateRequest* request);
StatusOr<NativeGenerateRequest> DecodeGenerate(::sglang::runtime::v1::GenerateRequest* request);

// A part of both.
StatusOr<NativeSampling> DecodeSampling(const ::sglang::runtime::v1::SamplingParams& params);

}  // namespace portico::api::rpc
