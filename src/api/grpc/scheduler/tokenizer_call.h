// GetTokenizer of SglangScheduler: the tokenizer's files as a zip archive, in chunks.
#pragma once

#include <string>

#include "api/grpc/rpc.h"

namespace portico::api::rpc {

void AddTokenizerCall(RpcContext& context, const std::string& method);

// The archive (stored, not compressed) of the tokenizer and template files at `path`, a folder or
// one of its files. FAILED_PRECONDITION where there are none.
StatusOr<std::string> TokenizerArchive(const std::string& path);

}  // namespace portico::api::rpc
