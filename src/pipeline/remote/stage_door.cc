#include "pipeline/remote/stage_door.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "pipeline/process/message.h"
#include "pipeline/process/unix_channel.h"
#include "pipeline/remote/bridge.h"
#include "pipeline/remote/greeting.h"
#include "pipeline/remote/tcp_channel.h"

namespace portico::pipeline {
namespace {

constexpr size_t kMaxVisits = 64;  // beside those that have a process
constexpr Duration kInitPatience = std::chrono::seconds(5);
// A server that starts again may come before its former process has ended.
constexpr Duration kPlacePatience = std::chrono::seconds(2);
constexpr int kEndMs = 500;

std::string PeerOf(const sockaddr_storage& address, socklen_t size) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof host, port,
                  sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "somebody";
  }
  return HostPort{host, port}.Text();
}

}  // namespace

std::string StageNames(const Json& stages) {
  std::vector<std::string> names;
  if (stages.is_array()) {
    for (const Json& stage : stages.as_array()) names.push_back(stage.GetString("name"));
  }
  return fmt::format("{}", fmt::join(names, ", ")).substr(0, 256);
}

StatusOr<std::vector<ServedProcess>> ServedProcesses(const PipelineConfig& config,
                                                     const std::string& file,
                                                     const StagePrograms& programs,
                                                     const std::vector<std::string>& stages) {
  const auto bad = [](std::string why) { return Error(StatusCode::kInvalidArgument, why); };
  std::set<std::string> wanted;
  for (const std::string& name : stages) {
    const StageConfig* stage = config.Find(name);
    if (stage == nullptr) return bad(fmt::format("--stage {}: {} has no such stage", name, file));
    if (stage->process.empty()) {
      return bad(fmt::format("--stage {}: runs in the server's own process", name));
    }
    wanted.insert(stage->process);
  }
  std::vector<ServedProcess> served;
  for (const ProcessPlan& plan : PlanProcesses(config)) {
    const ProcessConfig* said = config.FindProcess(plan.name);
    if (said == nullptr || said->hosts.empty()) continue;
    if (!stages.empty() && wanted.erase(plan.name) == 0) continue;
    // Read again, so that numbers have the form in which a server's arrive.
    PORTICO_ASSIGN_OR_RETURN(Json list, Json::Parse(StagesJson(plan).Dump()));
    served.push_back({plan.name, std::move(list), InitText(plan, config, file),
                      SpawnOptionsOf(plan, programs), said->replicas});
  }
  if (!wanted.empty()) {
    return bad(
        fmt::format("{}: `processes` gives the process `{}` no `host`", file, *wanted.begin()));
  }
  if (served.empty()) return bad(fmt::format("{}: no process has a `host`", file));
  return served;
}

struct StageDoor::Visit {
  Fd socket;
  std::string peer;
  std::atomic<bool> over{false};
  std::thread thread;
};

StageDoor::StageDoor(StageDoorOptions options, Fd socket, int port)
    : options_(std::move(options)),
      socket_(std::move(socket)),
      port_(port),
      running_(options_.processes.size()) {}

StatusOr<std::unique_ptr<StageDoor>> StageDoor::Open(StageDoorOptions options) {
  PORTICO_RETURN_IF_ERROR(CheckToken(options.token));
  int port = 0;
  PORTICO_ASSIGN_OR_RETURN(Fd socket, ListenOn(options.listen, options.token.empty(), &port));
  std::unique_ptr<StageDoor> door(new StageDoor(std::move(options), std::move(socket), port));
  door->thread_ = std::thread([self = door.get()] { self->Accept(); });
  return door;
}

