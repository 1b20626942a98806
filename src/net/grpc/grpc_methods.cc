#include "net/grpc/grpc_methods.h"

#include <algorithm>
#include <utility>

namespace portico::net {

GrpcMethod& GrpcMethods::Slot(std::string name) {
  if (auto found = by_name_.find(name); found != by_name_.end()) return *found->second;
  GrpcMethod& made = all_.emplace_back();
  made.name = std::move(name);
  made.index = all_.size() - 1;
  by_name_.emplace(made.name, &made);
  return made;
}

void GrpcMethods::Add(std::string name, GrpcHandler handler) {
  GrpcMethod& method = Slot(std::move(name));
  method.handler = std::move(handler);
  method.on_streams = nullptr;
}

void GrpcMethods::AddStreaming(std::string name, GrpcStreamHandler handler) {
  GrpcMethod& method = Slot(std::move(name));
  method.on_streams = std::move(handler);
  method.handler = nullptr;
}

void GrpcMethods::LimitMessages(std::string_view name, size_t bytes) {
  by_name_.at(name)->max_message_bytes = bytes;
}

const GrpcMethod* GrpcMethods::Find(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

bool GrpcMethods::HasService(std::string_view name) const {
  return std::any_of(all_.begin(), all_.end(), [name](const GrpcMethod& method) {
    std::string_view full = method.name;
    return full.size() > name.size() + 2 && full.substr(1, name.size()) == name &&
           full[name.size() + 1] == '/';
  });
}

}  // namespace portico::net
