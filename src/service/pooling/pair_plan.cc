#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "service/plan/request_cost.h"
#include "service/plan/token_limit.h"
#include "service/pooling/pair_frame.h"
#include "service/pooling/pooling_plan.h"
#include "service/pooling/rendered_pairs.h"
#include "tokenizer/batch.h"

namespace portico {
namespace {

using Pairs = PoolingPlanner::Pairs;
using Prompt = CompletionRequest::Prompt;

constexpr std::string_view kQueryField = "query";

struct Joined {
  std::vector<TokenId> ids;
  std::vector<uint8_t> types;
};

std::string PlaceOf(const Pairs& pairs, size_t i) {
  return fmt::format("{}[{}]", pairs.item_field, i);
}

Status CheckNotEmpty(const Pairs& pairs) {
  const auto empty = [](const Prompt& prompt) {
    return prompt.is_ids ? prompt.ids.empty() : prompt.text.empty();
  };
  if (empty(pairs.query)) {
    return InvalidArgument(kQueryField, fmt::format("{} must not be empty", kQueryField));
  }
  for (size_t i = 0; i < pairs.items.size(); ++i) {
    if (!empty(pairs.items[i])) continue;
    return InvalidArgument(pairs.item_field, PlaceOf(pairs, i) + " must not be empty");
  }
  return OkStatus();
}

// Puts the pairs of one request together.
class Joiner {
 public:
  Joiner(const PoolingPlanner& planner, const Pairs& pairs, const TokenLimit& limit)
      : tokenizer_(*planner.model.tokenizer),
        batch_(planner.model.tokenizer, planner.helpers),
        pairs_(pairs),
        limit_(limit) {}

  StatusOr<std::vector<Joined>> Run() {
    std::vector<Joined> joined(pairs_.items.size());
    if (pairs_.query.is_ids) {
      for (size_t i = 0; i < joined.size(); ++i) JoinIds(pairs_.items[i].ids, &joined[i]);
      return joined;
    }
    std::vector<size_t> whole;  // what must be encoded as a pair
    const PairFrame frame(tokenizer_);
    if (frame.known()) {
      PORTICO_RETURN_IF_ERROR(JoinTexts(frame, &joined));
      for (size_t i = 0; limit_.cuts() && i < joined.size(); ++i) {
        if (joined[i].ids.size() > limit_.tokens()) whole.push_back(i);
      }
    } else {
      for (size_t i = 0; i < joined.size(); ++i) whole.push_back(i);
    }
    PORTICO_RETURN_IF_ERROR(EncodeWhole(whole, &joined));
    return joined;
  }

 private:
  void JoinIds(const std::vector<TokenId>& item, Joined* out) const {
    const std::vector<TokenId>& first = pairs_.item_first ? item : pairs_.query.ids;
    const std::vector<TokenId>& second = pairs_.item_first ? pairs_.query.ids : item;
    out->ids = first;
    out->ids.insert(out->ids.end(), second.begin(), second.end());
    out->types.resize(first.size(), 0);
    out->types.resize(out->ids.size(), 1);
    if (!limit_.cuts() || out->ids.size() <= limit_.tokens()) return;
    out->ids.resize(limit_.tokens());
    out->types.resize(limit_.tokens());
  }

  Status JoinTexts(const PairFrame& frame, std::vector<Joined>* joined) const {
    Tokenizer::EncodeOptions bare;
    bare.add_special_tokens = false;
    std::vector<TokenId> query;
    if (Status status = batch_.EncodeIds(pairs_.query.text, bare, &query); !status.ok()) {
      return InvalidArgument(kQueryField, std::string(MessageOf(status)));
    }
    std::vector<std::string_view> texts;
    texts.reserve(pairs_.items.size());
    for (const Prompt& item : pairs_.items) texts.push_back(item.text);
    const auto items = batch_.EncodeIds(texts, bare);
    if (!items.ok()) return BadItem(items.status());
    for (size_t i = 0; i < joined->size(); ++i) {
      const std::vector<TokenId>& item = (*items)[i];
      Joined& out = (*joined)[i];
      frame.Join(pairs_.item_first ? item : query, pairs_.item_first ? query : item, &out.ids,
                 &out.types);
    }
    return OkStatus();
  }

  // The general way, which also cuts.
  Status EncodeWhole(const std::vector<size_t>& which, std::vector<Joined>* joined) const {
    if (which.empty()) return OkStatus();
    std::vector<BatchTokenizer::Input> inputs;
    inputs.reserve(which.size());
    for (size_t i : which) {
      const std::string& item = pairs_.items[i].text;
      inputs.push_back({pairs_.item_first ? item : pairs_.query.text,
                        pairs_.item_first ? pairs_.query.text : item});
    }
    const TokenLimit::Options cutting(tokenizer_, limit_);
    const auto encoded =
        batch_.Encode(inputs, limit_.cuts() ? cutting.get() : Tokenizer::EncodeOptions{});
    if (!encoded.ok()) return BadItem(encoded.status());
    for (size_t i = 0; i < which.size(); ++i) {
      Joined& out = (*joined)[which[i]];
      const Encoding& from = (*encoded)[i];
      out.ids = from.ids;
      out.types.assign(from.type_ids.begin(), from.type_ids.end());
    }
    return OkStatus();
  }

