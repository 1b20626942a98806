#include "app/load_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include "app/read_file.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/llama/llama_engine.h"
#include "engine/llama/model.h"
#include "engine/mock/mock_engine.h"
#include "template/pair_template.h"
#include "tokenizer/tokenizer_config.h"

namespace portico {
namespace {

namespace fs = std::filesystem;

constexpr int32_t kMockContextLength = 32768;

// --chat-template is a file, or the template itself (SGLang takes both).
StatusOr<std::string> GivenTemplate(const std::string& given) {
  if (given.find("{%") != std::string::npos || given.find("{{") != std::string::npos) return given;
  return ReadFile(given);
}

// What a model with this template, which may be a reranker's, makes of pairs.
void ReadPairs(std::string_view source, ServingModel* model) {
  model->joins_pairs = IsPairTemplate(source);
  if (model->judge || !AsksForYesOrNo(source)) return;
  const std::optional<TokenId> yes = model->tokenizer->TokenToId("yes");
  const std::optional<TokenId> no = model->tokenizer->TokenToId("no");
  if (yes && no) model->judge = JudgeTokens{*yes, *no};
}

// Takes a GGUF file's own template for pairs, which is no chat template, out of them; empty if there is none.
std::string TakePlainPairTemplate(TokenizerConfig* config) {
  std::string plain;
  std::erase_if(config->chat_templates, [&](const auto& named) {
    if (named.first != "rerank" || !IsPlainPairTemplate(named.second)) return false;
    plain = named.second;
    return true;
  });
  return plain;
}

void LoadTemplates(TokenizerConfig config, ServingModel* model) {
  std::string plain = TakePlainPairTemplate(&config);
  const std::vector<std::pair<std::string, std::string>>& templates = config.chat_templates;
  if (templates.empty()) {
    model->chat_template_error = "none is beside its tokenizer";
  } else if (auto parsed = ChatTemplate::FromTemplates(templates, config.NamedSpecialTokens());
             parsed.ok()) {
    model->chat_template = *std::move(parsed);
    if (templates.size() == 1) ReadPairs(templates.front().second, model);
  } else {
    model->chat_template_error = std::string(MessageOf(parsed.status()));
    LogWarning("the chat template cannot be used: {}", model->chat_template_error);
  }
  // A chat template for pairs goes first: it takes instructions.
  if (plain.empty() || model->joins_pairs) return;
  ReadPairs(plain, model);
  model->joins_pairs = true;
  model->plain_pair_template = std::move(plain);
}

// Where a model's tokenizer is, and what its folder says of it.
struct TokenizerSource {
  std::string path;
  bool lower_case = false;
};

Status LoadText(const ModelOptions& options, const TokenizerSource& source, ServingModel* model) {
  model->tokenizer_path = source.path;
  auto tokenizer = Tokenizer::Load(source.path, source.lower_case);
  if (!tokenizer.ok()) {
    return Error(
        tokenizer.status().code(),
        std::string(MessageOf(tokenizer.status())) +
            (options.tokenizer_path.empty() ? "; --tokenizer-path names another tokenizer" : ""));
  }
  model->tokenizer = *std::move(tokenizer);
  model->conversation_cache = std::make_shared<ConversationCache>(model->tokenizer);
  PORTICO_ASSIGN_OR_RETURN(TokenizerConfig config, LoadTokenizerConfig(source.path));
  if (options.chat_template.empty()) {
    LoadTemplates(std::move(config), model);
    return OkStatus();
  }
  PORTICO_ASSIGN_OR_RETURN(std::string given, GivenTemplate(options.chat_template));
  ReadPairs(given, model);
  PORTICO_ASSIGN_OR_RETURN(model->chat_template,
                           ChatTemplate::FromSource(std::move(given), config.NamedSpecialTokens()));
  return OkStatus();
}

StatusOr<std::unique_ptr<Engine>> MakeMock(const ModelOptions& options, const std::string& path,
                                           const Tokenizer& tokenizer) {
  MockEngineOptions mock;
  mock.model_path = path;
  mock.vocab_size = tokenizer.vocab_size();
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
  if (options.is_embedding) mock.task = ModelTask::kEmbed;
  if (options.mock_labels > 0) {
    mock.task = ModelTask::kClassify;
    mock.labels = options.mock_labels;
  }
  return NewMockEngine(std::move(mock));
}

StatusOr<std::unique_ptr<Engine>> MakeLlama(const ModelOptions& options, const std::string& path,
                                            const SharedResources& shared,
                                            const LoadProgress& progress, ServingModel* model,
                                            TokenizerSource* tokenizer) {
  llama::ModelOptions wanted;
  wanted.path = path;
  wanted.dtype = options.dtype;
  wanted.quantization = options.quantization;
  wanted.context_length = options.context_length;
  wanted.threads = options.threads;
  wanted.cache_bytes = static_cast<uint64_t>(shared.model_cache_bytes);
  wanted.is_embedding = options.is_embedding;
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

  llama::LlamaEngineOptions engine;
  if (options.max_running_requests > 0) engine.max_running_requests = options.max_running_requests;
  engine.max_queued_requests = options.max_queued_requests;
  if (options.chunked_prefill_size > 0) engine.chunked_prefill_size = options.chunked_prefill_size;
  engine.max_total_tokens = options.max_total_tokens;
  engine.threads = options.threads;
  engine.cores = shared.cores;
  engine.mapped_bytes = shared.mapped_bytes;
  engine.enable_prefix_cache = !options.disable_radix_cache;
  PORTICO_ASSIGN_OR_RETURN(auto made, llama::NewLlamaEngine(std::move(loaded), engine));
  LogInfo("model `{}`: {}", model->id, made->description());
  return std::unique_ptr<Engine>(std::move(made));
}

// Some published folders have a token or two more than the model has rows; the service refuses those ids.
void CompareVocabularies(const ServingModel& model) {
  int32_t engine = model.engine->info().vocab_size;
  if (model.tokenizer->vocab_size() <= engine) return;
  LogWarning("the tokenizer at {} has {} ids, the model knows {}: requests with the others fail",
             model.tokenizer_path, model.tokenizer->vocab_size(), engine);
}

}  // namespace

StatusOr<std::string> DemoModelPath() {
  std::error_code ignored;
  std::vector<fs::path> places;
  fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  if (!self.empty()) {
    places.push_back(self.parent_path() / "../share/portico/models/demo");
    for (fs::path at = self.parent_path(); at.has_relative_path(); at = at.parent_path()) {
      places.push_back(at / "models/demo");
    }
  }
  for (const fs::path& place : places) {
    if (fs::exists(place / "config.json", ignored)) return fs::weakly_canonical(place).string();
  }
  return Error(StatusCode::kNotFound,
               "the demo model is not beside this program; name a model with --model-path");
}

SharedResources ShareResources(const ServeOptions& options) {
  auto cores = static_cast<int32_t>(std::thread::hardware_concurrency());
  int32_t sharers = 0;
  for (const ModelOptions& model : options.models) {
    if (model.engine == "mock") continue;
    cores -= model.threads;
    if (model.threads == 0) ++sharers;
  }
  SharedResources shared;
  shared.model_cache_bytes = options.model_cache_bytes;
  shared.cores = std::max(1, cores / std::max(1, sharers));
  return shared;
}

StatusOr<std::unique_ptr<ServingModel>> LoadServingModel(const ModelOptions& options,
                                                         const SharedResources& shared,
                                                         const LoadProgress& progress) {
  auto model = std::make_unique<ServingModel>();
  model->created = UnixSeconds();
  const bool mock = options.engine == "mock";
  const bool demo = options.model_path.empty() && (!mock || options.tokenizer_path.empty());
  std::string path = options.model_path;
  if (demo) {
    PORTICO_ASSIGN_OR_RETURN(path, DemoModelPath());
  } else if (path.empty()) {
    path = options.tokenizer_path;
  }
  model->id = ModelId(options);

  TokenizerSource tokenizer{path};
  if (!mock) {
    PORTICO_ASSIGN_OR_RETURN(model->engine,
                             MakeLlama(options, path, shared, progress, model.get(), &tokenizer));
  }
  if (!options.tokenizer_path.empty()) tokenizer.path = options.tokenizer_path;
  PORTICO_RETURN_IF_ERROR(LoadText(options, tokenizer, model.get()));
  if (mock) {
    PORTICO_ASSIGN_OR_RETURN(model->engine, MakeMock(options, path, *model->tokenizer));
  }
  CompareVocabularies(*model);
  return model;
}

}  // namespace portico
