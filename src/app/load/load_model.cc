#include "app/load/load_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "app/load/load_text.h"
#include "app/load/sglang_model.h"
#include "app/load/token_model.h"
#include "app/program_path.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/processors.h"
#include "engine/llama/import/quantize.h"
#include "engine/llama/kv/kv_type.h"
#include "engine/llama/llama_engine.h"
#include "engine/llama/model/model.h"
#include "engine/llama/model/model_folder.h"
#include "engine/mock/mock_engine.h"
#include "message/sampling_ranges.h"
#include "service/plan/end_tokens.h"
#include "text/json.h"

namespace portico {
namespace {

namespace fs = std::filesystem;

constexpr int32_t kMockContextLength = 32768;

// A file that comes with this program: where it is installed, or up from where it was built.
StatusOr<std::string> FindBeside(const char* installed, const char* in_tree) {
  std::error_code ignored;
  std::vector<fs::path> places;
  const fs::path self = ProgramPath();
  if (!self.empty()) {
    places.push_back(self.parent_path() / installed);
    for (fs::path at = self.parent_path(); at.has_relative_path(); at = at.parent_path()) {
      places.push_back(at / in_tree);
    }
  }
  for (const fs::path& place : places) {
    if (fs::exists(place, ignored)) return fs::weakly_canonical(place).string();
  }
  return Error(StatusCode::kNotFound, fmt::format("{} is not in the folder of this program",
                                                  fs::path(in_tree).filename().string()));
}

StatusOr<std::unique_ptr<Engine>> MakeMock(const ModelOptions& options, const std::string& path,
                                           const ServingModel& model) {
  const Tokenizer& tokenizer = *model.tokenizer;
  MockEngineOptions mock;
  mock.model_path = path;
  mock.vocab_size = tokenizer.vocab_size();
  if (const auto source = llama::FindModel(path); source.ok() && source->is_folder) {
    PORTICO_ASSIGN_OR_RETURN(const auto generation, llama::ReadGeneration(source->path));
    mock.eos_token_ids = generation.eos_token_ids;
  }
  mock.eos_token_ids =
      JoinEndTokens(std::move(mock.eos_token_ids), model.end_token_ids, mock.vocab_size);
  mock.context_length = options.context_length > 0 ? options.context_length : kMockContextLength;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.IsSpecial(id)) mock.special_ids.push_back(id);
  }
  mock.ttft_ms = options.mock_ttft_ms;
  mock.itl_ms = options.mock_itl_ms;
  mock.tokens_per_step = options.mock_tokens_per_step;
  PORTICO_ASSIGN_OR_RETURN(mock.faults, ParseMockFaults(options.mock_fault));
  mock.seed = static_cast<uint64_t>(options.mock_seed);
  if (options.max_running_requests > 0) mock.max_running_requests = options.max_running_requests;
  mock.max_queued_requests = options.max_queued_requests;
  if (options.mock_kv_cells > 0) {
    mock.simulation = {.kv_cells = options.mock_kv_cells,
                       .step_ms = options.mock_step_ms,
                       .prefill_us = options.mock_prefill_us,
                       .decode_us = options.mock_decode_us};
    if (options.chunked_prefill_size > 0) {
      mock.simulation->chunk_tokens = options.chunked_prefill_size;
    }
    if (options.max_running_requests == 0) mock.max_running_requests = 256;
  }
  if (options.is_embedding) mock.task = ModelTask::kEmbed;
  if (options.mock_labels > 0) {
    mock.task = ModelTask::kClassify;
    mock.labels = options.mock_labels;
  }
  return NewMockEngine(std::move(mock));
}

