#include "net/http2/http2_session.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "net/grpc/grpc_call.h"
#include "net/http2/http2_callbacks.h"
#include "net/http2/http2_exchange.h"
#include "net/loop/server_shard.h"

namespace portico::net {
namespace {

// Output that waits for the kernel; the rest waits in the streams.
constexpr size_t kMaxOutput = 128 << 10;
// Control frames that a client makes us write and does not read.
constexpr size_t kMaxControlFrames = 10000;
// A head over its limit is still read, to be refused with a status; not much of it, though.
constexpr size_t kHeadsRead = 4;
// What HTTP/2 adds to each field when it counts a head (RFC 9113, 6.5.2).
constexpr size_t kFieldOverhead = 32;
constexpr size_t kMaxHeaders = 256;
constexpr size_t kUsualHeaders = 12;
constexpr Duration kLinger = std::chrono::seconds(1);
constexpr size_t kResetsRemembered = 1024;
constexpr uint8_t kTooManyPings[] = {'t', 'o', 'o', '_', 'm', 'a', 'n',
                                     'y', '_', 'p', 'i', 'n', 'g', 's'};

bool IsLight(uint8_t type) {
  return type == NGHTTP2_PRIORITY || type == NGHTTP2_WINDOW_UPDATE || type > NGHTTP2_CONTINUATION;
}

}  // namespace

bool FrameBudget::Take(TimePoint now) {
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - since_).count();
  if (seconds > 0) {
    since_ = now;
    left_ = seconds > burst_ / a_second_
                ? burst_
                : std::min(burst_, left_ + static_cast<int>(seconds) * a_second_);
  }
  return --left_ > 0;
}

Http2Session::Http2Session(Connection& connection)
    : connection_(connection), nghttp2_(NewHttp2Server(this)), now_(CoarseNow()) {
  last_tick_ = last_received_ = idle_since_ = head_since_ = now_;
  end_of_age_ = EndOfAge();
  if (nghttp2_ == nullptr) {
    ended_ = true;
    connection_.Abort();
    return;
  }
  const ServerOptions& options = connection_.shard().options;
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options.http2.max_concurrent_streams},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options.http2.stream_window},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<uint32_t>(options.max_head_bytes)},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
  };
  nghttp2_submit_settings(nghttp2_, NGHTTP2_FLAG_NONE, settings, std::size(settings));
  nghttp2_session_set_local_window_size(nghttp2_, NGHTTP2_FLAG_NONE, 0,
                                        static_cast<int32_t>(options.http2.connection_window));
  connection_.SetWait(Wait::kTick);
  connection_.RunAtEndOfTurn();
}

Http2Session::~Http2Session() {
  TellAllGone();
  nghttp2_session_del(nghttp2_);
}

void Http2Session::OnBytes(std::string_view bytes) {
  if (ended_ || terminating_) return;
  now_ = last_received_ = CoarseNow();
  pinging_ = false;
  // Before nghttp2 reads them and closes more streams.
  bool closed_stream = false;
  bool flood = false;
  int32_t reset = 0;
  std::string_view left = bytes;
  for (Http2FrameHeads::Head head; received_.Next(&left, &head);) {
    if (head.type == NGHTTP2_RST_STREAM) reset = head.stream;
    if (IsLight(head.type) && !light_frames_.Take(now_)) flood = true;
    if (head.type != NGHTTP2_DATA) continue;
    if (head.stream == reset || IsForClosedStream(head.stream)) closed_stream = true;
  }
  ssize_t used = nghttp2_session_mem_recv(nghttp2_, reinterpret_cast<const uint8_t*>(bytes.data()),
                                          bytes.size());
  if (ended_) return;
  connection_.RunAtEndOfTurn();
  if ((closed_stream || flood) && used >= 0 && !terminating_) {
    Terminate(closed_stream ? Http2Error::kStreamClosed : Http2Error::kEnhanceYourCalm);
    return;
  }
  if (used < 0 && !terminating_) {
    // nghttp2 answers breaches of the protocol itself; left are its own bounds, the wrong preface
    // and the lack of memory.
    if (used == NGHTTP2_ERR_BAD_CLIENT_MAGIC || used == NGHTTP2_ERR_NOMEM) {
      connection_.Abort();
    } else {
      Terminate(Http2Error::kEnhanceYourCalm);
    }
    return;
  }
  if (!in_head_) return;
  head_wire_bytes_ += bytes.size();
  const size_t limit = connection_.shard().options.max_head_bytes;
  if (head_wire_bytes_ > kHeadsRead * limit + ServerShard::kReadBuffer) {
    Terminate(Http2Error::kEnhanceYourCalm);
  }
}

