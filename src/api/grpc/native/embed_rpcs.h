// What SglangService asks of embedding and classifying models: TextEmbed, Embed, Classify.
#pragma once

#include "api/grpc/rpc.h"

namespace portico::api::rpc {

void AddEmbedRpcs(RpcContext& context);

}  // namespace portico::api::rpc