StatusOr<std::unique_ptr<llama::LlamaModel>> LoadLlama(
    const ModelOptions& options, const std::string& path, const SharedResources& shared,
    const LoadProgress& progress, ServingModel* model, TokenizerSource* tokenizer) {
  llama::ModelOptions wanted;
  wanted.path = path;
  wanted.dtype = options.dtype;
  wanted.kv_cache_dtype = options.kv_cache_dtype;
  wanted.quantization = options.quantization;
  wanted.context_length = options.context_length;
  wanted.threads = options.threads;
  wanted.cache_bytes = static_cast<uint64_t>(shared.model_cache_bytes);
  wanted.is_embedding = options.is_embedding;
  wanted.deterministic = options.enable_deterministic_inference;
  if (options.pooling != "auto") {
    PORTICO_ASSIGN_OR_RETURN(wanted.pooling, ParsePooling(options.pooling));
  }
  PORTICO_ASSIGN_OR_RETURN(auto loaded, llama::LlamaModel::Load(wanted, progress));
  for (const std::string& note : loaded->info().notes)
    LogWarning("model `{}`: {}", model->id, note);
  *tokenizer = {loaded->info().tokenizer_path, loaded->info().lower_case};
  model->prompts = loaded->info().prompts;
  model->judge = loaded->info().judge;
  if (options.sampling_defaults == "model") model->defaults = loaded->info().defaults;
  return loaded;
}

// For a model whose tokenizer is loaded.
StatusOr<std::unique_ptr<Engine>> MakeLlama(const ModelOptions& options,
                                            std::unique_ptr<llama::LlamaModel> loaded,
                                            const SharedResources& shared,
                                            const ServingModel& model) {
  llama::LlamaEngineOptions engine;
  if (options.max_running_requests > 0) engine.max_running_requests = options.max_running_requests;
  engine.max_queued_requests = options.max_queued_requests;
  if (options.chunked_prefill_size > 0) engine.chunked_prefill_size = options.chunked_prefill_size;
  engine.max_total_tokens = options.max_total_tokens;
  engine.threads = options.threads;
  engine.cores = shared.cores;
  engine.mapped_bytes = shared.mapped_bytes;
  engine.enable_prefix_cache = !options.disable_radix_cache;
  engine.return_original_logprob = options.return_original_logprob;
  engine.end_token_ids = model.end_token_ids;
  PORTICO_ASSIGN_OR_RETURN(auto made, llama::NewLlamaEngine(std::move(loaded), engine));
  LogInfo("model `{}`: {}", model.id, made->description());
  return std::unique_ptr<Engine>(std::move(made));
}

// Only what the native API can leave to the model.
Status TakePreferred(const std::string& text, ServingModel* model) {
  if (text.empty()) return OkStatus();
  const auto bad = [](std::string_view what) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("--preferred-sampling-params: {}", what));
  };
  const auto json = Json::Parse(text);
  if (!json.ok() || !json->is_object()) return bad("is not a JSON object");
  for (const auto& [name, value] : json->as_object()) {
    if (!value.is_number()) return bad(fmt::format("{:.64} must be a number", name));
    const double number = value.as_double();
    const auto take = [&](const NumberRange& range, std::optional<float>* to) {
      if (!range.Holds(number)) return bad(fmt::format("{} must be {}", name, range.text));
      *to = static_cast<float>(number);
      return OkStatus();
    };
    const bool whole = value.is_int() && number >= -1 && number <= kMaxInt32;
    Status status;
    if (name == "temperature") {
      status = take(kTemperatureRange, &model->preferred.temperature);
    } else if (name == "top_p") {
      status = take(kTopPRange, &model->preferred.top_p);
    } else if (name == "min_p") {
      status = take(kMinPRange, &model->preferred.min_p);
    } else if (name == "repetition_penalty") {
      status = take(kRepetitionRange, &model->preferred.repetition_penalty);
    } else if (name == "top_k" && whole && number != 0) {
      model->preferred.top_k = static_cast<int32_t>(number);
    } else if (name == "max_new_tokens" && whole && number >= 0) {
      model->preferred_max_new_tokens = static_cast<int32_t>(number);
    } else if (name == "top_k" || name == "max_new_tokens") {
      status = bad(fmt::format("{} is out of range", name));
    } else {
      status = bad(fmt::format("{:.64} cannot be preferred", name));
    }
    PORTICO_RETURN_IF_ERROR(status);
  }
  model->preferred_json = text;
  return OkStatus();
}

