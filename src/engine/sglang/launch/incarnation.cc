#include "engine/sglang/launch/incarnation.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "base/clock.h"
#include "engine/sglang/launch/attached_proof.h"
#include "engine/sglang/launch/listeners.h"
#include "engine/sglang/launch/proof.h"
#include "engine/sglang/link/cache_events.h"

namespace portico::sglang {
namespace {

Status CannotSpeak(const Json& manifest, const Status& why) {
  return Error(
      StatusCode::kUnimplemented,
      fmt::format("SGLang {} has messages that Portico does not know: {}",
                  manifest.GetString("sglang_version", "of an unknown release"), MessageOf(why)));
}

// A front end that reads the model's tokenizer would send other ids than are meant.
Status CheckTokenizer(const SglangOptions& options, const Facts& facts) {
  if (!options.tokenizer_path.empty() || facts.tokenizer_path.empty() ||
      facts.tokenizer_path == facts.model_path) {
    return OkStatus();
  }
  return Error(StatusCode::kFailedPrecondition,
               fmt::format("the SGLang of {} has the tokenizer {}: name it with --tokenizer-path",
                           options.attach_file, facts.tokenizer_path));
}

Status OpenAttached(const SglangOptions& options, Incarnation* life) {
  const std::string& path = options.attach_file;
  struct stat found{};
  if (stat(path.c_str(), &found) != 0) {
    return Error(StatusCode::kNotFound,
                 fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  }
  if (found.st_uid != geteuid() || (found.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Error(StatusCode::kFailedPrecondition,
                 fmt::format("{} belongs to another user, or others may write it", path));
  }
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  auto json = Json::Parse(text.str());
  const Json* facts = json.ok() ? json->Find("facts") : nullptr;
  const Json* manifest = json.ok() ? json->Find("manifest") : nullptr;
  if (facts == nullptr || manifest == nullptr) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("{} is not what SGLang's launcher writes with --facts", path));
  }
  PORTICO_ASSIGN_OR_RETURN(life->facts, Facts::Parse(*facts));
  PORTICO_RETURN_IF_ERROR(CheckSocketAddresses(life->facts));
  PORTICO_RETURN_IF_ERROR(CheckTokenizer(options, life->facts));
  auto codec = Codec::Make(*manifest);
  if (!codec.ok()) return CannotSpeak(*manifest, codec.status());
  life->codec = *std::move(codec);
  life->attached_process = OpenProcess(static_cast<pid_t>(life->facts.pid));
  if (life->attached_process < 0) {
    return Error(StatusCode::kUnavailable,
                 fmt::format("the SGLang of {} (process {}) does not run", path, life->facts.pid));
  }
  if (life->facts.started == 0 || life->facts.proof_socket.empty()) {
    return Error(StatusCode::kFailedPrecondition,
                 fmt::format("{} was written by the launcher of an older Portico, which proves "
                             "nothing to front ends; start SGLang again",
                             path));
  }
  // After the descriptor was opened: it is that process's, or one of another start.
  const auto started = ProcessStart(static_cast<pid_t>(life->facts.pid));
  if (!started.ok() || *started != life->facts.started) {
    return Error(StatusCode::kUnavailable,
                 fmt::format("the SGLang of {} has ended, and process {} is another now", path,
                             life->facts.pid));
  }
  PORTICO_ASSIGN_OR_RETURN(const std::string proof, ProofLine(*life->codec));
  return ProveAttached(life->facts.proof_socket, proof);
}

// Socket names are short: at most 107 bytes.
std::string SocketPrefix() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const bool is_short = runtime != nullptr && std::strlen(runtime) < 60;
  return std::string(is_short ? runtime : "/tmp") + "/portico-sglang-";
}

Status Launch(const SglangOptions& options, const Launcher::Progress& progress, Incarnation* life) {
  PORTICO_ASSIGN_OR_RETURN(life->folder, OwnFolder::Make(SocketPrefix()));
  LaunchOptions launch;
  launch.python = options.python;
  launch.script = options.script;
  launch.folder = life->folder.path();
  launch.flags = options.flags;
  launch.environment = options.environment;
  launch.media_helpers = options.media_helpers;
  launch.reasoning_parser = options.reasoning_parser;
  launch.transport = options.transport;
  launch.front_end_has = options.front_end_has;
  PORTICO_ASSIGN_OR_RETURN(life->launcher, Launcher::Start(launch));
  PORTICO_ASSIGN_OR_RETURN(const Json printed, life->launcher->Await("manifest", progress));
  const Json* manifest = printed.Find("manifest");
  if (manifest == nullptr) return Error(StatusCode::kUnavailable, "the manifest is empty");
  auto codec = Codec::Make(*manifest);
  if (!codec.ok()) return CannotSpeak(*manifest, codec.status());
  life->codec = *std::move(codec);
  PORTICO_ASSIGN_OR_RETURN(std::string proof, ProofLine(*life->codec));
  PORTICO_RETURN_IF_ERROR(life->launcher->Tell(std::move(proof)));
  PORTICO_RETURN_IF_ERROR(life->launcher->Await("proved", progress).status());
  PORTICO_ASSIGN_OR_RETURN(const Json ready, life->launcher->Await("ready", progress));
  PORTICO_ASSIGN_OR_RETURN(life->facts, Facts::Parse(ready));
  return CheckSocketAddresses(life->facts);
}

}  // namespace

