#include "net/grpc/grpc_connection.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "net/grpc/grpc_channel.h"
#include "net/grpc/grpc_connection_callbacks.h"
#include "net/loop/connection_table.h"

namespace portico::net {
namespace {

// Output that waits for the kernel; the rest waits in the calls.
constexpr size_t kMaxOutput = 128 << 10;
// A connection that has stood for so long was no failed attempt.
constexpr Duration kProof = std::chrono::seconds(1);
constexpr Duration kNever = Duration::zero();
constexpr std::string_view kTooManyPings = "too_many_pings";

Status Unavailable(std::string why) { return Error(StatusCode::kUnavailable, std::move(why)); }

}  // namespace

GrpcConnection::GrpcConnection(GrpcChannel& channel)
    : shard_(channel.shard_),
      channel_(&channel),
      nghttp2_(NewGrpcClient(this)),
      began_(Clock::now()) {
  const GrpcChannelOptions& options = channel.options_;
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options.stream_window},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<uint32_t>(options.max_head_bytes)},
  };
  nghttp2_submit_settings(nghttp2_, NGHTTP2_FLAG_NONE, settings, std::size(settings));
  nghttp2_session_set_local_window_size(nghttp2_, NGHTTP2_FLAG_NONE, 0,
                                        static_cast<int32_t>(options.connection_window));
  socket_.reset(new ClientSocket(shard_, channel.target_, *this));
  SetTimer();
}

GrpcConnection::~GrpcConnection() { nghttp2_session_del(nghttp2_); }

