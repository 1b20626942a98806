// Serves stages to pipelines of other hosts: `portico omni stage`.
//
// A server connects once for each replica, proves that it knows the token, and names the stages that
// it wants, as its own file has them. It gets a new process with these stages, if this host's file
// says the same of them; the process ends with the connection, and the connection with the process.
// So a server can start nothing here but what this host's file names.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "net/tls/tls.h"
#include "pipeline/process/process_plan.h"
#include "pipeline/remote/address.h"

namespace portico::pipeline {

struct ServedProcess {
  std::string name;
  Json stages;       // StagesJson()
  std::string init;  // InitText() of this host
  SpawnOptions spawn;
  int most = 1;  // that run at once
};

// Those of the file that have a `host`; with `stages`, those that have one of these. `config` is of
// `file`. INVALID_ARGUMENT names the stage that cannot be served.
StatusOr<std::vector<ServedProcess>> ServedProcesses(const PipelineConfig& config,
                                                     const std::string& file,
                                                     const StagePrograms& programs,
                                                     const std::vector<std::string>& stages);
// "decode, say", of ServedProcess::stages.
std::string StageNames(const Json& stages);

struct StageDoorOptions {
  HostPort listen;
  std::string token;  // empty: loopback only
  std::vector<ServedProcess> processes;
  std::unique_ptr<net::TlsContext> tls;  // null: plain
};

class StageDoor {
 public:
  // Listens and serves until it is destroyed. Ends its processes then.
  static StatusOr<std::unique_ptr<StageDoor>> Open(StageDoorOptions options);
  ~StageDoor();
  StageDoor(const StageDoor&) = delete;
  StageDoor& operator=(const StageDoor&) = delete;

  int port() const { return port_; }

 private:
  struct Visit;

  StageDoor(StageDoorOptions options, Fd socket, int port);
  void Accept();
  void Receive(Visit& visit);
  StatusOr<Datagram> ReadInit(Channel& channel) const;
  StatusOr<size_t> Choose(const Datagram& init) const;
  Status Enter(size_t process);
  void Leave(size_t process);
  void Run(const Visit& visit, Channel& server, size_t process);
  // At most eight lines a second: strangers choose how often they come.
  void LogRefusal(const std::string& peer, const Status& why);

  const StageDoorOptions options_;
  const Fd socket_;
  const int port_;
  std::atomic<bool> stopping_{false};
  const std::function<bool()> is_stopping_ = [this] { return stopping_.load(); };
  Mutex mutex_;
  CondVar left_;
  std::vector<int> running_ ABSL_GUARDED_BY(mutex_);  // of each process
  TimePoint second_ ABSL_GUARDED_BY(mutex_){};        // when the present second of the log began
  int refused_ ABSL_GUARDED_BY(mutex_) = 0;           // in it
  std::list<std::unique_ptr<Visit>> visits_;          // of the accepting thread
  std::thread thread_;
};

}  // namespace portico::pipeline
