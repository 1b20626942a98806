#include "api/admin/health.h"
#include "api/openai/audio/audio_routes.h"
#include "api/openai/embedding/embedding_handlers.h"
#include "api/openai/embedding/rerank_handlers.h"
#include "api/openai/embedding/score_handler.h"
#include "api/openai/handlers.h"
#include "api/route_table.h"
#include "api/sglang/control_handlers.h"
#include "api/sglang/engine_routes.h"
#include "api/sglang/generate_handler.h"
#include "api/sglang/info.h"
#include "api/sglang/parse_handlers.h"
#include "api/sglang/profile_handlers.h"
#include "api/sglang/weights_handler.h"

namespace portico::api {

RouteTable MakeRouteTable() {
  RouteTable routes;
  openai::AddOpenAiRoutes(routes);
  openai::AddAudioRoutes(routes);
  openai::AddScoreRoute(routes);
  openai::AddEmbeddingRoutes(routes);
  openai::AddRerankRoutes(routes);
  AddSglangRoutes(routes);
  AddGenerateRoute(routes);
  AddControlRoutes(routes);
  AddProfileRoutes(routes);
  AddWeightsRoute(routes);
  AddEngineRoutes(routes);
  AddParseRoutes(routes);
  AddAdminRoutes(routes);
  return routes;
}

}  // namespace portico::api
