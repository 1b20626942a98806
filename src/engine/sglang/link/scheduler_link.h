// The way to one running scheduler (or its data-parallel controller): sockets, the thread that serves them, and the
// streams and control calls that wait for an answer.
//
// Frames are made by the callers and only sent here, in the order in which they were posted. A step's output is read
// once, split by sink and delivered in one call a sink.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "engine/outbox.h"
#include "engine/sglang/launch/facts.h"
#include "engine/sglang/launch/listeners.h"
#include "engine/sglang/link/link_input.h"
#include "engine/sglang/wire/codec.h"
#include "net/zmq/zmq_guard.h"
#include "net/zmq/zmq_socket.h"

namespace portico::sglang {

inline constexpr size_t kRidBytes = 32;

struct LinkCounters {
  std::atomic<uint64_t> steps{0};  // frames with outputs
  std::atomic<uint64_t> prompt_tokens{0};
  std::atomic<uint64_t> cached_tokens{0};
  std::atomic<uint64_t> generated_tokens{0};
  std::atomic<uint64_t> retractions{0};
  std::atomic<uint64_t> bad_frames{0};
};

class SchedulerLink {
 public:
  // A request on its way: what is needed to answer it.
  struct Stream {
    StreamId id = 0;
    TokenSink* tokens = nullptr;  // one of the two
    PoolingSink* pooling = nullptr;
    bool logprobs = false;
    int32_t prompt_logprobs_start = -1;
    bool hidden_states = false;
    std::string lora;          // the id of the adapter that it keeps loaded; empty: none
    bool awaits_lora = false;  // sent once the adapter is loaded
    StreamId prefix = 0;       // sent once that has ended (PrefixOf); 0: at once
    bool aborted = false;
    TimePoint aborted_at{};
    TokenUsage usage;
  };
  // One reply a rank, in the order in which they came, or why there is none.
  using Replies = std::vector<Message>;
  // What must be so before a call is sent. Streams that are begun behind a call that waits are sent behind it, and so are
  // later calls, unless it waits for streams to end. One that still waits at its deadline ends with DEADLINE_EXCEEDED.
  struct Terms {
    bool no_aborted = false;  // waits until all streams that have been aborted have ended
    bool no_running =
        false;  // waits until no stream is left, or a pause keeps them from being computed
    bool free_cells = false;  // FAILED_PRECONDITION where a pause keeps streams in their KV cells
    bool no_wait = false;     // FAILED_PRECONDITION where no_running would wait
  };
  using ControlAnswer = absl::AnyInvocable<void(StatusOr<Replies>)>;

  // Of a stream that awaits its adapter: true once it is loaded, false until then. An error ends the stream.
  using LoraCheck = absl::AnyInvocable<StatusOr<bool>(const std::string& lora)>;

  // `exit_descriptor` is readable once the engine has died; `on_death` is then called, once, on the link's thread, after
  // every stream and call has ended with UNAVAILABLE. `on_stream_end` hears of every stream's end.
  // `listeners`: of the facts' TCP addresses. UNAVAILABLE: a socket cannot be bound.
  static StatusOr<std::unique_ptr<SchedulerLink>> Start(
      std::shared_ptr<const Codec> codec, const Facts& facts, Listeners listeners,
      int exit_descriptor, LinkCounters* counters, absl::AnyInvocable<void()> on_death,
      absl::AnyInvocable<void(const Stream&)> on_stream_end, LoraCheck check_lora);
  // Stops as Stop().
  ~SchedulerLink();

  // Any thread from here on. The rid of a stream on this link: of fixed length, since the scheduler's abort takes every
  // rid that begins with the one given.
  std::string RidOf(StreamId stream) const;
  // What computes a prompt for several choices, by the stream of the first: an id that no caller's stream has.
  static StreamId PrefixOf(StreamId first_choice) { return first_choice | kPrefixBit; }
  // False once the engine has died or the link has stopped: then nothing comes of it. `prefix` is the frame of the first
  // stream's Stream::prefix. Streams that wait for it end with its error where it fails; one that comes later, or of
  // which no frame was given, is sent at once. `held` is let go of once the first stream's frame has left this process.
  bool Submit(std::vector<Stream> streams, std::vector<std::string> frames, std::string prefix = {},
              std::shared_ptr<void> held = nullptr);
  void Abort(StreamId stream);
  // Ends all streams, as if aborted.
  void AbortAll();
  // The check of that adapter has another answer now.
  void RecheckLora(std::string lora);
  // Sends fields (with a token of the link's in http_worker_ipc) and waits for `replies` of them; 0: there is no answer,
  // and `done` is called when it is sent. `done` is called once, on the link's thread or, with an error, this one.
  void Call(std::string_view message, Value fields, size_t replies, TimePoint deadline,
            ControlAnswer done) {
    Call(message, std::move(fields), replies, deadline, std::move(done), Terms());
  }
  void Call(std::string_view message, Value fields, size_t replies, TimePoint deadline,
            ControlAnswer done, Terms terms);
  // Streams that are begun from now on end with UNAVAILABLE, unless the scheduler is paused: it would die of them.
  void SetUsable(bool usable) { usable_.store(usable, std::memory_order_relaxed); }

  // On the link's thread, from a call's `done`: the scheduler has been paused (`in_place`: its streams keep their cells)
  // or goes on. While it is paused it ends no stream that runs: aborts are then answered here.
  void OnPaused(bool in_place);
  void OnContinued();

  int64_t live() const { return live_.load(std::memory_order_relaxed); }

