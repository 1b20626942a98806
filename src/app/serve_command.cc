#include "app/serve_command.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <memory>
#include <thread>

#include "app/activity_log.h"
#include "app/http_service.h"
#include "app/load_model.h"
#include "app/options.h"
#include "app/progress_bar.h"
#include "base/log.h"

namespace portico {
namespace {

constexpr timespec kActivityPeriod{10, 0};

// Connections are file descriptors: take as many as the system gives.
void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Blocked here and so in every thread made later: only the main thread takes them, by sigtimedwait.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGUSR1);  // the loader has finished
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

int Fail(std::string_view message) {
  std::fprintf(stderr, "portico serve: %.*s\n", static_cast<int>(message.size()), message.data());
  return 1;
}

// Loads the models one after the other. The name of one that fails, and of one that is loading, is
// told where there are several.
Status LoadModels(const ServeOptions& options, ModelRegistry* models) {
  SharedResources shared = ShareResources(options);
  const bool several = options.models.size() > 1;
  ProgressBar bar;
  for (const ModelOptions& model : options.models) {
    const std::string id = ModelId(model);
    auto loaded = LoadServingModel(model, shared, [&](std::string_view stage, double fraction) {
      bar.Update(several ? fmt::format("{}: {}", id, stage) : std::string(stage), fraction);
    });
    if (!loaded.ok()) {
      if (!several) return loaded.status();
      return Error(loaded.status().code(),
                   fmt::format("model `{}`: {}", id, MessageOf(loaded.status())));
    }
    shared.mapped_bytes += (*loaded)->engine->info().weight_bytes;
    models->Add(*std::move(loaded));
  }
  models->Publish();
  return OkStatus();
}

// Loads on a thread of its own, so that the main thread hears signals meanwhile.
class Loader {
 public:
  Loader(const ServeOptions& options, ModelRegistry* models)
      : thread_([this, &options, models, main = pthread_self()] {
          status_ = LoadModels(options, models);
          done_.store(true, std::memory_order_release);
          pthread_kill(main, SIGUSR1);
        }) {}
  ~Loader() {
    if (thread_.joinable()) thread_.join();
  }

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
  LogInfo("ready: {}://{}:{}/v1", options.ssl_certfile.empty() ? "http" : "https", options.host,
          service.port());
}

int Serve(const ServeOptions& options, const sigset_t& signals) {
  auto service = HttpService::Start(options);
  if (!service.ok()) return Fail(MessageOf(service.status()));
  ModelRegistry& models = (*service)->models();
  Loader loader(options, &models);

  bool ready = false;
  ActivityLog activity(models);
  while (true) {
    int signal = sigtimedwait(&signals, nullptr, &kActivityPeriod);
    if (signal == SIGINT || signal == SIGTERM) break;
    if (!ready && loader.done()) {
      if (!loader.status().ok()) return Fail(MessageOf(loader.status()));
      ready = true;
      SayReady(options, **service, models);
    } else if (signal < 0 && errno == EAGAIN) {
      activity.Tick();
    }
  }
  if (!loader.done()) {
    // Nothing runs yet, and an import leaves only a temporary file that the next one clears away.
    std::fputs("\nportico serve: stopped while loading\n", stderr);
    _exit(0);
  }
  LogInfo("draining: requests in flight may finish for {:.0f} s; once more to stop now",
          options.drain_timeout);
  std::thread impatient([&signals] {
    int signal = 0;
    sigwait(&signals, &signal);
    if (signal != SIGUSR1) _exit(130);
  });
  bool finished = (*service)->Drain(
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(options.drain_timeout)));
  pthread_kill(impatient.native_handle(), SIGUSR1);
  impatient.join();
  service->reset();
  LogInfo("stopped{}", finished ? "" : "; some requests were aborted");
  return 0;
}

}  // namespace

int ServeCommand(int argc, char** argv) {
  auto parsed = ParseServeOptions(argc + 1, argv - 1);  // it skips the command's name
  if (!parsed.ok()) return Fail(MessageOf(parsed.status()));
  if (parsed->print_and_exit) {
    std::fputs(parsed->print_and_exit->c_str(), stdout);
    return 0;
  }
  const ServeOptions& options = parsed->options;
  auto level = ParseLogLevel(options.log_level);
  if (!level.ok()) return Fail(MessageOf(level.status()));
  InitLog(*level);
  RaiseFileLimit();
  sigset_t signals = BlockSignals();
  return Serve(options, signals);
}

}  // namespace portico
