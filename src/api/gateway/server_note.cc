#include "api/gateway/server_note.h"

#include <string>
#include <utility>

#include "api/gateway/gateway_reply.h"
#include "router/proxy/fan_out.h"
#include "text/json.h"

namespace portico::api {
namespace {

// SGLang shows its arguments, keys among them.
void DropKeys(Json* json) {
  if (json->is_array()) {
    for (Json& each : json->as_array()) DropKeys(&each);
  } else if (json->is_object()) {
    for (auto& [name, value] : json->as_object()) {
      const bool secret = name.find("api_key") != std::string::npos ||
                          name.find("password") != std::string::npos ||
                          name.find("secret") != std::string::npos;
      if (secret && !value.is_null()) {
        value = Json("***");
      } else {
        DropKeys(&value);
      }
    }
  }
}

}  // namespace

void HandleServerNote(std::unique_ptr<net::Exchange> exchange, const GatewayContext& context,
                      router::GatewayShard& shard) {
  const router::SmallRequest request = {
      .target = "/get_server_info", .timeout = std::chrono::seconds(10), .to_token_workers = false};
  auto shared = std::shared_ptr<net::Exchange>(std::move(exchange));
  router::FanOut::Start(shard, request, [shared, note = context.server_note](auto answers) {
    Json body(JsonObject{});
    for (const auto& [worker, answer] : answers) {
      if (!answer.ok() || answer->status != 200) continue;
      auto said = Json::Parse(answer->body);
      if (!said.ok() || !said->is_object()) continue;
      body = *std::move(said);
      DropKeys(&body);
      break;
    }
    auto own = Json::Parse(note);
    if (own.ok()) body.Set("portico", *std::move(own));
    GatewayReply(*shared, 200, body.Dump());
  });
}

}  // namespace portico::api
