// GET /v1/audio/speech/stream: a WebSocket that takes text as it is written and speaks it by sentences.
#pragma once

#include <memory>
#include <string>

#include "api/context.h"
#include "net/http/exchange.h"

namespace portico::api::openai {

void HandleSpeechSocket(std::unique_ptr<net::Exchange> exchange, ShardContext& shard);

// What stands before every WebSocket: the API key, in the header or, as a browser can set none, in
// the subprotocol ("realtime, openai-insecure-api-key.KEY", OpenAI's clients); and the page's origin,
// which must be this host or --cors-origin.
Status AdmitSocket(const net::HttpRequest& request, const ApiContext& api);
// The subprotocol that the server chooses: "realtime" where it is offered, else "".
std::string ChosenProtocol(const net::HttpRequest& request);

}  // namespace portico::api::openai
