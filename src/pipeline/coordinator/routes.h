// Which ways a request takes: the named route functions of native stages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/config/config.h"
#include "pipeline/request.h"

namespace portico::pipeline {

// Names by place: what a route function calls "hear" is the stage that it leads to.
using RouteFunction = bool (*)(const Request& request, std::string_view target);

// Null if there is none of that name.
RouteFunction FindRoute(std::string_view name);
std::string RouteNames();

// The stages behind `stage` that this request goes to: all but where a route_fn chooses. Streams
// back to stages before it lead nowhere new, and are not among them.
std::vector<std::string> RoutesOf(const StageConfig& stage, const Request& request);
// Those streams.
std::vector<std::string> FeedbackOf(const StageConfig& stage, const Request& request);

}  // namespace portico::pipeline
