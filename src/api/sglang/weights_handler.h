// POST /update_weights_from_disk.
#pragma once

#include "api/router.h"

namespace portico::api {

void AddWeightsRoute(Router& router);

}  // namespace portico::api
