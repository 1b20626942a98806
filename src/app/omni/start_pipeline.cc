#include "app/omni/start_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "api/openai/audio/voice/reference_load.h"
#include "app/program_path.h"
#include "app/read_file.h"
#include "pipeline/remote/greeting.h"
#include "pipeline/stages/native_stages.h"
#include "service/upstream/http_stage.h"

namespace portico {
namespace {

namespace fs = std::filesystem;

constexpr char kDemo[] = "demo.yaml";

// A file of a folder that lies beside this program or above it.
std::string FindBeside(const std::vector<std::string>& paths) {
  std::error_code ignored;
  const fs::path self = ProgramPath();
  for (fs::path at = self.parent_path(); at.has_relative_path(); at = at.parent_path()) {
    for (const std::string& path : paths) {
      if (fs::exists(at / path, ignored)) return fs::weakly_canonical(at / path).string();
    }
  }
  return "";
}

}  // namespace

StatusOr<std::string> PipelineFile(const std::string& path) {
  if (!path.empty()) return path;
  return BundledPipeline(kDemo);
}

pipeline::StagePrograms ProgramsOfStages() {
  pipeline::StagePrograms programs;
  programs.program = ProgramPath();
  programs.python_script =
      FindBeside({"share/portico/python/portico/stage.py", "python/portico/stage.py"});
  return programs;
}

StatusOr<std::string> BundledPipeline(const std::string& name) {
  std::error_code ignored;
  std::vector<fs::path> places;
  const fs::path self = ProgramPath();
  if (!self.empty()) {
    places.push_back(self.parent_path() / "../share/portico/pipelines");
    for (fs::path at = self.parent_path(); at.has_relative_path(); at = at.parent_path()) {
      places.push_back(at / "pipelines");
    }
  }
  for (const fs::path& place : places) {
    if (fs::exists(place / name, ignored)) return fs::weakly_canonical(place / name).string();
  }
  return Error(
      StatusCode::kNotFound,
      fmt::format("pipelines/{} is not beside this program; name a pipeline's file", name));
}

StatusOr<pipeline::PipelineConfig> LoadPipelineConfig(const std::string& path,
                                                      const pipeline::Overrides& overrides) {
  PORTICO_ASSIGN_OR_RETURN(const std::string file, PipelineFile(path));
  PORTICO_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  return pipeline::ParsePipelineConfig(text, file, overrides);
}

bool UsesModel(const pipeline::PipelineConfig& config) {
  return std::any_of(
      config.stages.begin(), config.stages.end(),
      [](const pipeline::StageConfig& stage) { return stage.factory_path == "portico.engine"; });
}

void ServeAlone(const pipeline::PipelineConfig& config, ServeOptions* options) {
  const ModelOptions none;
  const ModelOptions& first = options->models.front();
  if (UsesModel(config) || options->models.size() > 1 || !first.model_path.empty() ||
      first.engine != none.engine) {
    return;
  }
  // The pipeline is the model, and has its name.
  const std::string& name = first.served_model_name;
  if (!name.empty()) options->pipeline_overrides.emplace_back("name", name);
  options->models.clear();
}

pipeline::Pipeline::Kinds StageKinds(EngineStageContext context) {
  pipeline::Pipeline::Kinds kinds = pipeline::NativeStages();
  kinds.emplace("portico.http", HttpStageFactory(context));
  kinds.emplace("portico.engine", EngineStageFactory(std::move(context)));
  return kinds;
}

Status CheckPipeline(const ServeOptions& options) {
  if (!options.speech && options.pipeline.empty()) return OkStatus();
  PORTICO_ASSIGN_OR_RETURN(const pipeline::PipelineConfig config,
                           LoadPipelineConfig(options.pipeline, options.pipeline_overrides));
  return pipeline::Pipeline::CheckStages(config, StageKinds(EngineStageContext{}));
}

StatusOr<std::unique_ptr<pipeline::Pipeline>> StartPipeline(const ServeOptions& options,
                                                            EngineStageContext context,
                                                            Registry* registry) {
  if (!options.speech && options.pipeline.empty()) return std::unique_ptr<pipeline::Pipeline>();
  PORTICO_ASSIGN_OR_RETURN(const std::string file, PipelineFile(options.pipeline));
  PORTICO_ASSIGN_OR_RETURN(pipeline::PipelineConfig config,
                           LoadPipelineConfig(file, options.pipeline_overrides));
  const std::string& media = config.allowed_local_media_path;
  std::error_code no_folder;
  if (!media.empty() && !fs::is_directory(media, no_folder)) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("allowed_local_media_path: {} is not a folder", media));
  }
  registry->AddCallbackGauge(
      "portico_reference_bytes",
      "Bytes of samples of voices to imitate, at most 512 MiB, uploaded ones included.",
      [] { return static_cast<double>(api::openai::ReferenceLoad::SampleBytes()); });
  pipeline::StagePrograms programs = ProgramsOfStages();
  if (const char* token = std::getenv(pipeline::kTokenVariable)) programs.token = token;
  return pipeline::Pipeline::Start(std::move(config), StageKinds(std::move(context)), file,
                                   registry, programs);
}

std::string DescribePipeline(const pipeline::Pipeline& pipeline) {
  constexpr size_t kShownVoices = 6;
  std::vector<std::string> tasks;
  if (pipeline.Serves(pipeline::Task::kSpeech)) {
    std::vector<std::string> voices = pipeline.Voices();
    if (voices.size() > kShownVoices) {
      voices.resize(kShownVoices);
      voices.emplace_back("…");
    }
    tasks.push_back(voices.empty() ? "speech"
                                   : fmt::format("speech ({})", fmt::join(voices, ", ")));
  }
  if (pipeline.Serves(pipeline::Task::kTranscription)) tasks.emplace_back("transcriptions");
  if (pipeline.Serves(pipeline::Task::kChat)) tasks.emplace_back("chats");
  return fmt::format("`{}`: {}", pipeline.config().name, fmt::join(tasks, ", "));
}

}  // namespace portico
