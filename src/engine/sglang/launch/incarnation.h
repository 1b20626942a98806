// One life of an SGLang: its processes, what they said of themselves, and the link to them.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/own_folder.h"
#include "engine/kv_events.h"
#include "engine/kv_feed/kv_feed.h"
#include "engine/sglang/launch/facts.h"
#include "engine/sglang/launch/launcher.h"
#include "engine/sglang/link/media_link.h"
#include "engine/sglang/link/scheduler_link.h"
#include "engine/sglang/wire/codec.h"

namespace portico::sglang {

struct SglangOptions {
  std::string python = "python3";  // that has SGLang
  std::string script;              // python/portico/sglang_launch.py, or one that speaks as it does
  std::vector<std::string> flags;  // SGLang's server arguments
  std::vector<std::string> environment;  // NAME=VALUE beside this process's
  // What a launcher that runs already wrote to its --facts; then nothing is started, and nothing ends with this program.
  std::string attach_file;
  std::string tokenizer_path;              // that the front end reads; empty: the model's
  std::string reasoning_parser = "auto";   // Portico's, for the schedulers' grammars
  std::string transport = "ipc";           // of what is started: ipc, tcp
  std::vector<std::string> front_end_has;  // LaunchOptions::front_end_has
  int32_t media_helpers = 1;               // processes that read media; 0: none are taken
  bool restart = false;                    // start SGLang again after it has died
  Duration hand_over_wait{};  // how long another front end may still have the sockets at the start
  std::stop_token give_up;    // ends that wait
  int32_t max_queued_requests = 1024;
};

// Where the link to the engine reports.
struct LinkOwner {
  LinkCounters* counters = nullptr;
  KvEventHub* kv_events = nullptr;
  std::function<void()> on_death;
  std::function<void(const SchedulerLink::Stream&)> on_stream_end;
  std::function<StatusOr<bool>(const std::string& lora)> check_lora;
};

struct Incarnation {
  OwnFolder folder;                    // for sockets
  std::unique_ptr<Launcher> launcher;  // null where attached
  int attached_process = -1;           // a descriptor; -1: started here
  std::shared_ptr<const Codec> codec;
  Facts facts;
  std::unique_ptr<SchedulerLink> link;
  std::unique_ptr<MediaLink> media;   // null: no media are taken
  std::unique_ptr<KvFeed> kv_events;  // null: none are published

  // Blocks until SGLang is ready, minutes for a large model. UNIMPLEMENTED: it speaks another wire than Portico.
  static StatusOr<std::shared_ptr<Incarnation>> Start(const SglangOptions& options,
                                                      const Launcher::Progress& progress,
                                                      const LinkOwner& owner);
  ~Incarnation();
  // Ends all requests, as if aborted.
  void AbortStreams();
  // Why it has died. Call once.
  std::string LastWords();
};

}  // namespace portico::sglang
