// A model that workers elsewhere compute: its engine, and where its tokenizer is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/options/options.h"
#include "engine/engine.h"
#include "net/loop/shard.h"

namespace portico {

struct TokenModel {
  std::unique_ptr<Engine> engine;
  std::string tokenizer_path;  // as the workers say, if it is on this machine; or empty
};

// Whether --worker-urls has at least one worker and each is a URL of one. INVALID_ARGUMENT names the flag.
Status CheckTokenWorkers(const ModelOptions& options);

// Connects the workers of --worker-urls and waits for the first that answers. Blocks. `shards` run, and
// outlive the engine's Stop(). Errors are sentences for the person who started the server.
StatusOr<TokenModel> MakeTokenModel(const ModelOptions& options,
                                    const std::vector<net::Shard*>& shards);

}  // namespace portico
