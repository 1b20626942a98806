// The environment of SGLang's Go server (bindings/golang/examples/oai_server), for `portico route` in its place.
#pragma once

#include <string>
#include <vector>

namespace portico {

// Where SGL_GRPC_ENDPOINTS or SGL_GRPC_ENDPOINT names workers and the words name neither workers nor a file: appends them,
// and of SGL_TOKENIZER_PATH, SGL_POLICY_NAME, PORT, LOG_DIR and LOG_LEVEL those for which the words have no flag.
void AddGoServerEnvironment(std::vector<std::string>* words);

}  // namespace portico
