// What an OpenAI-compatible server does for a pipeline, one run a request (http_stage.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/http/http1_client.h"
#include "net/tls/tls_client.h"
#include "pipeline/stage.h"
#include "service/upstream/http_upstream.h"

namespace portico {

enum class HttpRole { kThink, kHear, kSay };

struct HttpStageOptions {
  std::string stage;
  HttpRole role = HttpRole::kThink;
  UpstreamUrl url;
  std::shared_ptr<const net::TlsClientContext> tls;  // null: plain
  std::string api_key;
  std::string model;  // empty: the server's own
  std::string voice;  // of a request that names none
  std::vector<std::string> voices;
  double max_seconds = 30;  // of sound in one call
  bool translates = false;
};

// A shard's connections to the server.
struct UpstreamPlace {
  UpstreamPlace(net::Shard& on_shard, const HttpStageOptions& options);

  net::Shard& shard;
  const std::shared_ptr<const net::TlsClientContext> tls;
  const net::ClientTarget target;
  std::unique_ptr<net::Http1Client> client;  // on the shard; made when needed
};

// `options` outlives the run.
std::unique_ptr<pipeline::StageRun> NewHttpThinker(const HttpStageOptions& options,
                                                   std::shared_ptr<UpstreamPlace> place,
                                                   std::shared_ptr<const pipeline::Request> request,
                                                   std::shared_ptr<pipeline::StageOutput> output);
// Takes sound; what is heard has the times of its stretch of speech.
std::unique_ptr<pipeline::StageRun> NewHttpEars(const HttpStageOptions& options,
                                                std::shared_ptr<UpstreamPlace> place,
                                                std::shared_ptr<const pipeline::Request> request,
                                                std::shared_ptr<pipeline::StageOutput> output);
// Takes clauses; sound is 24 kHz unless the server names another rate.
std::unique_ptr<pipeline::StageRun> NewHttpVoice(const HttpStageOptions& options,
                                                 std::shared_ptr<UpstreamPlace> place,
                                                 std::shared_ptr<const pipeline::Request> request,
                                                 std::shared_ptr<pipeline::StageOutput> output);

}  // namespace portico