  Status BadItem(const Status& status) const {
    return InvalidArgument(pairs_.item_field, std::string(MessageOf(status)));
  }

  const Tokenizer& tokenizer_;
  const BatchTokenizer batch_;
  const Pairs& pairs_;
  const TokenLimit& limit_;
};

StatusOr<std::vector<Joined>> RenderPairs(const ServingModel& model, const Pairs& pairs,
                                          StepGate* gate) {
  if (pairs.item_first) {
    return InvalidArgument("item_first",
                           "this model's template has places of its own for query and item");
  }
  TextPairs texts{.query = pairs.query.text,
                  .items = {},
                  .item_field = pairs.item_field,
                  .instruction = pairs.instruction,
                  .truncate = pairs.truncate,
                  .gate = gate};
  for (const Prompt& item : pairs.items) texts.items.push_back(item.text);
  PORTICO_ASSIGN_OR_RETURN(std::vector<std::vector<TokenId>> rendered,
                           EncodeRenderedPairs(model, texts));
  std::vector<Joined> joined(rendered.size());
  for (size_t i = 0; i < joined.size(); ++i) joined[i].ids = std::move(rendered[i]);
  return joined;
}

}  // namespace

StatusOr<PoolingPlan> PoolingPlanner::PlanPairs(const Pairs& pairs) const {
  const EngineInfo& engine = model.engine->info();
  PORTICO_RETURN_IF_ERROR(CheckCount(pairs.items.size(), pairs.item_field));
  PORTICO_RETURN_IF_ERROR(CheckNotEmpty(pairs));
  RequestCost cost(model.max_request_cost);
  const int64_t shared =
      PromptCost(pairs.query) + static_cast<int64_t>(2 * pairs.instruction.size());
  for (const Prompt& item : pairs.items) {
    PORTICO_RETURN_IF_ERROR(cost.Add(pairs.item_field, 1, kTextCost + shared + PromptCost(item)));
  }
  PORTICO_ASSIGN_OR_RETURN(const TokenLimit limit, TokenLimit::Of(engine, pairs.truncate));
  const bool rendered = model.joins_pairs && !pairs.query.is_ids;
  // Many tokenizers are given the query with each item.
  size_t work = pairs.items.size() * (pairs.query.text.size() + kPromptWork);
  for (const Prompt& item : pairs.items) work += item.text.size();
  if (!rendered) PORTICO_RETURN_IF_ERROR(PassGate(gate, work));
  PORTICO_ASSIGN_OR_RETURN(std::vector<Joined> joined, rendered
                                                           ? RenderPairs(model, pairs, gate)
                                                           : Joiner(*this, pairs, limit).Run());
  PoolingPlan plan;
  plan.texts.resize(joined.size());
  for (size_t i = 0; i < joined.size(); ++i) {
    PORTICO_RETURN_IF_ERROR(limit.Check(joined[i].ids, pairs.item_field, PlaceOf(pairs, i)));
    plan.texts[i].tokens = std::make_shared<const std::vector<TokenId>>(std::move(joined[i].ids));
    if (engine.token_types > 1) plan.texts[i].token_types = std::move(joined[i].types);
  }
  if (!pairs.rid.empty()) plan.rids.push_back(pairs.rid);
  return plan;
}

StatusOr<PoolingPlan> PoolingPlanner::PlanRerank(const RerankRequest& request) const {
  if (!model.joins_pairs && !request.instruction.empty()) {
    return InvalidArgument("instruct", "this model's template takes no instruction");
  }
  Prompt query;
  query.text = request.query;
  std::vector<Prompt> documents(request.documents.size());
  for (size_t i = 0; i < documents.size(); ++i) documents[i].text = request.documents[i];
  PORTICO_ASSIGN_OR_RETURN(PoolingPlan plan, PlanPairs({.query = query,
                                                        .items = documents,
                                                        .item_field = "documents",
                                                        .truncate = request.truncate,
                                                        .instruction = request.instruction,
                                                        .rid = request.rid}));
  plan.least_values = std::max<size_t>(model.engine->info().labels.size(), 1);
  return plan;
}

StatusOr<PoolingPlan> PoolingPlanner::PlanScores(const ScoreRequest& request) const {
  return PlanPairs({.query = request.query,
                    .items = request.items,
                    .item_field = "items",
                    .item_first = request.item_first,
                    .truncate = request.truncate,
                    .instruction = {},
                    .rid = request.rid});
}

}  // namespace portico
