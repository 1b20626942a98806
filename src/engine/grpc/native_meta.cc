#include "engine/grpc/native_meta.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "engine/grpc/generate_codec.h"
#include "engine/llama/model/model_folder.h"

namespace portico {
namespace {

constexpr std::string_view kNull = "null";
constexpr uintmax_t kMaxConfig = 4 << 20;
constexpr int64_t kMaxMetaLabels = 1 << 16;

// 0 for what is missing or no count of 32 bits.
int32_t CountIn(const Json& json, std::string_view name) {
  const int64_t value = json.GetInt(name, 0);
  return value < 0 || value > INT32_MAX ? 0 : static_cast<int32_t>(value);
}

// The fallback for what is missing or nothing that is counted: the sum of all ranks is still a count of 64 bits.
double FigureIn(const Json& json, std::string_view name, double fallback) {
  constexpr double kMostOfAFigure = 1e15;
  const double value = json.GetDouble(name, fallback);
  return value >= 0 && value <= kMostOfAFigure ? value : fallback;
}

// Null where it is absent or says null.
StatusOr<Json> MetaValue(const MetaInfo& meta, const std::string& name) {
  const auto found = meta.find(name);
  if (found == meta.end() || found->second == kNull) return Json();
  return Json::Parse(found->second);
}

// [log-probability or null, token, text].
Status ReadLogprob(const Json& from, TokenLogprob* out) {
  if (!from.is_array() || from.as_array().size() < 2 || !from.as_array()[1].is_int()) {
    return BadWorkerMessage("a log-probability");
  }
  const Json& value = from.as_array()[0];
  out->logprob = value.is_number() ? static_cast<float>(value.as_double()) : 0.0f;
  out->token = static_cast<TokenId>(from.as_array()[1].as_int());
  return OkStatus();
}

// From position `first` on; `top` may have fewer positions, or nothing at all.
Status ReadPositions(const Json& chosen, const Json& top, size_t first,
                     std::vector<PositionLogprobs>* out) {
  if (chosen.is_null()) return OkStatus();
  if (!chosen.is_array()) return BadWorkerMessage("log-probabilities");
  const JsonArray& positions = chosen.as_array();
  for (size_t i = first; i < positions.size(); ++i) {
    PositionLogprobs& position = out->emplace_back();
    PORTICO_RETURN_IF_ERROR(ReadLogprob(positions[i], &position.chosen));
    if (!top.is_array() || i >= top.as_array().size() || !top.as_array()[i].is_array()) continue;
    for (const Json& each : top.as_array()[i].as_array()) {
      PORTICO_RETURN_IF_ERROR(ReadLogprob(each, &position.top.emplace_back()));
    }
  }
  return OkStatus();
}

StatusOr<Json> ReadJsonFile(const std::filesystem::path& path) {
  std::error_code failed;
  const uintmax_t size = std::filesystem::file_size(path, failed);
  if (failed || size > kMaxConfig) {
    return Error(StatusCode::kNotFound, path.string() + " cannot be read");
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return Json::Parse(text);
}

}  // namespace

int32_t MetaCount(const MetaInfo& meta, const std::string& name) {
  const auto found = meta.find(name);
  int32_t count = -1;
  if (found == meta.end() || !absl::SimpleAtoi(found->second, &count)) return -1;
  return std::max(-1, count);
}

Status ReadMetaLogprobs(const MetaInfo& meta, int tokens, std::vector<PositionLogprobs>* out) {
  if (tokens == 0 || !meta.contains("output_token_logprobs")) return OkStatus();
  PORTICO_ASSIGN_OR_RETURN(const Json chosen, MetaValue(meta, "output_token_logprobs"));
  if (!chosen.is_array()) return OkStatus();
  PORTICO_ASSIGN_OR_RETURN(Json top, MetaValue(meta, "output_top_logprobs"));
  const size_t size = chosen.as_array().size();
  return ReadPositions(chosen, top, size - std::min(size, static_cast<size_t>(tokens)), out);
}

Status ReadMetaPromptLogprobs(const MetaInfo& meta, int32_t start,
                              std::vector<PositionLogprobs>* out) {
  PORTICO_ASSIGN_OR_RETURN(const Json chosen, MetaValue(meta, "input_token_logprobs"));
  PORTICO_ASSIGN_OR_RETURN(const Json top, MetaValue(meta, "input_top_logprobs"));
  return ReadPositions(chosen, top, start > 0 ? 0 : 1, out);
}

Status ReadMetaFinish(const MetaInfo& meta, TokenDelta* out) {
  PORTICO_ASSIGN_OR_RETURN(const Json reason, MetaValue(meta, "finish_reason"));
  if (reason.is_null()) return OkStatus();
  const std::string type = reason.is_string() ? reason.as_string() : reason.GetString("type");
  if (type == "stop") {
    out->finish = FinishReason::kStop;
    if (const Json* matched = reason.Find("matched"); matched != nullptr && matched->is_int()) {
      out->matched_token = static_cast<TokenId>(matched->as_int());
    }
  } else if (type == "length") {
    out->finish = FinishReason::kLength;
  } else if (type == "abort") {
    out->finish = FinishReason::kAbort;
  } else {
    return BadWorkerMessage("finish reason `" + type.substr(0, 40) + "`");
  }
  return OkStatus();
}

TokenWorkerFacts FactsOfModelInfo(const Json& said, const std::string& model_path) {
  TokenWorkerFacts facts;
  facts.tokenizer_path = said.GetString("tokenizer_path");
  facts.served_model_name = said.GetString("served_model_name");
  facts.default_sampling_json = said.GetString("preferred_sampling_params");
  EngineInfo& info = facts.info;
  info.name = "grpc";
  info.model_path = model_path;
  info.architecture = said.GetString("model_type");
  if (const Json* names = said.Find("architectures"); names != nullptr && names->is_array() &&
                                                      !names->as_array().empty() &&
                                                      names->as_array()[0].is_string()) {
    info.architecture = names->as_array()[0].as_string();
  }
  info.vocab_size = CountIn(said, "vocab_size");
  info.context_length = CountIn(said, "max_model_len");
  const bool generates = said.GetBool("is_generation", true);
  const int64_t labels = std::clamp<int64_t>(said.GetInt("num_labels", 0), 0, kMaxMetaLabels);
  info.task = generates    ? ModelTask::kGenerate
              : labels > 0 ? ModelTask::kClassify
                           : ModelTask::kEmbed;
  const Json* names = said.Find("id2label");
  for (int64_t i = 0; i < labels; ++i) {
    const std::string fallback = fmt::format("LABEL_{}", i);
    info.labels.push_back(names == nullptr ? fallback
                                           : names->GetString(std::to_string(i), fallback));
  }
  info.can.logprobs = true;
  info.can.prompt_logprobs = true;
  info.can.grammars = true;
  info.can.compiles_grammars = true;
  info.can.pooling = !generates;
  info.can.pause = true;
  info.can.weight_updates = true;
  info.can.profiles = true;
  return facts;
}

Status CompleteFacts(TokenWorkerFacts* facts) {
  EngineInfo& info = facts->info;
  const auto source = llama::FindModel(info.model_path);
  if (!source.ok() || !source->is_folder) {
    // A vocabulary alone is enough: answers then end where the worker says so.
    if (info.vocab_size > 0) return OkStatus();
    return Error(StatusCode::kFailedPrecondition,
                 "the worker does not report the size of its vocabulary, and the model's folder "
                 "is not on this machine");
  }
  const auto generation = llama::ReadGeneration(source->path);
  if (generation.ok()) info.eos_token_ids = generation->eos_token_ids;
  if (info.vocab_size > 0 && info.context_length > 0) return OkStatus();
  PORTICO_ASSIGN_OR_RETURN(const Json config,
                           ReadJsonFile(std::filesystem::path(source->path) / "config.json"));
  const Json* text = config.Find("text_config");
  const auto number = [&](std::string_view name) {
    const int32_t own = CountIn(config, name);
    return own > 0 || text == nullptr ? own : CountIn(*text, name);
  };
  if (info.vocab_size <= 0) info.vocab_size = number("vocab_size");
  if (info.context_length <= 0) info.context_length = number("max_position_embeddings");
  return OkStatus();
}

StatusOr<TokenWorkerLoad> LoadOfRanks(const Json& ranks, int wanted) {
  if (!ranks.is_array() || ranks.as_array().empty()) return BadWorkerMessage("no load");
  TokenWorkerLoad load{0, 0, 0, 0, 0, 0};
  bool found = false;
  for (const Json& rank : ranks.as_array()) {
    if (wanted >= 0 && rank.GetInt("dp_rank", 0) != wanted) continue;
    found = true;
    const double waiting = FigureIn(rank, "num_waiting_reqs", 0);
    load.waiting += waiting;
    load.running +=
        FigureIn(rank, "num_running_reqs", std::max(0.0, FigureIn(rank, "num_reqs", 0) - waiting));
    load.used_tokens += FigureIn(rank, "num_used_tokens", FigureIn(rank, "num_tokens", 0));
    load.total_tokens += FigureIn(rank, "max_total_num_tokens", 0);
    load.throughput += FigureIn(rank, "gen_throughput", 0);
    load.token_usage = std::max(load.token_usage, FigureIn(rank, "token_usage", 0));
  }
  if (!found) return BadWorkerMessage("no load of the rank");
  return load;
}

}  // namespace portico
