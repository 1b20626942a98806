#include "app/serve/serve_command.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "app/command_tools.h"
#include "app/load/load_model.h"
#include "app/load/load_models.h"
#include "app/omni/start_pipeline.h"
#include "app/options/options.h"
#include "app/options/options_table.h"
#include "app/serve/activity_log.h"
#include "app/serve/http_service.h"
#include "app/serve/sglang_fallback.h"
#include "base/counted.h"
#include "base/events/recorder.h"
#include "base/log.h"
#include "engine/llama/model/model_folder.h"
#include "grammar/compile/grammar_compiler.h"
#include "net/tls/tls.h"

namespace portico {
namespace {

constexpr timespec kActivityPeriod{10, 0};

// Loads on a thread of its own, so that the main thread hears signals meanwhile.
class Loader {
 public:
  Loader(const ServeOptions& options, std::shared_ptr<grammar::GrammarCompiler> grammars,
         HttpService* service)
      : thread_([this, &options, grammars = std::move(grammars), service, main = pthread_self()] {
          status_ = LoadModels(options, grammars, service);
          done_.store(true, std::memory_order_release);
          pthread_kill(main, SIGUSR1);
        }) {}
  ~Loader() {
    if (thread_.joinable()) thread_.join();
  }

  // Ends the thread, which has nothing more to do. Once, after done().
  void Join() { thread_.join(); }
  // The process ends while it works: nobody joins it.
  void Leave() { thread_.detach(); }

  bool done() const { return done_.load(std::memory_order_acquire); }
  const Status& status() const { return status_; }

 private:
  Status status_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

void SayReady(const ServeOptions& options, const HttpService& service, ModelRegistry& models) {
  for (const ServingModel* model : models.models()) {
    const EngineInfo& engine = model->engine->info();
    LogInfo("model `{}`: engine {}, {}{}context {} tokens", model->id, engine.name,
            engine.architecture.empty() ? "" : engine.architecture + ", ",
            engine.dtype.empty() ? "" : engine.dtype + ", ", engine.context_length);
  }
  if (const pipeline::Pipeline* pipeline = service.pipeline(); pipeline != nullptr) {
    LogInfo("pipeline {}", DescribePipeline(*pipeline));
  }
  LogInfo("ready: {}://{}/v1", options.ssl_certfile.empty() ? "http" : "https",
          AddressOf(options.host, service.port()));
}

// A file or folder of a model is not there. What an engine that runs elsewhere leaves behind may come yet.
bool NamesNothing(const ServeOptions& options, const Status& status) {
  return status.code() == StatusCode::kNotFound &&
         std::all_of(options.models.begin(), options.models.end(), [](const ModelOptions& model) {
           return model.engine == "llama" || model.engine == "mock";
         });
}

// No restart mends it: an option's value does not fit the model. A file of the model that is broken may be replaced.
bool NamesOption(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument && FindOption(FieldOf(status)) != nullptr;
}

Status CheckEachModel(const ServeOptions& options) {
  for (const ModelOptions& model : options.models) {
    PORTICO_RETURN_IF_ERROR(CheckBeforeLoading(model));
  }
  return OkStatus();
}

// --check: what can be told without loading or listening.
int CheckOnly(const ServeOptions& options) {
  Status good = ParseLogLevel(options.log_level).status();
  if (good.ok()) good = CheckEachModel(options);
  if (good.ok() && !options.ssl_certfile.empty()) {
    const net::TlsOptions tls{.certificate = options.ssl_certfile,
                              .key = options.ssl_keyfile,
                              .key_password = options.ssl_keyfile_password,
                              .client_ca = options.ssl_ca_certs};
    good = net::TlsContext::Load(tls, /*http2=*/true).status();
  }
  for (const ModelOptions& model : options.models) {
    if (good.ok() && model.engine == "llama" && !model.model_path.empty()) {
      good = llama::FindModel(model.model_path).status();
    }
  }
  if (!good.ok()) return Fail("serve", MessageOf(good), kUsageError);
  std::string names;
  for (const ModelOptions& model : options.models) {
    names += fmt::format("{}`{}`", names.empty() ? "" : ", ", ModelId(model));
  }
  std::printf("good; %s: %s\n",
              Counted(static_cast<int64_t>(options.models.size()), "model").c_str(), names.c_str());
  return 0;
}

// `refused`: why the model cannot be served here, where the options have an answer to that.
int Serve(const ServeOptions& options, std::string_view command, const sigset_t& signals,
          std::string* refused) {
  if (const Status status = CheckEachModel(options); !status.ok()) {
    return Fail(command, MessageOf(status), kUsageError);
  }
  // The process is forked here, before there are threads.
  auto compiling = grammar::CompileProcess::Start();
  if (!compiling.ok()) return Fail(command, MessageOf(compiling.status()));
  auto service = HttpService::Start(options);
  if (!service.ok()) {
    // A certificate or an address; not a port that somebody has.
    const bool wrong = service.status().code() == StatusCode::kInvalidArgument;
    return Fail(command, MessageOf(service.status()), wrong ? kUsageError : kFailed);
  }
  ModelRegistry& models = (*service)->models();
  auto grammars = std::make_shared<grammar::GrammarCompiler>(
      *std::move(compiling), GrammarOptions(options), &(*service)->registry());
  Loader loader(options, std::move(grammars), service->get());

  bool ready = false;
  ActivityLog activity(models);
  int signal = 0;
  while (true) {
    signal = sigtimedwait(&signals, nullptr, &kActivityPeriod);
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) break;
    if (!ready && loader.done()) {
      loader.Join();  // a second signal ends the process without it
      if (FallsBack(options, loader.status())) {
        *refused = MessageOf(loader.status());
        return 0;
      }
      if (!loader.status().ok()) {
        return Fail(command, MessageOf(loader.status()),
                    NamesNothing(options, loader.status()) || NamesOption(loader.status())
                        ? kUsageError
                        : kFailed);
      }
      ready = true;
      SayReady(options, **service, models);
    } else if (signal < 0 && errno == EAGAIN) {
      activity.Tick();
    }
  }
  if (!loader.done()) {
    // Nothing runs yet, and an import leaves only a temporary file that the next one clears away.
    std::fputc('\n', stderr);
    Fail(command, "stopped while loading");
    loader.Leave();
    _exit(0);
  }
  LogInfo("{}draining: requests in flight may finish for {:.0f} s; once more to stop now",
          signal == SIGHUP ? "SIGHUP: " : "", options.drain_timeout);
  // To the end: stage processes and the lines of a profile may take long, too.
  const SecondSignal second(signals, /*hangup_ends=*/true);
  const bool finished = (*service)->Drain(
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(options.drain_timeout)));
  service->reset();
  events::Shutdown();
  LogInfo("stopped{}", finished ? "" : "; some requests were aborted");
  return 0;
}

}  // namespace