StatusOr<std::unique_ptr<Engine>> MakeSglang(const ModelOptions& options, const std::string& path,
                                             const SharedResources& shared,
                                             const LoadProgress& progress,
                                             std::unique_ptr<Engine> engine, ServingModel* model,
                                             TokenizerSource* tokenizer) {
  if (engine == nullptr) {
    PORTICO_ASSIGN_OR_RETURN(engine, MakeSglangEngine(options, path, shared, progress));
  }
  // The same files that SGLang reads.
  PORTICO_ASSIGN_OR_RETURN(const llama::ModelSource source,
                           llama::FindModel(engine->info().model_path));
  tokenizer->path = source.path;
  if (source.is_folder && options.sampling_defaults == "model") {
    PORTICO_ASSIGN_OR_RETURN(const auto generation, llama::ReadGeneration(source.path));
    model->defaults = generation.defaults;
  }
  return engine;
}

// To be called when the model has its engine and its tokenizer.
void TakeEndTokens(ServingModel* model) {
  const EngineInfo& engine = model->engine->info();
  std::vector<TokenId> of_tokenizer = std::move(model->end_token_ids);
  model->end_token_ids = JoinEndTokens(engine.eos_token_ids, of_tokenizer, engine.vocab_size);
}

// Some published folders have a token or two more than the model has rows; the service refuses those ids.
void CompareVocabularies(const ServingModel& model) {
  int32_t engine = model.engine->info().vocab_size;
  if (model.tokenizer->vocab_size() <= engine) return;
  LogWarning("the tokenizer at {} has {} ids, the model {}: requests with the other ids fail",
             model.tokenizer_path, model.tokenizer->vocab_size(), engine);
}

}  // namespace

StatusOr<std::string> DemoModelPath() {
  auto config = FindBeside("../share/portico/models/demo/config.json", "models/demo/config.json");
  if (config.ok()) return fs::path(*config).parent_path().string();
  return Error(
      StatusCode::kNotFound,
      "the demo model is not in the folder of this program; name a model with --model-path");
}

Status CheckBeforeLoading(const ModelOptions& options) {
  if (options.engine == "llama") {
    const Status known = llama::ParseKvType(options.kv_cache_dtype).status();
    if (!known.ok()) {
      return Error(known.code(), fmt::format("--kv-cache-dtype: {}", MessageOf(known)));
    }
    if (!options.quantization.empty()) {
      const Status type = llama::ParseQuantization(options.quantization).status();
      if (!type.ok()) return Error(type.code(), fmt::format("--quantization: {}", MessageOf(type)));
    }
  }
  if (options.engine == "grpc") PORTICO_RETURN_IF_ERROR(CheckTokenWorkers(options));
  if (options.chat_template.empty()) return OkStatus();
  StatusOr<std::string> given = GivenTemplate(options.chat_template);
  Status status = given.status();
  if (given.ok()) status = ChatTemplate::FromSource(*std::move(given), {}).status();
  if (status.ok()) return status;
  return Error(status.code(), fmt::format("--chat-template: {}", MessageOf(status)));
}

StatusOr<std::string> SglangLauncherPath() {
  return FindBeside("../share/portico/python/portico/sglang_launch.py",
                    "python/portico/sglang_launch.py");
}

SharedResources ShareResources(const ServeOptions& options) {
  int32_t cores = UsableProcessors();
  int32_t sharers = 0;
  for (const ModelOptions& model : options.models) {
    if (model.engine != "llama") continue;
    cores -= model.threads;
    if (model.threads == 0) ++sharers;
  }
  SharedResources shared;
  shared.model_cache_bytes = options.model_cache_bytes;
  shared.max_request_cost = options.max_request_cost_bytes;
  shared.log_requests = options.log_requests;
  shared.drain_time =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(options.drain_timeout));
  shared.cores = std::max(1, cores / std::max(1, sharers));
  return shared;
}

