// SGLang's own control routes: model and server facts, abort, cache flush; and what is behind them,
// which gRPC uses too.
#pragma once

#include <string>
#include <string_view>

#include "api/context.h"
#include "api/router.h"
#include "base/status.h"
#include "service/serving_model.h"
#include "text/json.h"

namespace portico::api {

void AddSglangRoutes(Router& router);

std::string ModelInfoBody(const ServingModel& model);
Json ServerInfo(const ApiContext& api);
// Of that model, or of all for "" (service/each_engine.h). FAILED_PRECONDITION while requests run or wait.
Status FlushCaches(const ModelRegistry& models, std::string_view model);
// Aborts the calls of that rid, or all, on every shard; on `shard` at once.
void AbortEverywhere(ShardContext& shard, const std::string& rid, bool all);

}  // namespace portico::api