StageDoor::~StageDoor() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void StageDoor::Accept() {
  size_t most = kMaxVisits;
  for (const ServedProcess& process : options_.processes) most += static_cast<size_t>(process.most);
  while (!stopping_) {
    pollfd wait{socket_.get(), POLLIN, 0};
    poll(&wait, 1, 100);
    visits_.remove_if([](const std::unique_ptr<Visit>& visit) {
      const bool over = visit->over;
      if (over) visit->thread.join();
      return over;
    });
    if (wait.revents == 0) continue;
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    Fd fd(accept4(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size,
                  SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) poll(nullptr, 0, 100);  // maybe no descriptor is left
    if (!fd.valid() || visits_.size() >= most) continue;
    TuneConnection(fd.get());
    auto& visit = *visits_.emplace_back(std::make_unique<Visit>());
    visit.socket = std::move(fd);
    visit.peer = PeerOf(address, size);
    visit.thread = std::thread([this, &visit] {
      Receive(visit);
      visit.over = true;
    });
  }
  for (const auto& visit : visits_) visit->thread.join();
}

void StageDoor::Receive(Visit& visit) {
  const int fd = visit.socket.get();
  std::unique_ptr<net::Transport> transport =
      options_.tls != nullptr ? options_.tls->Accept(fd) : net::MakePlainTransport(fd);
  if (transport == nullptr) return;
  const Status greeted = GreetServer({fd, *transport, options_.token, is_stopping_});
  if (!greeted.ok()) return LogRefusal(visit.peer, greeted);
  const auto channel = MakeTcpChannel(std::move(visit.socket), std::move(transport));
  const auto refuse = [&](const Status& why) {
    LogRefusal(visit.peer, why);
    const auto message = TextMessage(MessageKind::kFailed, MessageOf(why));
    if (message.ok()) channel->Send(*message);
  };
  const auto init = ReadInit(*channel);
  if (!init.ok()) return refuse(init.status());
  const auto process = Choose(*init);
  if (!process.ok()) return refuse(process.status());
  if (Status full = Enter(*process); !full.ok()) return refuse(full);
  Run(visit, *channel, *process);
  Leave(*process);
}

void StageDoor::LogRefusal(const std::string& peer, const Status& why) {
  constexpr int kLines = 8;
  int unlogged = 0;
  {
    const MutexLock lock(&mutex_);
    const TimePoint now = Clock::now();
    if (now - second_ >= std::chrono::seconds(1)) {
      unlogged = std::max(0, refused_ - kLines);
      second_ = now;
      refused_ = 0;
    }
    if (++refused_ > kLines) return;
  }
  LogWarning("{} is refused: {}{}", peer, MessageOf(why),
             unlogged == 0 ? "" : fmt::format("; {} more refusals were not logged", unlogged));
}

StatusOr<Datagram> StageDoor::ReadInit(Channel& channel) const {
  const TimePoint deadline = Clock::now() + kInitPatience;
  while (true) {
    PORTICO_ASSIGN_OR_RETURN(Received received, channel.Receive());
    if (received.ended) return Error(StatusCode::kUnavailable, "it has left");
    if (!received.empty) return std::move(received.message);
    if (!WaitFor(channel.fd(), POLLIN, deadline, is_stopping_)) {
      return Error(StatusCode::kUnavailable, "it did not name the stages that it requests");
    }
  }
}

StatusOr<size_t> StageDoor::Choose(const Datagram& init) const {
  PORTICO_ASSIGN_OR_RETURN(const Message message, ReadMessage(init));
  auto json = Json::Parse(message.text);
  const Json* stages = json.ok() ? json->Find("stages") : nullptr;
  if (message.kind != MessageKind::kInit || stages == nullptr) {
    return Error(StatusCode::kInvalidArgument, "it did not name the stages that it requests");
  }
  bool known = false;
  for (size_t i = 0; i < options_.processes.size(); ++i) {
    if (*stages == options_.processes[i].stages) return i;
    known = known || StageNames(*stages) == StageNames(options_.processes[i].stages);
  }
  const std::string names = StageNames(*stages);
  return Error(StatusCode::kInvalidArgument,
               known
                   ? fmt::format("the file on the stage's host defines the stages {} differently: "
                                 "both hosts need the same file",
                                 names)
                   : fmt::format("the stages {} are not served together on that host", names));
}

Status StageDoor::Enter(size_t process) {
  const TimePoint deadline = Clock::now() + kPlacePatience;
  const MutexLock lock(&mutex_);
  while (running_[process] >= options_.processes[process].most) {
    if (stopping_ || !left_.WaitUntil(&mutex_, deadline)) {
      return Error(StatusCode::kUnavailable,
                   fmt::format("all {} processes `{}` of this host are in use",
                               options_.processes[process].most, options_.processes[process].name));
    }
  }
  ++running_[process];
  return OkStatus();
}

void StageDoor::Leave(size_t process) {
  const MutexLock lock(&mutex_);
  --running_[process];
  left_.NotifyAll();
}

void StageDoor::Run(const Visit& visit, Channel& server, size_t process) {
  const ServedProcess& served = options_.processes[process];
  auto spawned = SpawnStage(served.spawn);
  auto init = TextMessage(MessageKind::kInit, served.init);
  if (!spawned.ok() || !init.ok()) {
    const Status& why = spawned.ok() ? init.status() : spawned.status();
    LogError("stage process `{}`: {}", served.name, MessageOf(why));
    if (spawned.ok()) EndProcess(spawned->pid);
    return;
  }
  LogInfo("stage process `{}` starts for {}", served.name, visit.peer);
  auto stage = MakeUnixChannel(std::move(spawned->socket));
  stage->Send(*init);
  const std::string why = Bridge(server, *stage, spawned->exit.get(), is_stopping_);
  stage.reset();
  if (spawned->exit.valid()) {  // it ends by itself when its socket does
    pollfd ended{spawned->exit.get(), POLLIN, 0};
    poll(&ended, 1, kEndMs);
  }
  LogInfo("stage process `{}` for {} has ended ({}): {}", served.name, visit.peer,
          EndProcess(spawned->pid), why);
}

}  // namespace portico::pipeline
