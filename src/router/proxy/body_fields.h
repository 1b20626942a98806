// Fields that the gateway puts into a JSON request for its worker, without writing the rest anew.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "router/worker.h"

namespace portico::router {

// What the gateway sets for the two workers of a pair, and for a rank.
inline constexpr std::string_view kPairFields[] = {"bootstrap_host", "bootstrap_port",
                                                   "bootstrap_room", "disagg_prefill_dp_rank"};
inline constexpr std::string_view kRankFields[] = {"data_parallel_rank", "routed_dp_rank"};

// OK if `body` is a JSON object without a field of `reserved`: INVALID_ARGUMENT with the field if it
// has one, or a reader that takes the last of two equal names would follow the client. `body` has
// simdjson's padding behind it. Fields behind a place where the JSON breaks are not seen; there every
// reader stops.
//
// `rooms`, unless null, becomes the number of answers that a request for generation asks for, at least 1 and at
// most kMaxPairRooms: its prompts times the largest of `n` and `best_of`.
Status CheckFields(simdjson::ondemand::parser& parser, const std::string& body,
                   std::span<const std::string_view> reserved, int64_t* rooms = nullptr);

// `body`, an object, with `fields` ("\"a\":1,\"b\":2") in front of its own.
std::string InsertFields(std::string_view body, std::string_view fields);

// SGLang's fields of a request for a prefill and a decode worker: where decode fetches the KV cache,
// and the number under which both know it. A batch counts up from the room. The prefill worker's rank
// follows from the room there (room modulo dp_size), unless it is named.
std::string PairFields(const WorkerSpec& prefill, int64_t room);
// Of a rank, or "".
std::string RankField(const WorkerSpec& worker);

}  // namespace portico::router
