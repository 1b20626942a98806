#include "service/pooling/pooling_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "service/plan/capability_checks.h"
#include "service/plan/plan.h"
#include "service/plan/request_cost.h"
#include "service/plan/rid_names.h"
#include "service/plan/token_limit.h"
#include "tokenizer/batch.h"

namespace portico {
namespace {

constexpr std::string_view kTypesField = "token_type_ids";

std::string PlaceOf(const EmbeddingRequest& request, size_t i) {
  return request.is_list ? fmt::format("{}[{}]", request.input_field, i) : request.input_field;
}

Status CheckTypes(const EmbeddingRequest& request, int32_t types) {
  if (request.token_types.empty()) return OkStatus();
  if (request.token_types.size() != request.inputs.size()) {
    return InvalidArgument(kTypesField, "token_type_ids must have a list for each input");
  }
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const std::vector<uint8_t>& of = request.token_types[i];
    if (of.empty() || request.inputs[i].ids.size() != of.size()) {
      return InvalidArgument(kTypesField, "token_type_ids must have a type for each token id");
    }
    const int highest = *std::max_element(of.begin(), of.end());
    if (highest < types) continue;
    return InvalidArgument(
        kTypesField, fmt::format("token_type_ids must be in 0 to {}, got {}", types - 1, highest));
  }
  return OkStatus();
}

Status CheckAdapters(const EmbeddingRequest& request, const EngineInfo& engine) {
  constexpr std::string_view kField = "lora_path";
  PORTICO_RETURN_IF_ERROR(CheckLength(request.lora_path, request.inputs.size(), kField));
  const auto& names = request.lora_path.values;
  const bool any = std::any_of(names.begin(), names.end(),
                               [](const std::string& name) { return !name.empty(); });
  if (!any || engine.can.pooling_lora) return OkStatus();
  return InvalidArgument(
      kField, fmt::format("lora_path is not supported by this model's engine, {}: leave it out",
                          engine.name));
}

// Puts the prompt that the request asks for, or the model's default, before each text.
Status AddPrompt(const EmbeddingPrompts& prompts, EmbeddingRequest* request) {
  constexpr std::string_view kField = "prompt_name";
  const std::string& name = request->prompt_name ? *request->prompt_name : prompts.default_name;
  if (name.empty()) return OkStatus();
  const std::string* prompt = prompts.Find(name);
  if (prompt == nullptr) {
    std::vector<std::string_view> known;
    for (const auto& [one, text] : prompts.texts) known.push_back(one);
    return InvalidArgument(
        kField,
        known.empty()
            ? fmt::format("the model has no prompts, therefore none named '{}'", name)
            : fmt::format("the model has no prompt '{}'; it has {}", name, fmt::join(known, ", ")));
  }
  for (CompletionRequest::Prompt& input : request->inputs) {
    if (!input.is_ids) {
      input.text.insert(0, *prompt);
    } else if (request->prompt_name) {
      return InvalidArgument(kField, "prompt_name is for texts, not for token ids");
    }
  }
  return OkStatus();
}

// Gives the inputs of these numbers, which are texts, their ids.
Status Encode(const PoolingPlanner& planner, const std::vector<size_t>& which,
              const Tokenizer::EncodeOptions& options, EmbeddingRequest* request) {
  if (which.empty()) return OkStatus();
  std::vector<std::string_view> texts;
  texts.reserve(which.size());
  for (size_t i : which) texts.push_back(request->inputs[i].text);
  auto encoded = BatchTokenizer(planner.model.tokenizer, planner.helpers).EncodeIds(texts, options);
  if (!encoded.ok()) {
    return InvalidArgument(request->input_field, std::string(MessageOf(encoded.status())));
  }
  for (size_t i = 0; i < which.size(); ++i) {
    request->inputs[which[i]].ids = std::move((*encoded)[i]);
  }
  return OkStatus();
}

template <typename T>
void Cut(size_t size, bool left, std::vector<T>* items) {
  if (items->size() <= size) return;
  const auto surplus = static_cast<ptrdiff_t>(items->size() - size);
  const auto from = left ? items->begin() : items->end() - surplus;
  items->erase(from, from + surplus);
}

// Gives every input ids that fit the limit, where it cuts.
Status Tokenize(const PoolingPlanner& planner, const TokenLimit& limit, EmbeddingRequest* request) {
  std::vector<size_t> texts;
  std::vector<size_t> lists;
  for (size_t i = 0; i < request->inputs.size(); ++i) {
    (request->inputs[i].is_ids ? lists : texts).push_back(i);
  }
  PORTICO_RETURN_IF_ERROR(Encode(planner, texts, {}, request));
  if (!limit.cuts()) return OkStatus();
  // Few texts are too long, and the way that cuts is slower.
  const TokenLimit::Options cutting(*planner.model.tokenizer, limit);
  std::erase_if(texts, [&](size_t i) { return request->inputs[i].ids.size() <= limit.tokens(); });
  for (size_t i : lists) {
    Cut(limit.tokens(), cutting.left(), &request->inputs[i].ids);
    if (request->token_types.empty()) continue;
    Cut(limit.tokens(), cutting.left(), &request->token_types[i]);
  }
  return Encode(planner, texts, cutting.get(), request);
}

}  // namespace