int Http2Session::OnBeginFrame(const nghttp2_frame_hd& head) {
  if (ended_ || terminating_) return NGHTTP2_ERR_CALLBACK_FAILURE;
  // nghttp2 keeps no closed streams here (a quarter of a kilobyte each) and reads no old
  // priorities, so these breaches are ours to see.
  if (head.type == NGHTTP2_PRIORITY && head.stream_id == 0) {
    return Terminate(Http2Error::kProtocol);
  }
  if (head.type != NGHTTP2_HEADERS || !IsForClosedStream(head.stream_id)) return 0;
  return Terminate(Http2Error::kStreamClosed);
}

bool Http2Session::IsForClosedStream(int32_t id) const {
  if (id > nghttp2_session_get_last_proc_stream_id(nghttp2_) || id % 2 == 0 || shutting_down_ ||
      nghttp2_session_find_stream(nghttp2_, id) != nullptr) {
    return false;
  }
  // What a client has sent before it knew of our reset may still come.
  return std::find(reset_by_us_.begin(), reset_by_us_.end(), id) == reset_by_us_.end();
}

void Http2Session::RememberReset(int32_t id) {
  if (reset_by_us_.size() < kResetsRemembered) {
    reset_by_us_.push_back(id);
    return;
  }
  reset_by_us_[next_reset_] = id;
  next_reset_ = (next_reset_ + 1) % kResetsRemembered;
}

int Http2Session::OnBeginHeaders(int32_t id, bool of_request) {
  if (ended_ || terminating_) return NGHTTP2_ERR_CALLBACK_FAILURE;
  in_head_ = true;
  head_stream_ = id;
  head_since_ = now_;
  head_wire_bytes_ = 0;
  if (!of_request) return 0;
  auto stream = std::make_unique<Http2Stream>(*this, id);
  stream->place_ = streams_.size();
  stream->request.headers.reserve(kUsualHeaders);
  nghttp2_session_set_stream_user_data(nghttp2_, id, stream.get());
  streams_.push_back(std::move(stream));
  return 0;
}

int Http2Session::OnHeader(Http2Stream& stream, std::string_view name, std::string_view value) {
  if (ended_ || terminating_) return NGHTTP2_ERR_CALLBACK_FAILURE;
  const size_t limit = connection_.shard().options.max_head_bytes;
  stream.head_bytes_ += name.size() + value.size() + kFieldOverhead;
  // Small frames can unpack to huge heads.
  if (stream.head_bytes_ > kHeadsRead * limit) return Terminate(Http2Error::kEnhanceYourCalm);
  if (stream.head_bytes_ > limit || stream.head_done_) return 0;
  HttpRequest& request = stream.request;
  if (name == ":method") {
    request.method.assign(value);
  } else if (name == ":path") {
    request.path.assign(value);
  } else if (name == ":authority") {
    request.headers.emplace_back("host", value);
  } else if (name.front() != ':') {
    if (request.headers.size() < kMaxHeaders) {
      request.headers.emplace_back(name, value);
    } else {
      stream.head_bytes_ = limit + 1;
    }
  }
  return 0;
}

int Http2Session::OnFrame(const nghttp2_frame& frame) {
  if (ended_ || terminating_) return NGHTTP2_ERR_CALLBACK_FAILURE;
  const bool end_stream = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA: {
      if (frame.hd.type == NGHTTP2_HEADERS) in_head_ = false;
      Http2Stream* stream = Find(frame.hd.stream_id);
      if (stream == nullptr) return 0;
      if (frame.hd.type == NGHTTP2_DATA && frame.hd.length == 0 && !end_stream)
        return Count(idle_frames_);
      if (!stream->head_done_) OnHead(*stream, end_stream);
      // The handler may have reset it meanwhile.
      if (end_stream && Find(frame.hd.stream_id) == stream) OnRequestEnd(*stream);
      return 0;
    }
    case NGHTTP2_PING:
      if ((frame.hd.flags & NGHTTP2_FLAG_ACK) == 0) return OnPing();
      if (shutting_down_) FinishShutdown();
      return Count(light_frames_);
    case NGHTTP2_SETTINGS:
      if (!std::exchange(settings_seen_, true)) in_head_ = false;
      return (frame.hd.flags & NGHTTP2_FLAG_ACK) == 0 ? Count(idle_frames_) : 0;
    case NGHTTP2_RST_STREAM:
      return Count(resets_);
    default:
      return 0;
  }
}

