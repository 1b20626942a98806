#include "router/fleet/model_cards.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "text/json.h"

namespace portico::router {
namespace {

constexpr size_t kMaxModelName = 1024;

void NoteFault(std::string fault, std::string* first) {
  if (first->empty()) *first = std::move(fault);
}

// A number that counts something, or 0.
int64_t CountIn(const Json& card, std::string_view name, std::string* fault) {
  constexpr double kMost = 1e15;
  const Json* value = card.Find(name);
  if (value == nullptr || value->is_null()) return 0;
  const double number = value->is_number() ? value->as_double() : -1;
  if (number >= 0 && number <= kMost) return static_cast<int64_t>(number);
  NoteFault(fmt::format("{} is {:.40}", name, value->Dump()), fault);
  return 0;
}

// A short text, or empty.
std::string TextIn(const Json& card, std::string_view name, std::string* fault) {
  const Json* value = card.Find(name);
  if (value == nullptr || value->is_null()) return {};
  std::string text = value->is_string() ? value->as_string() : std::string();
  if (value->is_string() && text.size() <= kMaxModelName) return text;
  NoteFault(fmt::format("{} is no short text", name), fault);
  return {};
}

bool MayTakeRequests(const Worker& worker) {
  const Health health = worker.health();
  return !worker.draining() && (health == Health::kHealthy || health == Health::kUnknown);
}

int64_t LeastKnown(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

}  // namespace

std::optional<std::vector<ModelCard>> ReadModelCards(std::string_view body, std::string* fault) {
  fault->clear();
  const auto parsed = Json::Parse(body);
  const Json* data = parsed.ok() && parsed->is_object() ? parsed->Find("data") : nullptr;
  if (data == nullptr || !data->is_array()) {
    NoteFault("it is not an object with a list `data`", fault);
    return std::nullopt;
  }
  std::vector<ModelCard> cards;
  absl::flat_hash_set<std::string> seen;
  for (const Json& model : data->as_array()) {
    if (cards.size() >= kMaxModels) {
      NoteFault(fmt::format("it has more than {} models", kMaxModels), fault);
      break;
    }
    ModelCard card;
    if (model.is_object()) card.id = TextIn(model, "id", fault);
    if (card.id.empty()) {
      NoteFault("a model has no name", fault);
      continue;
    }
    if (!seen.insert(card.id).second) {
      NoteFault(fmt::format("it has the model {:.100} twice", Json(card.id).Dump()), fault);
      continue;
    }
    card.root = TextIn(model, "root", fault);
    card.created = CountIn(model, "created", fault);
    card.max_model_len = CountIn(model, "max_model_len", fault);
    cards.push_back(std::move(card));
  }
  return cards;
}

std::vector<ModelCard> UnitedCards(const WorkerSet& set) {
  std::map<std::string, ModelCard> united;
  for (const WorkerPtr& worker : set.workers()) {
    if (!MayTakeRequests(*worker)) continue;
    std::vector<std::string> serves = worker->models();
    std::sort(serves.begin(), serves.end());
    for (const std::string& model : serves) united[model].id = model;
    for (const ModelCard& card : worker->cards()) {
      // Its configuration may say that it serves others.
      if (!std::binary_search(serves.begin(), serves.end(), card.id)) continue;
      ModelCard& one = united[card.id];
      one.id = card.id;
      if (one.root.empty()) one.root = card.root;
      one.created = LeastKnown(one.created, card.created);
      one.max_model_len = LeastKnown(one.max_model_len, card.max_model_len);
    }
  }
  std::vector<ModelCard> cards;
  for (auto& [id, card] : united) cards.push_back(std::move(card));
  return cards;
}

}  // namespace portico::router
