// /load_lora_adapter, /load_lora_adapter_from_tensors and /unload_lora_adapter
#pragma once

#include "api/route_table.h"

namespace portico::api {

void AddLoraRoutes(RouteTable& routes);

}  // namespace portico::api
