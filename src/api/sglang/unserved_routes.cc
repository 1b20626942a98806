#include "api/sglang/unserved_routes.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "api/context.h"
#include "api/reply.h"

namespace portico::api {
namespace {

struct UnservedRoute {
  const char* path;
  bool gets;
  bool posts;
  Access access;
  const char* why;
};

constexpr const char* kTransferEngine =
    "the server that SGLang itself runs at --engine-info-bootstrap-port reports the transfer "
    "engines "
    "of the ranks";

constexpr UnservedRoute kUnserved[] = {
    {"/configure_logging", true, true, Access::kAdmin,
     "it configures the request log of SGLang's Python front end, which does not run here; "
     "--log-requests and --log-level are this server's"},
    {"/dumper/*", false, true, Access::kAdmin,
     "tensors are dumped inside SGLang's processes; with DUMPER_SERVER_PORT=PORT in their "
     "environment they accept these calls at that port"},
    {"/get_remote_instance_transfer_engine_info", true, false, Access::kAdmin, kTransferEngine},
    {"/hicache/storage-backend", true, false, Access::kAdmin,
     "it reports the state of SGLang's Python front end; the schedulers' own state is at "
     "/get_internal_state"},
    {"/remote_instance_transfer_engine_info", true, false, Access::kAdmin, kTransferEngine},
    {"/set_trace_level", true, true, Access::kAdmin,
     "it sets the level of the traces that SGLang's Python front end writes, which does not run "
     "here"},
    {"/v1/decisions", false, true, Access::kKey,
     "decisions need prompts that SGLang's Python front end compiles with layouts of its own"},
    {"/v1/systemone", false, true, Access::kKey,
     "System One needs prompts that SGLang's Python front end compiles with layouts of its own"},
};

}  // namespace

void AddUnservedRoutes(RouteTable& routes) {
  for (const UnservedRoute& route : kUnserved) {
    const RouteHandler refuse = [&route](std::unique_ptr<net::Exchange> exchange,
                                         ShardContext& shard) {
      ReplyError(*exchange, shard.api,
                 Error(StatusCode::kUnimplemented,
                       fmt::format("{} is not served: {}", exchange->request.path, route.why)));
    };
    for (const auto& [method, has] : {std::pair("GET", route.gets), {"POST", route.posts}}) {
      if (!has) continue;
      routes.Add({.method = method,
                  .path = route.path,
                  .access = route.access,
                  .body = BodyType::kNone,
                  .handler = refuse});
    }
  }
}

}  // namespace portico::api
