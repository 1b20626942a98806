// The texts of one SubmitPooling() at a worker: a call for each, a bounded number of them at a time. On its shard.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/grpc/token_wire.h"
#include "net/grpc/grpc_channel.h"

namespace portico {

struct GrpcPoolingOptions {
  const TokenWire* wire = nullptr;
  PoolingSink* sink = nullptr;
  net::Headers metadata;
  Duration timeout = Duration::zero();  // of each call; zero: none
  int32_t embedding_size = 0;           // another length ends the text with INTERNAL; 0: not known
  // As GrpcEngineOptions.
  std::function<void(bool reached)> on_lost;
  std::function<void(std::string_view why)> on_malformed;
};

class GrpcPooling {
 public:
  struct Text {
    StreamId stream = 0;
    TokenWireCall call;
    bool aborted = false;
  };
  // Of one request. A worker batches what comes at the same time; more only wait there.
  static constexpr size_t kMaxCalls = 64;

  // `on_over`: every text has its output, and what was given may destroy this.
  GrpcPooling(GrpcPoolingOptions options, std::deque<Text> texts, std::function<void()> on_over);
  ~GrpcPooling();

  void Start(net::GrpcChannel& channel);
  // Its output follows, not from within this call. False: there is no such text, or it has its output.
  bool Abort(StreamId stream);
  // Delivers what has not been, as aborted, and lets the calls go.
  void EndNow();

 private:
  class Call;

  void Pump();
  void OnAnswer(StreamId stream, StatusOr<std::string> answer);
  void Deliver(std::vector<PoolingOutput> batch);

  const GrpcPoolingOptions options_;
  std::deque<Text> waiting_;
  std::vector<StreamId> aborted_;  // before their call; delivered with the next output
  std::function<void()> on_over_;
  net::GrpcChannel* channel_ = nullptr;
  std::map<StreamId, std::unique_ptr<Call>> calls_;
};

}  // namespace portico
