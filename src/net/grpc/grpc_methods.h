// The gRPC methods that a server has.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "net/grpc/grpc_call.h"

namespace portico::net {

// For a method whose client sends one message, whatever it gets back: called when the message is
// whole. A client that sends none or several has been answered UNIMPLEMENTED.
using GrpcHandler = std::function<void(std::unique_ptr<GrpcCall> call, std::string message)>;
// For a method whose client sends a stream: called when the head has come, and reads by
// GrpcCall::Read().
using GrpcStreamHandler = std::function<void(std::unique_ptr<GrpcCall> call)>;

struct GrpcMethod {
  std::string name;              // "/package.Service/Method"
  size_t index = 0;              // counts from 0, in the order of Add(); for tables beside this one
  GrpcHandler handler;           // one of the two
  GrpcStreamHandler on_streams;  // one of the two
  size_t max_message_bytes = 0;  // 0: the server's
};

// Filled before the server starts, then constant; thread safe from then on. Handlers are called on
// the shard of the call's connection.
class GrpcMethods {
 public:
  GrpcMethods() = default;
  GrpcMethods(GrpcMethods&&) = default;  // the entries stay where they are
  GrpcMethods& operator=(GrpcMethods&&) = default;

  // `name` as in GrpcMethod. A second handler for one name replaces the first.
  void Add(std::string name, GrpcHandler handler);
  void AddStreaming(std::string name, GrpcStreamHandler handler);
  // Of a method that has been added.
  void LimitMessages(std::string_view name, size_t bytes);

  // Null if there is none.
  const GrpcMethod* Find(std::string_view name) const;
  bool HasService(std::string_view name) const;  // "package.Service"
  const std::deque<GrpcMethod>& all() const { return all_; }

 private:
  GrpcMethod& Slot(std::string name);

  std::deque<GrpcMethod> all_;
  absl::flat_hash_map<std::string_view, GrpcMethod*> by_name_;
};

}  // namespace portico::net