int ServeCommand(int argc, char** argv) {
  auto parsed = ParseServeOptions(argc + 1, argv - 1);  // it skips the command's name
  if (!parsed.ok()) return Fail("serve", MessageOf(parsed.status()), kUsageError);
  if (parsed->print_and_exit) {
    std::fputs(parsed->print_and_exit->c_str(), stdout);
    return 0;
  }
  ServeOptions& options = parsed->options;
  if (!options.pipeline.empty()) {
    const auto config = LoadPipelineConfig(options.pipeline, options.pipeline_overrides);
    if (!config.ok()) return Fail("serve", MessageOf(config.status()));
    ServeAlone(*config, &options);
  }
  return parsed->check_only ? CheckOnly(options) : ServeWith(options);
}

int GrammarCommand(int, char**) { grammar::CompileProcess::ServeAsProgram(); }

int ServeWith(const ServeOptions& options, std::string_view command) {
  auto level = ParseLogLevel(options.log_level);
  if (!level.ok()) return Fail(command, MessageOf(level.status()), kUsageError);
  InitLog(*level);
  if (options.grpc_mode || options.smg_grpc_mode) {
    LogWarning("{} has no effect: gRPC is served on the port of HTTP in any case",
               options.grpc_mode ? "--grpc-mode" : "--smg-grpc-mode");
  }
  RaiseFileLimit();
  sigset_t signals = BlockSignals({SIGUSR1});  // SIGUSR1: the loader has finished
  BlockHangup(&signals);
  std::string refused;
  const int code = Serve(options, command, signals, &refused);
  if (refused.empty()) return code;
  const Status served = ServeSglangOverHttp(options, refused, signals);
  return served.ok() ? 0 : Fail(command, MessageOf(served));
}

}  // namespace portico
