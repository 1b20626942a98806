// What SGLang's native protocol says in JSON: a message's meta_info, and a server's facts.
#pragma once

#include <google/protobuf/map.h>

#include <string>
#include <string_view>
#include <vector>

#include "engine/grpc/token_wire.h"
#include "text/json.h"

namespace portico {

// Names to JSON texts.
using MetaInfo = google::protobuf::Map<std::string, std::string>;

// -1: it is not there, or is no count.
int32_t MetaCount(const MetaInfo& meta, const std::string& name);
// The last `tokens` positions; none where the message has none.
Status ReadMetaLogprobs(const MetaInfo& meta, int tokens, std::vector<PositionLogprobs>* out);
// Of the prompt from `start` on; its first position is left out.
Status ReadMetaPromptLogprobs(const MetaInfo& meta, int32_t start,
                              std::vector<PositionLogprobs>* out);
// Sets `finish` and `matched_token` where the answer has ended.
Status ReadMetaFinish(const MetaInfo& meta, TokenDelta* out);

TokenWorkerFacts FactsOfModelInfo(const Json& said, const std::string& model_path);
// What was not said, from the model's folder. FAILED_PRECONDITION: it is not on this machine.
Status CompleteFacts(TokenWorkerFacts* facts);
// As TokenWire::DecodeLoads().
StatusOr<TokenWorkerLoad> LoadOfRanks(const Json& ranks, int rank);

}  // namespace portico
