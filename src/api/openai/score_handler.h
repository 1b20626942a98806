// POST /v1/score.
#pragma once

#include "api/router.h"

namespace portico::api::openai {

void AddScoreRoute(Router& router);

}  // namespace portico::api::openai
