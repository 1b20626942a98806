#pragma once

#include "api/route_table.h"

namespace portico::api::openai {

// Speech and transcriptions; answered 501 where no pipeline runs.
void AddAudioRoutes(RouteTable& routes);

}  // namespace portico::api::openai