StatusOr<PoolingPlan> PoolingPlanner::PlanInputs(EmbeddingRequest request) const {
  const EngineInfo& engine = model.engine->info();
  const size_t count = request.inputs.size();
  PORTICO_RETURN_IF_ERROR(CheckCount(count, request.input_field));
  PORTICO_RETURN_IF_ERROR(CheckLength(request.rid, count, "rid"));
  PORTICO_RETURN_IF_ERROR(CheckTypes(request, engine.token_types));
  PORTICO_RETURN_IF_ERROR(CheckAdapters(request, engine));
  PORTICO_RETURN_IF_ERROR(CheckRank(request.data_parallel_rank.value_or(0),
                                    engine.can.pooling_ranks, request.rank_field));
  RequestCost cost(model.max_request_cost);
  const auto values = static_cast<int64_t>(
      std::max(static_cast<size_t>(engine.embedding_size), engine.labels.size()));
  for (const CompletionRequest::Prompt& input : request.inputs) {
    PORTICO_RETURN_IF_ERROR(cost.Add(request.input_field, 1,
                                     kTextCost + PromptCost(input) + values * kPooledValueCost));
  }
  PORTICO_ASSIGN_OR_RETURN(const TokenLimit limit, TokenLimit::Of(engine, request.truncate));
  PORTICO_RETURN_IF_ERROR(AddPrompt(model.prompts, &request));
  PORTICO_RETURN_IF_ERROR(PassGate(gate, WorkOf(request.inputs)));
  PORTICO_RETURN_IF_ERROR(Tokenize(*this, limit, &request));

  PoolingPlan plan;
  plan.texts.resize(count);
  for (size_t i = 0; i < count; ++i) {
    PORTICO_RETURN_IF_ERROR(
        limit.Check(request.inputs[i].ids, request.input_field, PlaceOf(request, i)));
    plan.texts[i].tokens =
        std::make_shared<const std::vector<TokenId>>(std::move(request.inputs[i].ids));
    plan.texts[i].lora_path = request.lora_path.Of(i, std::string());
    if (engine.can.pooling_ranks > 1) {
      plan.texts[i].data_parallel_rank = request.data_parallel_rank.value_or(-1);
    }
    if (request.token_types.empty()) continue;
    plan.texts[i].token_types = std::move(request.token_types[i]);
  }
  plan.rids = std::move(request.rid.values);
  if (plan.rids.size() == 1 && plan.rids[0].empty()) plan.rids.clear();
  return plan;
}

StatusOr<PoolingPlan> PoolingPlanner::PlanNamedInputs(EmbeddingRequest request,
                                                      std::string (*make_rid)()) const {
  PORTICO_ASSIGN_OR_RETURN(
      std::vector<std::string> names,
      NamePrompts(request.rid, request.inputs.size(), request.is_list, make_rid));
  request.rid = {};
  PORTICO_ASSIGN_OR_RETURN(PoolingPlan plan, PlanInputs(std::move(request)));
  plan.rids = std::move(names);
  return plan;
}

Status PoolingPlanner::CheckCount(size_t count, std::string_view field) const {
  if (count <= max_texts) return OkStatus();
  return InvalidArgument(
      field, fmt::format("{} must hold at most {} texts, got {}", field, max_texts, count));
}

}  // namespace portico
