// The gateway's HTTP surface: what it answers itself (probes, workers, metrics), what it asks all
// workers (controls), and what it passes on to one of them (everything else of an inference
// server's API).
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "api/browser_rules.h"
#include "api/gateway/control_keys.h"
#include "base/metrics.h"
#include "net/http/exchange.h"
#include "router/gateway.h"

namespace portico::api {

// Shared by all shards; constant after the start but for the flag.
struct GatewayContext {
  router::Gateway* gateway = nullptr;
  Registry* registry = nullptr;
  std::string api_key;                    // empty: no authentication
  std::vector<ControlKey> control_keys;   // of workers and controls; empty: api_key
  bool audit = false;                     // each control is a line in the log
  std::vector<std::string> cors_origins;  // whose pages may call; "*": all; empty: no CORS
  BrowserRules browser;
  std::string server_note;  // a JSON object that /get_server_info has as "portico"; empty: none
  std::atomic<bool> draining{false};
};

// Looks at a request's head, before its body is read: the key, and the browser rules. Any shard.
net::HeadVerdict AdmitGateway(const net::HttpRequest& head, const GatewayContext& context);
// The transport's own refusals, in OpenAI's form.
std::string WriteGatewayError(const net::HttpError& error);

// Answers the request, on its shard.
void DispatchGateway(std::unique_ptr<net::Exchange> exchange, GatewayContext& context,
                     router::GatewayShard& shard);

// The listener for metrics: probes and /metrics alone.
void DispatchWatch(std::unique_ptr<net::Exchange> exchange, GatewayContext& context);

}  // namespace portico::api