StatusOr<std::unique_ptr<ServingModel>> MakeRemoteModel(const ModelOptions& options, std::string id,
                                                        std::unique_ptr<Engine> engine,
                                                        const std::string& tokenizer_path,
                                                        const ServingModel* like) {
  auto model = std::make_unique<ServingModel>();
  model->id = std::move(id);
  model->created = UnixSeconds();
  model->engine = std::move(engine);
  if (like == nullptr) {
    const std::string& given =
        options.tokenizer_path.empty() ? options.model_path : options.tokenizer_path;
    PORTICO_RETURN_IF_ERROR(
        LoadText(options, {given.empty() ? tokenizer_path : given}, model.get()));
  } else {
    model->output = like->output;
    model->tokenizer_path = like->tokenizer_path;
    model->tokenizer = like->tokenizer;
    model->conversation_cache = like->conversation_cache;
    model->long_texts = like->long_texts;
    model->chat_template = like->chat_template;
    model->render_pace = like->render_pace;
    model->chat_template_error = like->chat_template_error;
    model->joins_pairs = like->joins_pairs;
    model->plain_pair_template = like->plain_pair_template;
    model->judge = like->judge;
    model->end_token_ids = like->end_token_ids;
  }
  CompareVocabularies(*model);
  TakeEndTokens(model.get());
  return model;
}

StatusOr<std::unique_ptr<ServingModel>> LoadServingModel(const ModelOptions& options,
                                                         const SharedResources& shared,
                                                         const LoadProgress& progress,
                                                         std::unique_ptr<Engine> joined) {
  auto model = std::make_unique<ServingModel>();
  model->created = UnixSeconds();
  model->max_request_cost = shared.max_request_cost;
  model->log_requests = shared.log_requests;
  PORTICO_RETURN_IF_ERROR(TakePreferred(options.preferred_sampling_params, model.get()));
  model->stream_interval = options.stream_interval;
  model->allow_auto_truncate = options.allow_auto_truncate;
  model->weights->SetFirstVersion(options.weight_version);
  const bool mock = options.engine == "mock";
  const bool remote_model = options.engine == "grpc";
  const bool demo =
      options.model_path.empty() && !remote_model && (!mock || options.tokenizer_path.empty());
  std::string path = options.model_path;
  if (demo) {
    PORTICO_ASSIGN_OR_RETURN(path, DemoModelPath());
  } else if (path.empty()) {
    path = options.tokenizer_path;
  }
  model->id = ModelId(options);

  TokenizerSource tokenizer{path};
  std::unique_ptr<llama::LlamaModel> loaded;
  if (options.engine == "sglang") {
    PORTICO_ASSIGN_OR_RETURN(model->engine, MakeSglang(options, path, shared, progress,
                                                       std::move(joined), model.get(), &tokenizer));
  } else if (options.engine == "grpc") {
    PORTICO_ASSIGN_OR_RETURN(TokenModel remote, MakeTokenModel(options, shared.shards));
    model->engine = std::move(remote.engine);
    if (options.model_path.empty()) tokenizer.path = remote.tokenizer_path;
  } else if (!mock) {
    PORTICO_ASSIGN_OR_RETURN(loaded,
                             LoadLlama(options, path, shared, progress, model.get(), &tokenizer));
  }
  if (!options.tokenizer_path.empty()) tokenizer.path = options.tokenizer_path;
  PORTICO_RETURN_IF_ERROR(LoadText(options, tokenizer, model.get()));
  if (mock) {
    PORTICO_ASSIGN_OR_RETURN(model->engine, MakeMock(options, path, *model));
  } else if (loaded != nullptr) {
    PORTICO_ASSIGN_OR_RETURN(model->engine, MakeLlama(options, std::move(loaded), shared, *model));
  }
  CompareVocabularies(*model);
  TakeEndTokens(model.get());
  const EngineInfo& info = model->engine->info();
  if (info.task == ModelTask::kGenerate) {
    LogInfo("model `{}`: an answer ends with {}", model->id,
            SpellTokens(*model->tokenizer, model->end_token_ids));
  }
  if (shared.grammars != nullptr && info.can.grammars && !info.can.compiles_grammars) {
    PORTICO_ASSIGN_OR_RETURN(model->grammar_model,
                             shared.grammars->AddModel(grammar::MakeVocabulary(
                                 *model->tokenizer, info.vocab_size, info.eos_token_ids)));
    model->grammar_compiler = shared.grammars;
  }
  return model;
}

}  // namespace portico