int Http2Session::OnPing() {
  if (idle_frames_.Take(now_)) return 0;
  // A gRPC client that reads it pings less often on its next connection (gRPC's keepalive.md).
  nghttp2_submit_goaway(nghttp2_, NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(nghttp2_),
                        NGHTTP2_ENHANCE_YOUR_CALM, kTooManyPings, sizeof kTooManyPings);
  return Terminate(Http2Error::kEnhanceYourCalm);
}

void Http2Session::OnHead(Http2Stream& stream, bool ended) {
  stream.head_done_ = true;
  stream.body_since_ = now_;
  stream.request.peer = connection_.peer();
  stream.request.client = connection_.client();
  stream.request.late = connection_.late();
  // Answers take turns once they are large, whatever their client wishes.
  const nghttp2_extpri whole = {NGHTTP2_EXTPRI_DEFAULT_URGENCY, 0};
  nghttp2_session_change_extpri_stream_priority(nghttp2_, stream.id_, &whole, 1);
  bool too_large = stream.head_bytes_ > connection_.shard().options.max_head_bytes;
  if (IsGrpcContentType(stream.request.Header("content-type"))) {
    GrpcCall::Begin(stream, too_large);
  } else {
    Http2Exchange::Begin(stream, too_large, ended);
  }
}

void Http2Session::OnRequestEnd(Http2Stream& stream) {
  stream.request_ended_ = true;
  if (stream.user_ != nullptr) stream.user_->OnRequestEnd();
}

int Http2Session::OnData(Http2Stream& stream, std::string_view bytes) {
  if (ended_ || terminating_) return NGHTTP2_ERR_CALLBACK_FAILURE;
  stream.unconsumed_ += bytes.size();
  stream.body_moved_ += bytes.size();
  if (stream.user_ != nullptr) {
    stream.user_->OnBody(bytes);
  } else {
    stream.Consume(bytes.size());
    stream.dropped_ += bytes.size();
    if (stream.linger_until_ != TimePoint{} && stream.dropped_ > Connection::kDroppedInput) {
      stream.Reset(Http2Error::kNone);
    }
  }
  return 0;
}

void Http2Session::OnFrameSent(const nghttp2_frame& frame) {
  if (frame.hd.type == NGHTTP2_RST_STREAM) RememberReset(frame.hd.stream_id);
  if (frame.hd.type != NGHTTP2_DATA && frame.hd.type != NGHTTP2_HEADERS) return;
  idle_frames_.Earn();
  light_frames_.Earn();
  if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return;
  Http2Stream* stream = Find(frame.hd.stream_id);
  if (stream == nullptr || stream->request_ended_ || stream->reset_) return;
  // The answer is complete, so the rest of the request is not wanted (RFC 9113, 8.1).
  if (stream->lingers_) {
    stream->linger_until_ = now_ + kLinger;
    return;
  }
  stream->Reset(Http2Error::kNone);
}

void Http2Session::OnStreamClosed(Http2Stream& stream) {
  nghttp2_session_set_stream_user_data(nghttp2_, stream.id_, nullptr);
  // A malformed head is never reported as read.
  if (stream.id_ == head_stream_) in_head_ = false;
  if (Http2User* user = stream.TakeUser()) user->OnGone(Http2Error::kCancel);
  Remove(stream);
}

Http2Stream* Http2Session::Find(int32_t id) {
  return static_cast<Http2Stream*>(nghttp2_session_get_stream_user_data(nghttp2_, id));
}

void Http2Session::Remove(Http2Stream& stream) {
  stream.DropOutput();
  stream.Hold(0);
  const size_t kept = stream.unconsumed_ - stream.spared_;  // of the connection's window
  if (kept > 0) nghttp2_session_consume_connection(nghttp2_, kept);
  size_t place = stream.place_;
  std::swap(streams_[place], streams_.back());
  streams_[place]->place_ = place;
  streams_.pop_back();
  if (streams_.empty()) idle_since_ = now_;
}

void Http2Session::CutOff(Http2Stream& stream, Http2Error error) {
  if (error == Http2Error::kEnhanceYourCalm) {
    connection_.shard().load.readers_cut.fetch_add(1, std::memory_order_relaxed);
  }
  stream.Reset(error);
  if (Http2User* user = stream.TakeUser()) user->OnGone(error);
}