StatusOr<std::shared_ptr<Incarnation>> Incarnation::Start(const SglangOptions& options,
                                                          const Launcher::Progress& progress,
                                                          const LinkOwner& owner) {
  auto life = std::make_shared<Incarnation>();
  const bool attach = !options.attach_file.empty();
  PORTICO_RETURN_IF_ERROR(attach ? OpenAttached(options, life.get())
                                 : Launch(options, progress, life.get()));
  const int exit_descriptor = attach ? life->attached_process : life->launcher->exit_descriptor();
  Listeners listeners;
  if (!life->facts.listeners.empty()) {
    PORTICO_ASSIGN_OR_RETURN(
        listeners, Listeners::TakeOver(life->facts, options.hand_over_wait, options.give_up));
  }
  PORTICO_ASSIGN_OR_RETURN(
      life->link,
      SchedulerLink::Start(life->codec, life->facts, std::move(listeners), exit_descriptor,
                           owner.counters, owner.on_death, owner.on_stream_end, owner.check_lora));
  if (!life->facts.media_socket.empty() && life->codec->requests->takes_media()) {
    life->media = std::make_unique<MediaLink>(life->facts, exit_descriptor);
  }
  if (!life->facts.kv_events.empty()) {
    // What a former life had cached is gone.
    KvEventBatch cleared;
    cleared.timestamp = static_cast<double>(UnixSeconds());
    cleared.events.emplace_back();
    owner.kv_events->Publish(std::move(cleared));
    PORTICO_ASSIGN_OR_RETURN(life->kv_events, FollowCache(life->facts, owner.kv_events));
  }
  if (attach) {
    // What a former front end left running, or paused.
    const auto ignored = [](const StatusOr<SchedulerLink::Replies>&) {};
    life->link->Call("AbortReq", Map{{"rid", ""}, {"abort_all", true}}, 0, TimePoint::max(),
                     ignored);
    life->link->Call("ContinueGenerationReqInput", Map{}, 0, TimePoint::max(), ignored);
  }
  return life;
}

Incarnation::~Incarnation() {
  kv_events.reset();
  media.reset();
  link.reset();
  launcher.reset();
  if (attached_process >= 0) close(attached_process);
}

void Incarnation::AbortStreams() {
  if (media != nullptr) media->AbortAll();
  link->AbortAll();
}

std::string Incarnation::LastWords() {
  return launcher == nullptr ? "the process has ended" : launcher->LastWords();
}

}  // namespace portico::sglang
