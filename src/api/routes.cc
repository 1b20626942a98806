#include "api/admin/health.h"
#include "api/openai/embedding_handlers.h"
#include "api/openai/handlers.h"
#include "api/openai/rerank_handlers.h"
#include "api/openai/score_handler.h"
#include "api/router.h"
#include "api/sglang/control_handlers.h"
#include "api/sglang/generate_handler.h"
#include "api/sglang/info.h"
#include "api/sglang/weights_handler.h"

namespace portico::api {

Router MakeRouter() {
  Router router;
  openai::AddOpenAiRoutes(router);
  openai::AddScoreRoute(router);
  openai::AddEmbeddingRoutes(router);
  openai::AddRerankRoutes(router);
  AddSglangRoutes(router);
  AddGenerateRoute(router);
  AddControlRoutes(router);
  AddWeightsRoute(router);
  AddAdminRoutes(router);
  return router;
}

}  // namespace portico::api
