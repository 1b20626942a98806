// How gRPC answers a request for vectors or classes (api/pooling_call.h).
#pragma once

#include <string>

#include "api/grpc/field_checks.h"
#include "api/grpc/rpc.h"
#include "api/pooling_call.h"
#include "message/embedding_request.h"

namespace portico::api::rpc {

struct RpcAnswer {
  using Transport = net::GrpcCall;
  static void Send(net::GrpcCall& call, ShardContext& shard, StatusOr<std::string> message) {
    if (message.ok()) return call.Reply(*message);
    const Status& status = message.status();
    // Somebody has asked for it, as a client that cancels does.
    if (status.code() != StatusCode::kAborted) return Refuse(call, shard.api, status);
    Refuse(call, Error(StatusCode::kCancelled, std::string(MessageOf(status))));
  }
  static void NoteAbort(net::GrpcCall&) {}
};

inline void AnswerPooled(RpcContext& context, CallPtr call, PlannedPooling planned) {
  ShardContext& shard = context.ShardOf(*call);
  PoolingCall<RpcAnswer>::Start(std::move(call), shard, std::move(planned));
}

// The request of one list of ids; INVALID_ARGUMENT for one below 0.
template <typename Repeated>
StatusOr<EmbeddingRequest> RequestOfIds(const Repeated& ids, const std::string& rid) {
  EmbeddingRequest request;
  request.input_field = "input_ids";
  for (int i = 0; i < ids.size(); ++i) {
    PORTICO_RETURN_IF_ERROR(CheckTokenId(request.input_field, static_cast<size_t>(i), ids[i]));
  }
  CompletionRequest::Prompt& input = request.inputs.emplace_back();
  input.is_ids = true;
  input.ids.assign(ids.begin(), ids.end());
  if (!rid.empty()) request.rid.values.push_back(rid);
  return request;
}

}  // namespace portico::api::rpc
