// What process_group.cc and group_calls.cc share.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "pipeline/parts_in_process.h"
#include "pipeline/process/process_group.h"

namespace portico::pipeline {

// One run. Guarded by the group's mutex, but for what does not change.
struct ProcessGroup::Call {
  uint64_t id = 0;
  const StageConfig* stage = nullptr;
  std::shared_ptr<StageOutput> output;
  PartsInProcess* parts = nullptr;  // of `output`; null: nobody asks

  struct Given {
    Datagram datagram;
    bool is_part = false;
  };
  std::deque<Given> log;  // what the run is given, from its start; sent ones are kept for replay
  size_t sent = 0;        // of `log`
  size_t kept_bytes = 0;
  bool replayable = false;         // all of it is in `log`, and nothing has been shown
  int replays = 0;                 // of the run, or of its request as a whole
  std::deque<size_t> outstanding;  // parts sent and not worked on, in bytes
  size_t outstanding_bytes = 0;
  uint64_t worked = 0;       // parts that are done, since the run's last start
  uint64_t most_worked = 0;  // since the first
  int unacked = 0;           // parts shown that have no room given yet
  size_t unacked_bytes = 0;
  bool aborted = false;
  bool ended = false;
  TimePoint aborted_at{};
  Process* at = nullptr;  // null: waits

  // The process is to work on some of its parts before it gets another.
  bool full() const {
    return outstanding.size() >= kMaxOutstanding ||
           (outstanding.size() >= kFewOutstanding && outstanding_bytes >= kEmitBytes);
  }
};

// Guarded by the group's mutex, but for what does not change; the process's thread, which alone writes `channel` and `exit`,
// reads them without.
struct ProcessGroup::Process {
  int index = 0;
  pid_t pid = -1;  // of a child of this one
  std::unique_ptr<Channel> channel;
  Datagram packed;  // for the channel; sent when its writer pauses
  Fd exit;
  Fd wake;  // an eventfd: the channel keeps something, or the group stops
  State state = State::kDown;
  std::map<uint64_t, CallPtr> calls;
  std::string why;  // it is not up
  int deaths = 0;   // in a row
  TimePoint started{};
  TimePoint due{};        // to start again
  TimePoint ticked{};     // the last Tick()
  TimePoint pinged{};     // the last ping
  TimePoint asked{};      // the first ping since the last message
  uint64_t progress = 0;  // of the channel
  TimePoint heard{};      // the last message
  std::thread thread;
};

}  // namespace portico::pipeline
