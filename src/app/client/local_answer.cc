#include "app/client/local_answer.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <deque>
#include <mutex>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "router/proxy/local_call.h"
#include "router/proxy/sse_frames.h"
#include "text/json.h"

namespace portico {
namespace {

// What nobody has received; then the answer waits.
constexpr size_t kMaxWaiting = 256;
constexpr size_t kMaxWaitingBytes = 256 << 10;
constexpr size_t kMaxAnswer = size_t{64} << 20;
constexpr size_t kMaxUnsent = 4 << 20;

}  // namespace

Status StatusOfAnswer(int status, const std::string& body) {
  const auto parsed = Json::Parse(body);
  const Json* error = parsed.ok() ? parsed->Find("error") : nullptr;
  std::string message = error == nullptr ? "" : error->GetString("message");
  if (message.empty()) message = fmt::format("the answer's status is {}", status);
  StatusCode code = StatusCode::kUnavailable;
  if (status == 429) {
    code = StatusCode::kResourceExhausted;
  } else if (status >= 400 && status < 500) {
    code = StatusCode::kInvalidArgument;
  }
  if (error == nullptr) return Error(code, std::move(message));
  return Error(code, std::move(message), error->GetString("param"), error->GetString("code"));
}

// Told on the shard, asked by the caller's thread.
class LocalAnswer::State final : public net::HttpCallEvents {
 public:
  State(net::Shard& shard, Reading reading) : shard_(shard), reading_(reading) {}

  // On the shard.
  void Start(net::HttpRequest request, const Dispatch& dispatch) {
    request.body.reserve(request.body.size() + simdjson::SIMDJSON_PADDING);
    router::LocalCall local = router::MakeLocalCall(shard_, std::move(request), *this, kMaxUnsent);
    call_ = std::move(local.call);
    dispatch(std::move(local.exchange));
  }
  void Drop() { call_.reset(); }
  void SetSelf(std::weak_ptr<State> self) { self_ = std::move(self); }

  StatusOr<net::ResponseHead> Head() {
    const MutexLock lock(&mutex_);
    while (!begun_ && !over_) changed_.Wait(&mutex_);
    if (!begun_) return status_.ok() ? Cut() : status_;
    return told_;
  }

  StatusOr<std::optional<std::string>> Receive() {
    const MutexLock lock(&mutex_);
    while (waiting_.empty() && !over_) changed_.Wait(&mutex_);
    if (waiting_.empty()) {
      if (!status_.ok()) return status_;
      return std::optional<std::string>();
    }
    std::string data = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= data.size();
    if (paused_ && waiting_.size() < kMaxWaiting / 2 && waiting_bytes_ < kMaxWaitingBytes / 2) {
      paused_ = false;
      shard_.Post([weak = self_] {
        const auto self = weak.lock();
        if (self != nullptr && self->call_ != nullptr) self->call_->Resume();
      });
    }
    return std::optional<std::string>(std::move(data));
  }

  StatusOr<std::string> Await() {
    const MutexLock lock(&mutex_);
    while (!over_) changed_.Wait(&mutex_);
    if (!status_.ok()) return status_;
    return std::move(body_);
  }

 private:
  static Status Cut() { return Error(StatusCode::kUnavailable, "the answer was cut off"); }

  void OnHead(net::ResponseHead& head) override {
    http_status_ = head.status;
    events_ = head.Header("content-type").starts_with("text/event-stream");
    if (http_status_ >= 300) return;
    const MutexLock lock(&mutex_);
    begun_ = true;
    told_ = head;
    changed_.NotifyAll();
  }
  void OnBody(std::string_view bytes) override {
    if (http_status_ < 300 && !reading_.whole) {
      if (events_) return OnEvents(frames_.Take(bytes));
      std::deque<std::string> pieces;
      pieces.emplace_back(bytes);
      return Offer(&pieces);
    }
    if (body_.size() + bytes.size() > kMaxAnswer) {
      return End(Error(StatusCode::kResourceExhausted, "the answer is too large"));
    }
    body_.append(bytes);
  }
  void OnDone() override {
    if (http_status_ >= 300) return End(StatusOfAnswer(http_status_, body_));
    if (events_ && reading_.wants_done && !done_) return End(Cut());
    End(OkStatus());
  }
  void OnFailed(net::CallFailure, const std::string&) override { End(Cut()); }

  // Whole events.
  void OnEvents(std::string_view text) {
    constexpr std::string_view kData = "data: ";
    std::deque<std::string> chunks;
    while (!text.empty()) {
      const size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.starts_with(kData)) continue;
      line.remove_prefix(kData.size());
      if (line == "[DONE]") {
        done_ = true;
      } else if (line.starts_with("{\"error\"") || line.starts_with("{\"type\":\"error\"")) {
        done_ = true;
        failure_ = StatusOfAnswer(500, std::string(line));
      } else {
        chunks.emplace_back(line);
      }
    }
    Offer(&chunks);
  }
  void Offer(std::deque<std::string>* chunks) {
    const MutexLock lock(&mutex_);
    for (std::string& chunk : *chunks) {
      waiting_bytes_ += chunk.size();
      waiting_.push_back(std::move(chunk));
    }
    changed_.NotifyAll();
    const bool full = waiting_.size() >= kMaxWaiting || waiting_bytes_ >= kMaxWaitingBytes;
    if (paused_ || !full || call_ == nullptr) return;
    paused_ = true;
    call_->Pause();
  }
  void End(Status status) {
    call_.reset();
    const MutexLock lock(&mutex_);
    over_ = true;
    status_ = status.ok() ? failure_ : std::move(status);
    changed_.NotifyAll();
  }

  net::Shard& shard_;
  const Reading reading_;
  std::weak_ptr<State> self_;
  // The shard's.
  std::unique_ptr<net::HttpCall> call_;
  int http_status_ = 0;
  bool events_ = false;
  bool done_ = false;
  Status failure_;
  router::SseFrames frames_;
  std::string body_;  // the caller's once over_ is set

  Mutex mutex_;
  CondVar changed_;
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;
  net::ResponseHead told_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  Status status_ ABSL_GUARDED_BY(mutex_);
};

LocalAnswer::LocalAnswer(net::Shard& shard, std::shared_ptr<State> state)
    : shard_(shard), state_(std::move(state)) {}

std::unique_ptr<LocalAnswer> LocalAnswer::Start(net::Shard& shard, net::HttpRequest request,
                                                Dispatch dispatch, Reading reading) {
  auto state = std::make_shared<State>(shard, reading);
  state->SetSelf(state);
  shard.Post([state, request = std::move(request), dispatch = std::move(dispatch)]() mutable {
    state->Start(std::move(request), dispatch);
  });
  return std::unique_ptr<LocalAnswer>(new LocalAnswer(shard, std::move(state)));
}

LocalAnswer::~LocalAnswer() {
  // The shard has the last hold on it.
  shard_.Post([state = std::move(state_)] { state->Drop(); });
}

StatusOr<net::ResponseHead> LocalAnswer::Head() { return state_->Head(); }
StatusOr<std::optional<std::string>> LocalAnswer::Receive() { return state_->Receive(); }
StatusOr<std::string> LocalAnswer::Await() { return state_->Await(); }

}  // namespace portico
