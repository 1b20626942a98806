// What the RPCs work with, and how they answer.
#pragma once

#include <google/protobuf/arena.h>
#include <google/protobuf/message_lite.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "api/context.h"
#include "api/planning.h"
#include "api/route_table.h"
#include "base/status.h"
#include "message/protobuf.h"
#include "net/grpc/grpc_call.h"
#include "net/grpc/grpc_methods.h"

namespace portico::api::rpc {

class EngineState;

using CallPtr = std::unique_ptr<net::GrpcCall>;

// Shared by all shards; constant but for what says otherwise. Outlives the server.
struct RpcContext {
  ApiContext& api;
  const RouteTable& routes;  // of the HTTP routes behind the JSON methods
  EngineState& state;
  net::GrpcMethods methods;

  ShardContext& ShardOf(net::GrpcCall& call) const {
    return *api.shards[static_cast<size_t>(call.shard().index())];
  }
};

// Ends a call with a status: the message names the field at fault, details are added.
void Refuse(net::GrpcCall& call, const Status& status);
// The same of a request: --log-requests has a line of it, unless the status is OK.
void Refuse(net::GrpcCall& call, const ApiContext& api, const Status& status);
// Answers a unary call.
void Reply(net::GrpcCall& call, const google::protobuf::MessageLite& message);

// Most requests need no other memory.
struct SmallArena {
  SmallArena() : arena(block, sizeof block) {}

  template <typename Message>
  Message* Make() {
    return google::protobuf::Arena::CreateMessage<Message>(&arena);
  }
  // Errors as ParseProtobuf().
  template <typename Message>
  StatusOr<Message*> Parse(std::string_view bytes) {
    Message* message = Make<Message>();
    PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, message));
    return message;
  }

  alignas(8) char block[1024];
  google::protobuf::Arena arena;
};

// A unary method that is answered at once. `answer` fills the response in on the call's shard; what
// is not OK ends the call.
template <typename Request, typename Response>
void AddUnary(RpcContext& context, std::string_view method,
              Status (*answer)(RpcContext& context, ShardContext& shard, const Request& request,
                               Response* response)) {
  context.methods.Add(std::string(method), [&context, answer](CallPtr call, std::string bytes) {
    SmallArena memory;
    const StatusOr<Request*> request = memory.Parse<Request>(bytes);
    if (!request.ok()) return Refuse(*call, context.api, request.status());
    Response* response = memory.Make<Response>();
    const Status status = answer(context, context.ShardOf(*call), **request, response);
    if (!status.ok()) return Refuse(*call, context.api, status);
    Reply(*call, *response);
  });
}

// Waits for what the plan needs, and answers.
template <typename Planned>
struct PlannedAnswer {
  RpcContext* context;
  void (*answer)(RpcContext& context, CallPtr call, Planned planned);

  void operator()(CallPtr call, ShardContext& shard, StatusOr<Planned> planned) const {
    if (!planned.ok()) return Refuse(*call, shard.api, planned.status());
    LeaseMedia(call->lease(), *planned);
    if (WaitsForMedia(call, shard, *planned, *this)) return;
    if (WaitsForGrammars(call, shard, *planned, *this)) return;
    answer(*context, std::move(call), *std::move(planned));
  }
};

// A method whose message is planned first, long ones on the CPU pool.
//   StatusOr<Planned> prepare(const RpcContext& context, std::string& bytes);    // any thread
//   void answer(RpcContext& context, CallPtr call, Planned planned);             // on the shard
template <typename Planned>
void AddPlanned(RpcContext& context, std::string_view method,
                StatusOr<Planned> (*prepare)(const RpcContext& context, const std::string& bytes),
                void (*answer)(RpcContext& context, CallPtr call, Planned planned)) {
  context.methods.Add(
      std::string(method), [&context, prepare, answer](CallPtr call, std::string bytes) {
        ShardContext& shard = context.ShardOf(*call);
        const PlannedAnswer<Planned> then{&context, answer};
        auto plan = [&context, prepare](const std::string& from) { return prepare(context, from); };
        if (bytes.size() > kLongBody) {
          if (!PlanOnPool(call, bytes, shard, plan, then)) Refuse(*call, shard.api, PoolIsFull());
          return;
        }
        then(std::move(call), shard, plan(bytes));
      });
}

}  // namespace portico::api::rpc
