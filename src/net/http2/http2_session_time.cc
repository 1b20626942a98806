// What an HTTP/2 session does as time passes: limits of heads, bodies and stalled answers,
// keepalive, age, and leaving in order.
#include <utility>

#include "net/http2/http2_session.h"
#include "net/loop/server_shard.h"

namespace portico::net {
namespace {

constexpr Duration kNever = Duration::zero();
// For the client to say that it knows of the shutdown.
constexpr Duration kShutdownNotice = std::chrono::seconds(1);

}  // namespace

TimePoint Http2Session::EndOfAge() const {
  const Duration age = connection_.shard().options.http2.max_age;
  if (age == kNever) return TimePoint::max();
  // Connections that came together do not leave together. The address is as random as it has to be.
  auto tenths = static_cast<int>(reinterpret_cast<uintptr_t>(this) >> 6 & 0xff);
  return now_ + age * 9 / 10 + age / 5 * tenths / 256;
}

void Http2Session::OnTimeout(Wait) {
  now_ = CoarseNow();
  Tick();
  connection_.RunAtEndOfTurn();
}

void Http2Session::Tick() {
  if (ended_ || terminating_) return;
  const ServerOptions& options = connection_.shard().options;
  if (in_head_ && options.head_timeout != kNever && now_ - head_since_ >= options.head_timeout) {
    settings_seen_ ? static_cast<void>(Terminate(Http2Error::kEnhanceYourCalm))
                   : connection_.Abort();
    return;
  }
  if (shutting_down_ && !shutdown_finished_ && now_ - shutdown_since_ >= kShutdownNotice) {
    FinishShutdown();
  }
  TickAge();
  if (streams_.empty()) {
    if (options.idle_timeout != kNever && now_ - idle_since_ >= options.idle_timeout) {
      FinishShutdown();
    }
    return;
  }
  TickStreams();
  TickKeepalive();
}

void Http2Session::TickStreams() {
  const ServerOptions& options = connection_.shard().options;
  for (size_t i = 0; i < streams_.size(); ++i) {
    Http2Stream& stream = *streams_[i];
    if (!stream.head_done_ || stream.reset_) continue;
    if (stream.linger_until_ != TimePoint{} && now_ >= stream.linger_until_) {
      stream.Reset(Http2Error::kNone);
      continue;
    }
    if (!stream.request_ended_ && stream.times_body_ && options.body_timeout != kNever &&
        now_ - stream.body_since_ >= options.body_timeout) {
      stream.body_since_ = now_;
      size_t moved = std::exchange(stream.body_moved_, 0);
      if (moved < options.min_body_bytes && stream.user_ != nullptr) stream.user_->OnSlowBody();
    }
    if (stream.unsent() > 0 && options.send_timeout != kNever &&
        now_ - stream.stuck_since_ >= options.send_timeout) {
      CutOff(stream, Http2Error::kEnhanceYourCalm);
    }
  }
}

void Http2Session::TickKeepalive() {
  const Http2Options& options = connection_.shard().options.http2;
  if (options.keepalive_time == kNever) return;
  if (pinging_) {
    if (now_ - ping_sent_ >= options.keepalive_timeout) connection_.Abort();
  } else if (now_ - last_received_ >= options.keepalive_time) {
    pinging_ = true;
    ping_sent_ = now_;
    nghttp2_submit_ping(nghttp2_, NGHTTP2_FLAG_NONE, nullptr);
  }
}

void Http2Session::TickAge() {
  if (now_ < end_of_age_) return;
  const Duration grace = connection_.shard().options.http2.max_age_grace;
  if (!shutting_down_) {
    BeginShutdown();
  } else if (grace != kNever && now_ - end_of_age_ >= grace) {
    Terminate(Http2Error::kNone);
  }
}

void Http2Session::OnDrain() {
  if (ended_ || terminating_) return;
  now_ = CoarseNow();
  settings_seen_ ? BeginShutdown() : FinishShutdown();
}

void Http2Session::BeginShutdown() {
  if (std::exchange(shutting_down_, true)) return;
  shutdown_since_ = now_;
  nghttp2_submit_shutdown_notice(nghttp2_);
  // Its answer shows that the notice has arrived.
  nghttp2_submit_ping(nghttp2_, NGHTTP2_FLAG_NONE, nullptr);
  connection_.RunAtEndOfTurn();
}

void Http2Session::FinishShutdown() {
  shutting_down_ = true;
  if (std::exchange(shutdown_finished_, true)) return;
  nghttp2_submit_goaway(nghttp2_, NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(nghttp2_), NGHTTP2_NO_ERROR,
                        nullptr, 0);
  for (const auto& stream : streams_) {
    if (stream->linger_until_ != TimePoint{}) stream->Reset(Http2Error::kNone);
  }
  connection_.RunAtEndOfTurn();
}

}  // namespace portico::net
