// Texts through the parsers of a model's output: SGLang's /parse_function_call and /separate_reasoning, smg's
// /parse/function_call and /parse/reasoning.
#pragma once

#include "api/route_table.h"

namespace portico::api {

void AddParseRoutes(RouteTable& routes);

}  // namespace portico::api
