#include "api/gateway/server_info.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "api/gateway/control_keys.h"
#include "api/gateway/gateway_reply.h"
#include "router/proxy/fan_out.h"
#include "text/json.h"

namespace portico::api {
namespace {

// SGLang shows all of its arguments.
bool IsSecretArgument(std::string_view name) {
  constexpr std::string_view kParts[] = {"api_key", "password", "secret"};
  return std::any_of(std::begin(kParts), std::end(kParts), [name](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  });
}

bool IsAddressArgument(std::string_view name) {
  constexpr std::string_view kEnds[] = {"_host", "_port",     "_addr",     "_address",
                                        "_url",  "_ipc_name", "_endpoint", "kv_events_config"};
  return name == "host" || name == "port" ||
         std::any_of(std::begin(kEnds), std::end(kEnds),
                     [name](std::string_view end) { return name.ends_with(end); });
}

void Mask(bool addresses, Json* json) {
  if (json->is_array()) {
    for (Json& each : json->as_array()) Mask(addresses, &each);
  } else if (json->is_object()) {
    for (auto& [name, value] : json->as_object()) {
      if (value.is_null()) continue;
      if (IsSecretArgument(name)) {
        value = Json("***");
      } else if (addresses && IsAddressArgument(name)) {
        value = Json(nullptr);
      } else {
        Mask(addresses, &value);
      }
    }
  }
}

}  // namespace

bool IsServerInfo(const net::HttpRequest& request) {
  return (request.method == "GET" || request.method == "HEAD") &&
         (request.path == "/get_server_info" || request.path == "/server_info");
}

void HandleServerInfo(std::unique_ptr<net::Exchange> exchange, const GatewayContext& context,
                      router::GatewayShard& shard) {
  const bool noted = !context.server_note.empty();
  const bool addresses = !noted && !shard.gateway().options().show_workers;
  router::SmallRequest request = {
      .target = noted ? "/get_server_info" : exchange->request.path,
      .authorization = KeyForWorkers(exchange->request, shard.gateway().options().kept_keys),
      .timeout = std::chrono::seconds(10),
      .to_token_workers = !noted};
  if (!exchange->request.query.empty()) request.target += "?" + exchange->request.query;
  auto shared = std::shared_ptr<net::Exchange>(std::move(exchange));
  router::FanOut::Start(
      shard, std::move(request), [shared, addresses, note = context.server_note](auto answers) {
        Json body(JsonObject{});
        bool found = false;
        for (const auto& [worker, answer] : answers) {
          if (!answer.ok() || answer->status != 200) continue;
          auto said = Json::Parse(answer->body);
          if (!said.ok() || !said->is_object()) continue;
          body = *std::move(said);
          Mask(addresses, &body);
          found = true;
          break;
        }
        if (!found && note.empty()) {
          return GatewayError(*shared, 503, "no worker has reported its server info",
                              "no_available_workers");
        }
        auto own = Json::Parse(note);
        if (own.ok()) body.Set("portico", *std::move(own));
        GatewayReply(*shared, 200, body.Dump());
      });
}

}  // namespace portico::api