bool Http2Session::HoldsEnoughAnswers() const {
  const size_t bound =
      kSharedBounds * std::max(connection_.shard().options.max_unsent_bytes, kLargeAnswer);
  if (unsent_total_ <= bound) return false;
  size_t held = 0;
  for (const auto& stream : streams_) held += stream->max_unsent_ == 0 ? stream->unsent() : 0;
  return held > bound;
}

void Http2Session::CutOverBound() {
  if (!std::exchange(some_over_bound_, false)) return;
  for (size_t i = 0; i < streams_.size(); ++i) {
    if (streams_[i]->over_bound() || std::exchange(streams_[i]->unwanted_, false)) {
      CutOff(*streams_[i], Http2Error::kEnhanceYourCalm);
    }
  }
  while (Http2Stream* behind = FurthestBehind()) CutOff(*behind, Http2Error::kEnhanceYourCalm);
}

Http2Stream* Http2Session::FurthestBehind() const {
  Http2Stream* most = nullptr;
  size_t streamed = 0;  // of those that may be cut off
  for (const auto& stream : streams_) {
    if (stream->max_unsent_ == 0) continue;
    streamed += stream->unsent();
    if (most == nullptr || stream->unsent() > most->unsent()) most = stream.get();
  }
  if (most == nullptr || most->unsent() == 0) return nullptr;
  const size_t bound = kSharedBounds * most->max_unsent_;
  const bool is_behind = unsent_total_ > bound && most->unsent() > most->max_unsent_ / 2;
  return streamed > bound || is_behind ? most : nullptr;
}

void Http2Session::TellAllGone() {
  for (size_t i = 0; i < streams_.size(); ++i) {
    streams_[i]->reset_ = true;
    if (Http2User* user = streams_[i]->TakeUser()) user->OnGone(Http2Error::kCancel);
  }
}

int Http2Session::Count(FrameBudget& budget) {
  return budget.Take(now_) ? 0 : Terminate(Http2Error::kEnhanceYourCalm);
}

int Http2Session::Terminate(Http2Error error) {
  if (!std::exchange(terminating_, true)) {
    nghttp2_session_terminate_session(nghttp2_, static_cast<uint32_t>(error));
    connection_.RunAtEndOfTurn();
  }
  return NGHTTP2_ERR_CALLBACK_FAILURE;
}

int Http2Session::Send(std::string_view bytes) {
  if (connection_.unsent() > kMaxOutput) {
    connection_.TellWhenSent();
    return NGHTTP2_ERR_WOULDBLOCK;
  }
  connection_.Output().append(bytes);
  return 0;
}

int Http2Session::SendData(Http2Stream& stream, const uint8_t* frame_head, size_t size) {
  constexpr size_t kFrameHead = 9;
  if (connection_.unsent() > kMaxOutput) {
    connection_.TellWhenSent();
    return NGHTTP2_ERR_WOULDBLOCK;
  }
  std::string& out = connection_.Output();
  out.append(reinterpret_cast<const char*>(frame_head), kFrameHead);
  unsent_total_ -= size;
  stream.stuck_since_ = now_;
  while (size > 0) {
    iovec part;
    stream.output_.Gather(&part, 1);
    size_t taken = std::min(part.iov_len, size);
    out.append(static_cast<const char*>(part.iov_base), taken);
    stream.output_.Consume(taken);
    size -= taken;
  }
  if (stream.below_ != nullptr) stream.below_->OnSent(stream.unsent());
  return 0;
}

ssize_t Http2Session::OfferData(Http2Stream& stream, size_t max, uint32_t* flags) {
  size_t size = std::min(stream.output_.size(), max);
  if (size == 0 && !stream.ended_) {
    stream.deferred_ = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  if (size > 0) *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (stream.ended_ && size == stream.output_.size()) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (stream.SubmitTrailers()) *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
  }
  return static_cast<ssize_t>(size);
}

void Http2Session::Pump() {
  if (ended_) return;
  CutOverBound();
  if (nghttp2_session_send(nghttp2_) != 0 ||
      nghttp2_session_get_outbound_queue_size(nghttp2_) > kMaxControlFrames) {
    connection_.Abort();
    return;
  }
  if (nghttp2_session_want_read(nghttp2_) != 0 || nghttp2_session_want_write(nghttp2_) != 0) return;
  ended_ = true;
  TellAllGone();
  connection_.CloseWhenSent();
}

void Http2Session::OnSent() { connection_.RunAtEndOfTurn(); }

void Http2Session::OnEndOfTurn() {
  now_ = CoarseNow();
  Pump();
}

void Http2Session::OnEnd() {
  ended_ = true;
  TellAllGone();
}

}  // namespace portico::net
