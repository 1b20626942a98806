// What workers say of the models they serve, and what the gateway says of them together.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/fleet/worker_set.h"
#include "router/worker.h"

namespace portico::router {

// Of a worker's answer to GET /v1/models: {"data": [{"id", "created", "root", "max_model_len"}, …]}.
// Models without a name and those beyond kMaxModels are left out, and so are fields that make no sense.
// Nothing if it has another form. `fault`: the first of what is wrong with it; empty: nothing is.
inline constexpr size_t kMaxModels = 1024;
std::optional<std::vector<ModelCard>> ReadModelCards(std::string_view body, std::string* fault);

// The models of all workers that can take requests, or may (Health::kUnknown), sorted by name, one card each:
// `root` of the first worker that says one, the earliest `created`, and the least `max_model_len`: a request
// within it fits each worker.
std::vector<ModelCard> UnitedCards(const WorkerSet& set);

}  // namespace portico::router
