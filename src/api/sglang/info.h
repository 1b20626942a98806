// SGLang's own control routes: model and server facts, abort, cache flush; and what is behind them,
// which gRPC uses too.
#pragma once

#include <string>
#include <string_view>

#include "api/context.h"
#include "api/route_table.h"
#include "base/status.h"
#include "service/serving_model.h"
#include "text/json.h"

namespace portico::api {

void AddSglangRoutes(RouteTable& routes);

std::string ModelInfoBody(const ServingModel& model);
Json ServerInfo(const ApiContext& api);
// Aborts the calls of that rid, or all, on every shard; on `shard` at once.
void AbortEverywhere(ShardContext& shard, const std::string& rid, bool all);

}  // namespace portico::api
