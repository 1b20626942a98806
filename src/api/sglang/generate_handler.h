// POST /generate: SGLang's native text generation.
#pragma once

#include "api/router.h"

namespace portico::api {

void AddGenerateRoute(Router& router);

}  // namespace portico::api
