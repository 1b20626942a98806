// The way to the processes that read media with SGLang's own processor (python/portico/sglang_media.py, which
// describes what is said). Requests with media wait here until theirs are read, and go on to the scheduler then; others
// never come here.
//
// One thread a process, which does one thing at a time. Choices of one request share what is made of its media; the
// frames of all have a copy of it, and leave one after the other. What a process makes is checked for its form alone: it
// is SGLang's own code, and has read it back itself. Media at which a process ends are the client's fault: asked again
// they would end the next one. Errors of the processes themselves have kMediaFailed for a reason.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "engine/sglang/launch/facts.h"
#include "engine/sglang/wire/wire_requests.h"
#include "message/request_media.h"
#include "text/json.h"

namespace portico::sglang {

class MediaLink {
 public:
  // A stream that waits for its media.
  struct Work {
    StreamId stream = 0;
    TokenSink* sink = nullptr;
    std::shared_ptr<const RequestMedia> media;        // every item has its bytes
    std::shared_ptr<const std::vector<TokenId>> ids;  // the prompt's, with a mark for each item
    absl::AnyInvocable<StatusOr<std::string>(const MediaInputs&)> encode;
    // To the scheduler; false: it has died. `held` is let go of once the frame has left this process.
    absl::AnyInvocable<bool(std::string frame, std::shared_ptr<void> held)> send;
    absl::AnyInvocable<void()> on_end;  // it ends here
  };

  // Of frames that have not left this process: what is above waits for them.
  static constexpr size_t kMostUnsentBytes = size_t{256} << 20;

  // The facts name a socket. `engine_exit` is readable once the engine has died, and outlives this; -1: none.
  MediaLink(const Facts& facts, int engine_exit, size_t most_unsent_bytes = kMostUnsentBytes);
  // Nobody uses it any more. Stops.
  ~MediaLink();

  // Any thread from here on. RESOURCE_EXHAUSTED: too much waits; UNAVAILABLE after Stop(). Then nothing comes of it.
  // OK: the stream ends here, or is sent.
  Status Submit(Work work);
  // False: the stream is not here; if it was, it has been sent. It ends with kAbort.
  bool Abort(StreamId stream);
  // All that wait.
  void AbortAll();
  // Streams that wait.
  int64_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  // Ends all that waits, with that. Joins the threads. Idempotent.
  void Stop(FinishReason reason, const Status& error);

 private:
  // The choices of one prompt.
  struct Group {
    std::shared_ptr<const RequestMedia> media;
    std::shared_ptr<const std::vector<TokenId>> ids;
    std::vector<Work> works;
    size_t bytes = 0;
  };
  struct Helper {
    int socket = -1;
    int wake = -1;
    bool late = false;      // its answer is
    bool answered = false;  // it has, and waits for the next request on this connection
    Group group;            // guarded by mutex_; without media: none
    StreamId encoding = 0;  // guarded by mutex_: a stream that was taken out of the group
    bool aborted = false;   // guarded by mutex_: that one
    std::thread thread;
  };
  struct Ended {
    Work work;
    FinishReason reason;
    Status error;
  };

  void Run(Helper& helper);
  // Takes the next group; false: there is none. Not while stopping.
  bool TakeGroup(Helper& helper);
  void Complete(Helper& helper, const StatusOr<MediaInputs>& inputs);
  // One request and its answer.
  StatusOr<MediaInputs> Ask(Helper& helper, const RequestMedia& media,
                            const std::vector<TokenId>& ids);
  StatusOr<MediaInputs> Exchange(Helper& helper, std::string_view head, const RequestMedia& media,
                                 TimePoint until);
  StatusOr<MediaInputs> ReadInputs(Helper& helper, const Json& reply, const RequestMedia& media,
                                   TimePoint until);
  // Until the helper's group may be sent; false: this stops, or none of it is left.
  bool AwaitRoom(Helper& helper);
  // Counts bytes as unsent until it is let go of.
  std::shared_ptr<void> Hold(size_t bytes) const;
  // All of it, while ended streams are told; false: the process has died, is too slow, or this stops.
  bool Write(Helper& helper, std::string_view bytes, TimePoint until);
  bool Read(Helper& helper, size_t size, std::string* bytes, TimePoint until);
  // Until the descriptor is ready for that, or its other side has gone.
  bool Await(Helper& helper, int descriptor, short events, TimePoint until);
  // Why no answer has come to what was asked. The engine's own end is waited for a moment.
  Status Lost(Helper& helper, const RequestMedia& media);
  void Connect(Helper& helper);
  void End(Work work, FinishReason reason, Status error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndAll(FinishReason reason, const Status& error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellEnded();
  void WakeAll();
  static void CloseDescriptor(int* descriptor);
  static void ClearEvent(int event);

  const std::string address_;
  const int32_t max_input_tokens_;
  const int engine_exit_;
  const size_t most_unsent_bytes_;
  std::atomic<int64_t> waiting_{0};
  // Outlives this: libzmq lets go of frames as late as it is closed.
  const std::shared_ptr<std::atomic<size_t>> unsent_bytes_ =
      std::make_shared<std::atomic<size_t>>(0);

  Mutex mutex_;
  std::deque<Group> queue_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Ended> ended_ ABSL_GUARDED_BY(mutex_);  // to be told on a thread of this
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  Mutex join_mutex_;  // held by the Stop() that joins the threads
  std::vector<std::unique_ptr<Helper>> helpers_;
};

}  // namespace portico::sglang
