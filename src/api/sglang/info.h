// SGLang's own control routes: model and server facts, abort, cache flush.
#pragma once

#include "api/router.h"

namespace portico::api {

void AddSglangRoutes(Router& router);

}  // namespace portico::api
