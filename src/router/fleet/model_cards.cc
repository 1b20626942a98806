#include "router/fleet/model_cards.h"

#include <algorithm>
#include <map>
#include <utility>

#include "text/json.h"

namespace portico::router {
namespace {

constexpr size_t kMaxModels = 1024;
constexpr size_t kMaxModelName = 1024;

// A positive number that counts something, or 0.
int64_t CountIn(const Json& card, std::string_view name) {
  constexpr double kMost = 1e15;
  const Json* value = card.Find(name);
  if (value == nullptr || !value->is_number()) return 0;
  const double number = value->as_double();
  return number >= 1 && number <= kMost ? static_cast<int64_t>(number) : 0;
}

int64_t LeastKnown(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

}  // namespace

std::optional<std::vector<ModelCard>> ReadModelCards(std::string_view body) {
  const auto parsed = Json::Parse(body);
  const Json* data = parsed.ok() && parsed->is_object() ? parsed->Find("data") : nullptr;
  if (data == nullptr || !data->is_array()) return std::nullopt;
  std::vector<ModelCard> cards;
  for (const Json& model : data->as_array()) {
    if (!model.is_object()) continue;
    ModelCard card;
    card.id = model.GetString("id");
    if (card.id.empty() || card.id.size() > kMaxModelName || cards.size() >= kMaxModels) continue;
    card.root = model.GetString("root");
    if (card.root.size() > kMaxModelName) card.root.clear();
    card.created = CountIn(model, "created");
    card.max_model_len = CountIn(model, "max_model_len");
    cards.push_back(std::move(card));
  }
  return cards;
}

std::vector<ModelCard> UnitedCards(const WorkerSet& set) {
  std::map<std::string, ModelCard> united;
  for (const std::string& model : set.Models()) united[model].id = model;
  for (const WorkerPtr& worker : set.workers()) {
    std::vector<std::string> serves = worker->models();
    std::sort(serves.begin(), serves.end());
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
