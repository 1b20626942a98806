// The services of a registry of methods.
#pragma once

#include <set>
#include <string>

#include "net/grpc/grpc_methods.h"

namespace portico::api::rpc {

// "/package.Service/Method" gives "package.Service".
inline std::string ServiceOf(const std::string& method) {
  return method.substr(1, method.rfind('/') - 1);
}

inline std::set<std::string> ServiceNames(const net::GrpcMethods& methods) {
  std::set<std::string> names;
  for (const net::GrpcMethod& method : methods.all()) names.insert(ServiceOf(method.name));
  return names;
}

}  // namespace portico::api::rpc
