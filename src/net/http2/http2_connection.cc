#include "net/http2/http2_connection.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "net/http2/http2_client_callbacks.h"

namespace portico::net {
namespace {

// Output that waits for the kernel; the rest waits in the calls.
constexpr size_t kMaxWaitingOutput = 128 << 10;
constexpr char kNoHttp2[] = "the server violates HTTP/2";

nghttp2_nv FieldOf(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

// Takes what stands before `until` off the front.
std::string_view TakeUntil(std::string_view until, std::string_view* text) {
  const size_t at = std::min(text->find(until), text->size());
  const std::string_view taken = text->substr(0, at);
  text->remove_prefix(std::min(text->size(), at + until.size()));
  return taken;
}

// The fields of a head as HTTP/1.1 writes it, which is how calls have theirs.
std::vector<nghttp2_nv> FieldsOf(std::string_view head, bool tls) {
  std::vector<nghttp2_nv> fields(4);
  std::string_view line = TakeUntil("\r\n", &head);
  fields[0] = FieldOf(":method", TakeUntil(" ", &line));
  fields[1] = FieldOf(":scheme", tls ? "https" : "http");
  fields[2] = FieldOf(":path", TakeUntil(" ", &line));
  while (!(line = TakeUntil("\r\n", &head)).empty()) {
    const std::string_view name = TakeUntil(": ", &line);
    if (name == "host") {
      fields[3] = FieldOf(":authority", line);
    } else if (name != "transfer-encoding") {
      fields.push_back(FieldOf(name, line));
    }
  }
  return fields;
}

}  // namespace

Http2Connection::Http2Connection(std::shared_ptr<Http2Client::Pool> pool)
    : pool_(std::move(pool)), nghttp2_(NewHttp2ClientSession(this)) {
  const Http2ClientOptions& options = pool_->options;
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options.stream_window},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<uint32_t>(options.max_head_bytes)},
  };
  nghttp2_submit_settings(nghttp2_, NGHTTP2_FLAG_NONE, settings, std::size(settings));
  nghttp2_session_set_local_window_size(nghttp2_, NGHTTP2_FLAG_NONE, 0,
                                        static_cast<int32_t>(options.connection_window));
}

Http2Connection::~Http2Connection() { nghttp2_session_del(nghttp2_); }

void Http2Connection::Connect() {
  timer_ = pool_->shard.After(pool_->options.connect_timeout, [this] {
    const auto self = shared_from_this();
    Lose("no connection within the time limit");
  });
  socket_.reset(new ClientSocket(pool_->shard, pool_->target, *this));
}

