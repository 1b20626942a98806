#include "net/http/http1_exchange.h"

#include <string>
#include <utility>

#include "base/touched_objects.h"
#include "net/loop/server_shard.h"

namespace portico::net {
namespace {

// Up to here copying a body behind its head is cheaper than a second part for the kernel.
constexpr size_t kCopyBody = 8 << 10;
constexpr int kClientClosedRequest = 499;

bool HasNoBody(int status) { return status == 204 || status == 304 || status < 200; }

}  // namespace

Http1Exchange::Http1Exchange(Http1Session& session, RequestParser& parser)
    : session_(&session),
      connection_(&session.connection()),
      shard_(session.connection().shard().shard),
      is_head_request_(parser.request().method == "HEAD"),
      http_1_0_(parser.http_1_0()),
      keep_alive_(parser.keep_alive()) {
  request = std::move(parser.request());
  if (session.connection().shard().options.on_complete != nullptr) start_ = Clock::now();
}

Http1Exchange::~Http1Exchange() {
  if (session_ != nullptr) EndDropped(streaming_, connection_->shard().options.write_error);
}

void Http1Exchange::SendHead(const HttpResponse& response, BodyFraming framing, size_t length) {
  ServerShard& server = connection_->shard();
  // A body that is not read to its end leaves no place for another request.
  if (framing == BodyFraming::kToEnd || server.draining() || body_open()) keep_alive_ = false;
  status_ = response.status;
  events_.OnHead(status_);
  if (server.options.notes_ids) NoteId(response, &request);
  framing_ = framing;
  AppendHead(response,
             {.framing = framing,
              .length = length,
              .server = server.options.server_header,
              .date = server.date.Now(),
              .close = !keep_alive_,
              .keep_alive = http_1_0_ && keep_alive_},
             &connection_->Output());
}

void Http1Exchange::Respond(HttpResponse response) {
  if (session_ == nullptr || streaming_) return;
  bool empty = HasNoBody(response.status);
  const bool told = is_head_request_ && response.head_length >= 0;
  SendHead(response, empty ? BodyFraming::kNone : BodyFraming::kLength,
           told ? static_cast<size_t>(response.head_length) : response.body.size());
  if (!empty && !is_head_request_) {
    body_bytes_ = response.body.size();
    Connection& connection = *connection_;
    if (body_bytes_ <= kCopyBody) {
      connection.Output().append(response.body);
    } else {
      connection.Write(std::move(response.body));
    }
  }
  Complete();
}

void Http1Exchange::StartStream(HttpResponse response) {
  if (session_ == nullptr || streaming_) return;
  streaming_ = true;
  BodyFraming framing = HasNoBody(response.status) ? BodyFraming::kNone
                        : http_1_0_                ? BodyFraming::kToEnd
                                                   : BodyFraming::kChunked;
  SendHead(response, framing, 0);
  Connection& connection = *connection_;
  connection.LimitUnsent(connection.shard().options.max_unsent_bytes);
}

void Http1Exchange::Write(std::string_view bytes) {
  if (session_ == nullptr || !streaming_ || bytes.empty()) return;
  if (is_head_request_ || framing_ == BodyFraming::kNone) return;
  NoteTouched(this, sizeof(*this));
  NoteTouched(connection_, sizeof(*connection_));
  body_bytes_ += bytes.size();
  std::string& out = connection_->Output();
  if (framing_ == BodyFraming::kChunked) {
    AppendChunk(bytes, &out);
  } else {
    out.append(bytes);
  }
}

void Http1Exchange::End() {
  if (session_ == nullptr || !streaming_) return;
  if (framing_ == BodyFraming::kChunked && !is_head_request_) {
    connection_->Output().append(kLastChunk);
  }
  Complete();
}

size_t Http1Exchange::unsent_bytes() const {
  return session_ == nullptr ? 0 : connection_->unsent();
}

void Http1Exchange::CallWhenBelow(size_t bytes, absl::AnyInvocable<void()> call) {
  if (session_ != nullptr) connection_->CallWhenBelow(bytes, std::move(call));
}

Connection* Http1Exchange::SwitchProtocol(const Headers& headers) {
  if (session_ == nullptr || streaming_ || http_1_0_ || body_open()) return nullptr;
  std::string& out = connection_->Output();
  out += "HTTP/1.1 101 Switching Protocols\r\n";
  for (const auto& [name, value] : headers) out += name + ": " + value + "\r\n";
  out += "\r\n";
  Report(101);
  std::exchange(session_, nullptr)->OnSwitched();
  return connection_;
}

void Http1Exchange::Cut() {
  if (session_ == nullptr) return;
  Report(status_);
  std::exchange(session_, nullptr)->OnCut();
}

void Http1Exchange::Complete() {
  Report(status_);
  events_.OnEnd(body_bytes_);
  std::exchange(session_, nullptr)->OnAnswered(keep_alive_);
}

void Http1Exchange::OnClientGone() {
  Report(kClientClosedRequest);
  session_ = nullptr;
  auto on_closed = std::exchange(on_closed_, nullptr);
  if (on_closed) on_closed();
}

void Http1Exchange::Report(int status) {
  const auto& on_complete = connection_->shard().options.on_complete;
  if (on_complete != nullptr) on_complete(request, status, body_bytes_, Clock::now() - start_);
}

}  // namespace portico::net
