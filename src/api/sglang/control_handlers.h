// SGLang's routes for operators: pause, continue, loads, profiles.
#pragma once

#include "api/router.h"

namespace portico::api {

void AddControlRoutes(Router& router);

}  // namespace portico::api