bool Http2Connection::has_room() const {
  return ready_ && !draining_ &&
         calls_.size() <
             nghttp2_session_get_remote_settings(nghttp2_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

bool Http2Connection::Begin(Http2Call& call) {
  const std::vector<nghttp2_nv> fields = FieldsOf(call.request_.head, pool_->target.tls != nullptr);
  const nghttp2_data_provider body = Http2ClientBody();
  const bool has_body =
      call.rest_open_ || (call.request_.body != nullptr && !call.request_.body->empty());
  const int32_t stream = nghttp2_submit_request(nghttp2_, nullptr, fields.data(), fields.size(),
                                                has_body ? &body : nullptr, &call);
  if (stream < 0) {
    draining_ = true;  // out of stream ids, mostly
    socket_->WriteSoon();
    return false;
  }
  call.end_sent_ = !has_body;
  call.connection_ = shared_from_this();
  call.stream_ = stream;
  calls_.push_back(&call);
  timer_.reset();
  socket_->WriteSoon();
  return true;
}

void Http2Connection::Abandon(Http2Call& call) {
  const auto self = shared_from_this();
  Release(call, NGHTTP2_CANCEL);
}

void Http2Connection::Consume(Http2Call& call, size_t bytes) {
  if (bytes == 0 || socket_ == nullptr) return;
  nghttp2_session_consume_stream(nghttp2_, call.stream_, bytes);
  socket_->WriteSoon();
}

void Http2Connection::SendMore(Http2Call& call) {
  if (socket_ == nullptr) return;
  if (std::exchange(call.deferred_, false)) nghttp2_session_resume_data(nghttp2_, call.stream_);
  socket_->WriteSoon();
}

void Http2Connection::Drain() {
  draining_ = true;
  if (!calls_.empty()) return;
  const auto self = shared_from_this();
  Lose("the client was closed");
}

void Http2Connection::OnConnected() {
  connected_ = true;
  socket_->WriteSoon();
}

void Http2Connection::OnBytes(std::string_view bytes) {
  const auto self = shared_from_this();
  const ssize_t used = nghttp2_session_mem_recv(
      nghttp2_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (socket_ == nullptr) return;
  if (used < 0) {
    return Lose(kNoHttp2, CallFailure::kMalformed);
  }
  socket_->WriteSoon();
}

void Http2Connection::OnWritable() {
  const auto self = shared_from_this();
  if (nghttp2_session_send(nghttp2_) != 0) return Lose("HTTP/2: cannot send");
  TellWanted();
  if (socket_ != nullptr) CloseIfDone();
}

void Http2Connection::CloseIfDone() {
  const bool over =
      nghttp2_session_want_read(nghttp2_) == 0 && nghttp2_session_want_write(nghttp2_) == 0;
  if (over) return Lose(kNoHttp2, CallFailure::kMalformed);
  if (draining_ && calls_.empty()) Lose("");
}

void Http2Connection::Lose(const std::string& why, CallFailure failure) {
  socket_.reset();
  timer_.reset();
  draining_ = true;
  const auto self = shared_from_this();
  while (!calls_.empty()) Fail(*calls_.back(), CallFailure::kLost, why);
  pool_->Retire(*this, failure, why);
  pool_->Assign();
}

void Http2Connection::OnLost(const Status& status) {
  const auto self = shared_from_this();
  // One that closes instead of sending its settings; under TLS the handshake may have failed.
  const bool other = connected_ && !ready_ && pool_->target.tls == nullptr;
  if (other) return Lose(kNoHttp2, CallFailure::kMalformed);
  Lose(std::string(MessageOf(status)));
}

void Http2Connection::OnHeader(Http2Call& call, std::string_view name, std::string_view value) {
  call.head_bytes_ += name.size() + value.size() + 32;  // RFC 9113, 6.5.2
  if (call.head_bytes_ > pool_->options.max_head_bytes) {
    call.malformed_ = true;
    return;
  }
  if (call.head_done_) return;  // trailers
  if (name == ":status") {
    std::from_chars(value.data(), value.data() + value.size(), call.head_.status);
  } else if (!name.starts_with(':')) {
    call.head_.headers.emplace_back(name, value);
  }
}

void Http2Connection::OnFrame(const nghttp2_frame& frame) {
  const bool ends = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  Http2Call* const call = Find(frame.hd.stream_id);
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
      if (call != nullptr) OnHead(*call, ends);
      return;
    case NGHTTP2_DATA:
      if (call != nullptr && ends) Complete(*call);
      return;
    case NGHTTP2_SETTINGS:
      if ((frame.hd.flags & NGHTTP2_FLAG_ACK) != 0) return;
      if (!std::exchange(ready_, true)) SetIdleTimer();
      // Not from within nghttp2: calls begin, and may end, by it.
      pool_->shard.AtEndOfTurn([pool = pool_] { pool->Assign(); });
      return;
    case NGHTTP2_GOAWAY:
      draining_ = true;
      return;
    default:
      return;
  }
}

void Http2Connection::OnHead(Http2Call& call, bool ends) {
  if (call.malformed_) {
    return Fail(call, CallFailure::kMalformed, "the answer's head is too large");
  }
  if (call.head_done_) {
    if (ends) Complete(call);
    return;
  }
  if (call.head_.status < 200) {  // interim
    call.head_ = {};
    return;
  }
  call.head_done_ = true;
  call.head_.keep_alive = true;
  const std::string_view length = call.head_.Header("content-length");
  if (!length.empty()) {
    std::from_chars(length.data(), length.data() + length.size(), call.head_.length);
  } else if (ends) {
    call.head_.length = 0;
  }
  const int32_t stream = call.stream_;
  call.events_.OnHead(call.head_);
  if (!ends) return;
  if (Http2Call* still = Find(stream)) Complete(*still);
}

void Http2Connection::OnData(int32_t stream, std::string_view bytes) {
  nghttp2_session_consume_connection(nghttp2_, bytes.size());
  Http2Call* call = Find(stream);
  if (call == nullptr) {
    nghttp2_session_consume_stream(nghttp2_, stream, bytes.size());
    return;
  }
  if (bytes.empty()) return;
  call->events_.OnBody(bytes);
  call = Find(stream);
  if (call == nullptr) return;
  if (call->paused_) {
    call->unconsumed_ += bytes.size();
  } else {
    nghttp2_session_consume_stream(nghttp2_, stream, bytes.size());
  }
}

void Http2Connection::OnStreamClosed(Http2Call& call, uint32_t error) {
  nghttp2_session_set_stream_user_data(nghttp2_, call.stream_, nullptr);
  Remove(call);
  HttpCallEvents& events = call.events_;
  if (error == NGHTTP2_REFUSED_STREAM) {
    return events.OnFailed(CallFailure::kStale, "the server has refused the request unread");
  }
  const bool broken = error == NGHTTP2_PROTOCOL_ERROR;
  events.OnFailed(broken ? CallFailure::kMalformed : CallFailure::kLost,
                  broken ? "the answer breaks the protocol"
                         : std::string("the stream was reset: ") + nghttp2_http2_strerror(error));
}

ssize_t Http2Connection::OfferBody(Http2Call& call, size_t max, uint32_t* flags) {
  const size_t first = call.first_left();
  const size_t rest = call.rest_.size() - call.rest_sent_;
  const size_t size = std::min(first > 0 ? first : rest, max);
  if (size == 0 && call.rest_open_) {
    call.deferred_ = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  if (size > 0) *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (size == first + rest && !call.rest_open_) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    call.end_sent_ = true;
  }
  return static_cast<ssize_t>(size);
}

// Not from within nghttp2.
void Http2Connection::TellWanted() {
  while (socket_ != nullptr) {
    const auto next = std::find_if(calls_.begin(), calls_.end(),
                                   [](const Http2Call* call) { return call->body_wanted_; });
    if (next == calls_.end()) return;
    (*next)->body_wanted_ = false;
    (*next)->events_.OnBodyWanted();
  }
}

int Http2Connection::SendBody(Http2Call& call, std::string_view head, size_t size) {
  if (socket_->unsent() > kMaxWaitingOutput) {
    socket_->WriteSoon();
    return NGHTTP2_ERR_WOULDBLOCK;
  }
  std::string& out = socket_->Output().append(head);
  if (call.first_left() > 0) {
    out.append(*call.request_.body, call.body_sent_, size);
    call.body_sent_ += size;
    // It is large, and the rest may take its time.
    if (call.request_.body_open && call.first_left() == 0) call.request_.body.reset();
  } else {
    out.append(call.rest_, call.rest_sent_, size);
    call.rest_sent_ += size;
  }
  if (call.first_left() > 0 || call.rest_sent_ < call.rest_.size()) return 0;
  call.rest_.clear();
  call.rest_sent_ = 0;
  call.body_wanted_ = call.rest_open_;
  return 0;
}

Http2Call* Http2Connection::Find(int32_t stream) {
  return static_cast<Http2Call*>(nghttp2_session_get_stream_user_data(nghttp2_, stream));
}

void Http2Connection::Complete(Http2Call& call) {
  HttpCallEvents& events = call.events_;
  const bool answered = call.head_done_;
  // The rest of a request that is answered before its end is not wanted.
  Release(call, NGHTTP2_NO_ERROR);
  answered ? events.OnDone() : events.OnFailed(CallFailure::kMalformed, "the answer has no head");
}

void Http2Connection::Release(Http2Call& call, uint32_t error) {
  nghttp2_session_set_stream_user_data(nghttp2_, call.stream_, nullptr);
  const bool reset = error != NGHTTP2_NO_ERROR || !call.end_sent_;
  const int32_t stream = call.stream_;
  Remove(call);
  if (socket_ == nullptr) return;
  if (reset) nghttp2_submit_rst_stream(nghttp2_, NGHTTP2_FLAG_NONE, stream, error);
  socket_->WriteSoon();
}

void Http2Connection::Remove(Http2Call& call) {
  std::erase(calls_, &call);
  // The last that holds it may be the call.
  pool_->shard.AtEndOfTurn([self = std::exchange(call.connection_, nullptr)] {});
  if (calls_.empty() && socket_ != nullptr) SetIdleTimer();
  if (!draining_) pool_->shard.AtEndOfTurn([pool = pool_] { pool->Assign(); });
}

void Http2Connection::Fail(Http2Call& call, CallFailure failure, const std::string& why) {
  HttpCallEvents& events = call.events_;
  Release(call, NGHTTP2_CANCEL);
  events.OnFailed(failure, why);
}

void Http2Connection::SetIdleTimer() {
  timer_ = pool_->shard.After(pool_->options.idle_life, [this] {
    if (!calls_.empty()) return;
    const auto self = shared_from_this();
    Lose("it was idle");
  });
}

}  // namespace portico::net