  // Ends every stream (kAbort) and call, joins the thread. Idempotent.
  void Stop();

 private:
  static constexpr StreamId kPrefixBit = StreamId{1} << 63;

  struct Begin {
    Stream stream;
    std::string frame;
    std::string prefix;  // a frame that is sent first; empty: none
    std::shared_ptr<void> held;
  };
  struct Unsent {
    std::string frame;
    std::shared_ptr<void> held;  // null: it is small
  };
  struct AbortOne {
    StreamId stream;
  };
  struct AbortEvery {};
  struct Recheck {
    std::string lora;
  };
  struct Control {
    std::string frame;
    std::string token;
    size_t replies = 0;
    Terms terms;
    TimePoint deadline;
    ControlAnswer done;
    Replies got;
  };
  using Item = std::variant<Begin, AbortOne, AbortEvery, Recheck, Control>;
  using Held = std::list<Item>;
  using Parked = std::list<Begin>;

  SchedulerLink() = default;
  Status BindSockets(const Facts& facts);
  bool Post(std::vector<Item> items);
  void Wake();

  // The rest runs on the link's thread.
  void Run();
  int PollTimeout() const;
  void TakeItems();
  void TakeOrHold(Item& item);
  void TakeHeld();
  bool MustWait(const Control& call) const;
  bool MustWait(const Item& item) const;
  Status Refusal(const Terms& terms) const;
  void Take(Begin& item);
  void Take(AbortOne& item);
  void Take(AbortEvery& item);
  void Take(Recheck& item);
  void Take(Control& item);
  void Send(std::string frame, std::shared_ptr<void> held = nullptr);
  bool TrySend(Unsent& unsent);
  void AbortUnsent(StreamId id);
  // Streams that wait for an adapter, or behind a prefix (link_parked.cc).
  bool ParkUntilLora(Begin& item);
  bool ParkBehindPrefix(Begin& item);
  void Park(Parked* behind, Begin& item);
  void AbortParked(Parked::iterator at);
  void AbortAllParked();
  void EndAllParked(FinishReason reason, const Status& error);
  void LeavePrefix(StreamId prefix, Stream* stream);
  void EndPrefix(StreamId prefix, FinishReason reason, const Status& error);
  void OnPrefixRow(const OutputBatch& batch, size_t row, Stream* stream);
  // One that has never been sent.
  void EndUnsent(Stream stream, FinishReason reason, Status error);
  void SendAbort(StreamId stream);
  void FlushUnsent();
  // As many frames as a turn takes.
  void ReceiveAll(LinkInput* input);
  void OnFrame(std::string_view frame);
  void OnTokens(std::string_view frame);
  void OnTokenRow(const OutputBatch& batch, size_t row);
  void OnEmbeddings(std::string_view frame);
  void OnEmbeddingRow(const OutputBatch& batch, size_t row);
  void OnAborted(const Message& message);
  void OnReply(Message message);
  void BadFrame(std::string_view frame, std::string_view why);
  Stream* FindStream(std::string_view rid);
  bool FillLogprobs(const OutputBatch& batch, size_t row, const Stream& stream, TokenDelta* delta);
  void FillExtras(const OutputBatch& batch, size_t row, const FinishInfo& finish,
                  const Stream& stream, TokenDelta* delta);
  void End(Stream* stream, TokenDelta delta);
  void End(Stream* stream, FinishReason reason, Status error);
  void EndAll(FinishReason reason, const Status& error);
  void ExpireAborts(TimePoint now);
  void ExpireCalls(TimePoint now);
  void DeliverAll();

  std::shared_ptr<const Codec> codec_;
  int32_t draft_tokens_ = 0;
  std::string rid_prefix_;
  LinkCounters* counters_ = nullptr;
  absl::AnyInvocable<void()> on_death_;
  absl::AnyInvocable<void(const Stream&)> on_stream_end_;
  LoraCheck check_lora_;
  int exit_descriptor_ = -1;
  int wake_descriptor_ = -1;
  Listeners listeners_;
  net::ZmqContext context_;
  net::ZmqGuard guard_;  // of TCP sockets
  net::ZmqSocket input_;
  LinkInput tokenizer_;
  LinkInput detokenizer_;

  std::atomic<int64_t> live_{0};
  std::atomic<bool> usable_{true};
  std::atomic<uint64_t> next_token_{1};

  Mutex mutex_;
  std::vector<Item> items_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;  // nothing is taken any more

  std::vector<Item> taken_;
  bool paused_ = false;
  bool keeps_cells_ = false;  // paused in place, with streams in their cells
  Held held_;                 // calls that wait, and what is behind them; the first one is a call
  std::deque<Unsent> unsent_;
  absl::flat_hash_map<StreamId, Stream> streams_;
  absl::flat_hash_map<std::string, Parked> gated_;  // by the adapter that they await
  // By the prefix of streams_ that they wait for.
  absl::flat_hash_map<StreamId, Parked> parked_;
  // Of all streams in held_, gated_ and parked_: where each is.
  absl::flat_hash_map<StreamId, std::variant<Held::iterator, Parked::iterator>> places_;
  std::vector<StreamId> aborted_;  // of streams_, in the order of the aborts
  absl::flat_hash_map<std::string, Control> calls_;
  Outbox<TokenSink, TokenDelta> token_box_;
  Outbox<PoolingSink, PoolingOutput> pooling_box_;
  OutputBatch batch_;
  bool said_bad_frame_ = false;

  Mutex join_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(join_mutex_);
};

}  // namespace portico::sglang
