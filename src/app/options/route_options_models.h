// What `portico route` is told of the models of workers that take tokens: the flags for all of them, and `models`
// in the file for single ones.
#pragma once

#include <string>

#include "app/gateway/gateway_service.h"
#include "app/options/route_options.h"
#include "base/status.h"

namespace YAML {
class Node;
}

namespace portico {

// Adds the file's `models`, a mapping by name. INVALID_ARGUMENT with what is wrong, of which *line becomes the line,
// counted from 0.
Status ReadModelTexts(const YAML::Node& models, const std::string& file, RouteOptions* options,
                      int* line);

// Sets the service's model and named models. INVALID_ARGUMENT with the flag, or with the model and its key.
Status SetModels(const RouteOptions& options, GatewayServiceOptions* service);

}  // namespace portico