bool GrpcConnection::has_room() const {
  return ready_ && !draining_ &&
         calls_.size() <
             nghttp2_session_get_remote_settings(nghttp2_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

bool GrpcConnection::proved() const {
  return answered_ || (ready_ && CoarseNow() - ready_since_ >= kProof);
}

bool GrpcConnection::Begin(GrpcClientCall& call) {
  const int32_t stream = SubmitGrpcRequest(nghttp2_, call,
                                           {channel_->target_.tls != nullptr, channel_->authority_,
                                            channel_->user_agent_, call.options_, call.deadline_});
  if (stream < 0) {
    // Out of stream ids, mostly.
    draining_ = true;
    WriteSoon();
    return false;
  }
  call.connection_ = this;
  call.stream_ = stream;
  call.place_ = calls_.size();
  calls_.push_back(&call);
  if (calls_.size() == 1) {
    last_received_ = CoarseNow();
    if (NextTick() < timer_due_) SetTimer();
  }
  WriteSoon();
  return true;
}

void GrpcConnection::Release(GrpcClientCall& call, uint32_t error) {
  nghttp2_session_set_stream_user_data(nghttp2_, call.stream_, nullptr);
  Remove(call);
  if (error != NGHTTP2_NO_ERROR || !call.end_sent_) {
    nghttp2_submit_rst_stream(nghttp2_, NGHTTP2_FLAG_NONE, call.stream_, error);
  }
  WriteSoon();
}

void GrpcConnection::Remove(GrpcClientCall& call) {
  calls_[call.place_] = calls_.back();
  calls_[call.place_]->place_ = call.place_;
  calls_.pop_back();
  call.connection_ = nullptr;
  if (!calls_.empty()) return;
  idle_since_ = CoarseNow();
  if (timer_ == nullptr) SetTimer();
}

void GrpcConnection::Resume(GrpcClientCall& call) {
  if (!std::exchange(call.deferred_, false)) return;
  nghttp2_session_resume_data(nghttp2_, call.stream_);
  WriteSoon();
}

void GrpcConnection::Consume(GrpcClientCall& call, size_t bytes) {
  if (bytes == 0) return;
  nghttp2_session_consume_stream(nghttp2_, call.stream_, bytes);
  WriteSoon();
}

void GrpcConnection::Drain() {
  if (std::exchange(draining_, true)) return;
  if (!ready_) return Lose(Unavailable("the channel is shut down"));
  nghttp2_submit_goaway(nghttp2_, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, nullptr, 0);
  WriteSoon();
}

void GrpcConnection::Detach() {
  channel_ = nullptr;
  timer_.reset();
}

void GrpcConnection::Leave() {
  if (socket_ == nullptr) return;
  nghttp2_session_terminate_session(nghttp2_, NGHTTP2_NO_ERROR);
  nghttp2_session_send(nghttp2_);
  socket_.reset();
}

void GrpcConnection::WriteSoon() {
  if (socket_ != nullptr) socket_->WriteSoon();
}

void GrpcConnection::OnConnected() { socket_->WriteSoon(); }

void GrpcConnection::OnBytes(std::string_view bytes) {
  last_received_ = CoarseNow();
  if (std::exchange(pinging_, false)) SetTimer();
  const ssize_t used = nghttp2_session_mem_recv(
      nghttp2_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (channel_ == nullptr) return;
  if (used < 0) return Lose(Unavailable(std::string("HTTP/2: ") + nghttp2_strerror(used)));
  WriteSoon();
}

void GrpcConnection::OnWritable() {
  if (channel_ == nullptr) return;
  channel_->Assign();
  const int sent = nghttp2_session_send(nghttp2_);
  if (channel_ == nullptr) return;
  if (sent != 0) return Lose(Unavailable("HTTP/2: cannot send"));
  CloseIfDone();
}

void GrpcConnection::CloseIfDone() {
  if (draining_ && calls_.empty()) {
    channel_->Retire(*this, OkStatus());
  } else if (nghttp2_session_want_read(nghttp2_) == 0 &&
             nghttp2_session_want_write(nghttp2_) == 0) {
    Lose(Unavailable("the server violates HTTP/2"));
  }
}

void GrpcConnection::Lose(Status status) {
  socket_.reset();
  OnLost(status);
}

void GrpcConnection::OnLost(const Status& status) {
  socket_.reset();
  if (channel_ == nullptr) return;
  channel_->Retire(*this, status);
  while (!calls_.empty()) {
    GrpcClientCall& call = *calls_.back();
    Remove(call);
    call.OnLost(status);
  }
}

int GrpcConnection::OnFrame(const nghttp2_frame& frame) {
  const bool end_stream = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
      answered_ = true;
      if (GrpcClientCall* call = Find(frame.hd.stream_id)) call->OnHeaders(end_stream);
      return 0;
    case NGHTTP2_DATA:
      if (!end_stream) return 0;
      if (GrpcClientCall* call = Find(frame.hd.stream_id)) call->OnEndStream();
      return 0;
    case NGHTTP2_SETTINGS:
      if ((frame.hd.flags & NGHTTP2_FLAG_ACK) != 0 || channel_ == nullptr) return 0;
      if (!std::exchange(ready_, true)) {
        ready_since_ = idle_since_ = CoarseNow();
        SetTimer();
      }
      channel_->Assign();
      return 0;
    case NGHTTP2_GOAWAY:
      OnGoaway(frame.goaway);
      return 0;
    default:
      return 0;
  }
}

void GrpcConnection::OnGoaway(const nghttp2_goaway& frame) {
  if (channel_ == nullptr) return;
  const std::string_view text(reinterpret_cast<const char*>(frame.opaque_data),
                              frame.opaque_data_len);
  if (frame.error_code == NGHTTP2_ENHANCE_YOUR_CALM && text == kTooManyPings) {
    channel_->options_.keepalive_time *= 2;
  }
  if (!std::exchange(draining_, true)) channel_->OnDraining(*this);
}

void GrpcConnection::OnData(int32_t stream, std::string_view bytes) {
  nghttp2_session_consume_connection(nghttp2_, bytes.size());
  if (GrpcClientCall* call = Find(stream)) {
    call->OnData(bytes);
  } else {
    nghttp2_session_consume_stream(nghttp2_, stream, bytes.size());
  }
}

void GrpcConnection::OnStreamClosed(GrpcClientCall& call, uint32_t error) {
  nghttp2_session_set_stream_user_data(nghttp2_, call.stream_, nullptr);
  Remove(call);
  call.OnReset(error, error == NGHTTP2_REFUSED_STREAM);
}

void GrpcConnection::OnNotSent(const nghttp2_frame& frame) {
  if (frame.hd.type != NGHTTP2_HEADERS) return;
  for (GrpcClientCall* call : calls_) {
    if (call->stream_ == frame.hd.stream_id) {
      return OnStreamClosed(*call, NGHTTP2_REFUSED_STREAM);
    }
  }
}

void GrpcConnection::Send(std::string_view bytes) { socket_->Output().append(bytes); }

int GrpcConnection::SendData(GrpcClientCall& call, std::string_view head, size_t size) {
  if (socket_->unsent() > kMaxOutput) {
    WriteSoon();
    return NGHTTP2_ERR_WOULDBLOCK;
  }
  socket_->Output().append(head).append(call.Take(size));
  call.DropSent();
  return 0;
}

ssize_t GrpcConnection::OfferData(GrpcClientCall& call, size_t max, uint32_t* flags) {
  bool end = false;
  const size_t size = call.Offer(max, &end);
  if (size > 0) *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (end) *flags |= NGHTTP2_DATA_FLAG_EOF;
  if (size == 0 && !end) return NGHTTP2_ERR_DEFERRED;
  return static_cast<ssize_t>(size);
}

GrpcClientCall* GrpcConnection::Find(int32_t stream) {
  return static_cast<GrpcClientCall*>(nghttp2_session_get_stream_user_data(nghttp2_, stream));
}

TimePoint GrpcConnection::NextTick() const {
  if (channel_ == nullptr) return TimePoint::max();
  const GrpcChannelOptions& options = channel_->options_;
  if (!ready_) return began_ + options.connect_timeout;
  TimePoint next = TimePoint::max();
  if (pinging_) {
    next = ping_sent_ + options.keepalive_timeout;
  } else if (options.keepalive_time != kNever &&
             (!calls_.empty() || options.keepalive_without_calls)) {
    next = last_received_ + options.keepalive_time;
  }
  if (calls_.empty() && options.idle_timeout != kNever) {
    next = std::min(next, idle_since_ + options.idle_timeout);
  }
  return next;
}

void GrpcConnection::SetTimer() {
  timer_due_ = NextTick();
  if (timer_due_ == TimePoint::max()) {
    timer_.reset();
  } else {
    timer_ = shard_.After(timer_due_ - Clock::now(), [this] { Tick(); });
  }
}

void GrpcConnection::Tick() {
  // The coarse clock is behind the timer's.
  const TimePoint now = Clock::now();
  if (now >= NextTick()) {
    if (!ready_) return Lose(Unavailable("connecting took too long"));
    if (pinging_) return Lose(Unavailable("the server does not answer pings"));
    const Duration idle = channel_->options_.idle_timeout;
    if (calls_.empty() && idle != kNever && now >= idle_since_ + idle) {
      draining_ = true;
      return channel_->Retire(*this, OkStatus());
    }
    pinging_ = true;
    ping_sent_ = now;
    nghttp2_submit_ping(nghttp2_, NGHTTP2_FLAG_NONE, nullptr);
    WriteSoon();
  }
  SetTimer();
}

}  // namespace portico::net
