#include "net/websocket/web_socket.h"

#include <algorithm>
#include <utility>

#include "net/http/http1_exchange.h"
#include "net/loop/server_shard.h"
#include "net/websocket/ws_session.h"

namespace portico::net {
namespace {

constexpr auto kPingPeriod = std::chrono::seconds(20);
constexpr auto kSilence = std::chrono::seconds(60);  // then the client is gone
constexpr size_t kKeyBytes = 24;                     // base64 of 16 bytes

// Whether a comma-separated header has the word, in any case.
bool HasWord(std::string_view header, std::string_view word) {
  for (size_t at = 0; at <= header.size();) {
    const size_t end = std::min(header.find(',', at), header.size());
    std::string_view item = header.substr(at, end - at);
    while (!item.empty() && (item.front() == ' ' || item.front() == '\t')) item.remove_prefix(1);
    while (!item.empty() && (item.back() == ' ' || item.back() == '\t')) item.remove_suffix(1);
    if (std::equal(item.begin(), item.end(), word.begin(), word.end(), [](char a, char b) {
          return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a) == b;
        })) {
      return true;
    }
    at = end + 1;
  }
  return false;
}

}  // namespace

bool AsksForWebSocket(const HttpRequest& request) {
  return HasWord(request.Header("upgrade"), "websocket") &&
         HasWord(request.Header("connection"), "upgrade");
}

std::unique_ptr<WebSocket> WebSocket::Accept(std::unique_ptr<Exchange> exchange,
                                             WsOptions options) {
  const HttpRequest& request = exchange->request;
  const auto refuse = [&exchange](int status, std::string why) {
    HttpResponse response;
    response.status = status;
    response.content_type = "text/plain; charset=utf-8";
    response.headers = {{"upgrade", "websocket"}, {"sec-websocket-version", "13"}};
    response.body = std::move(why);
    exchange->Respond(std::move(response));
    return nullptr;
  };
  if (!AsksForWebSocket(request)) return refuse(426, "this path is a WebSocket\n");
  if (request.Header("sec-websocket-version") != "13") {
    return refuse(426, "the WebSocket's version must be 13\n");
  }
  const std::string_view key = request.Header("sec-websocket-key");
  if (key.size() != kKeyBytes) return refuse(400, "Sec-WebSocket-Key is missing or invalid\n");
  Headers headers = {
      {"upgrade", "websocket"}, {"connection", "Upgrade"}, {"sec-websocket-accept", WsAccept(key)}};
  if (!options.protocol.empty()) headers.emplace_back("sec-websocket-protocol", options.protocol);
  // HTTP/2 has its own way (RFC 8441), which no client here takes.
  auto* http1 = dynamic_cast<Http1Exchange*>(exchange.get());
  Connection* connection = http1 == nullptr ? nullptr : http1->SwitchProtocol(headers);
  if (connection == nullptr) return refuse(501, "WebSockets need HTTP/1.1\n");
  std::unique_ptr<WebSocket> socket(new WebSocket());
  auto session = std::make_unique<WsSession>(*connection, socket.get(), options.max_message_bytes);
  socket->session_ = session.get();
  connection->BecomeSession(std::move(session));
  return socket;
}

WebSocket::~WebSocket() {
  if (session_ == nullptr) return;
  WsSession* session = std::exchange(session_, nullptr);
  session->Detach();
  session->Close(kWsGoingAway, "");
}

void WebSocket::SendText(std::string_view text) {
  if (session_ != nullptr) session_->Send(WsMessage::kText, text);
}

void WebSocket::SendBinary(std::string_view bytes) {
  if (session_ != nullptr) session_->Send(WsMessage::kBinary, bytes);
}

void WebSocket::Close(uint16_t code, std::string_view reason) {
  if (session_ != nullptr) session_->Close(code, reason);
}

size_t WebSocket::unsent_bytes() const { return session_ == nullptr ? 0 : session_->unsent(); }

void WebSocket::CallWhenBelow(size_t bytes, absl::AnyInvocable<void()> call) {
  if (session_ != nullptr) session_->CallWhenBelow(bytes, std::move(call));
}

WsSession::WsSession(Connection& connection, WebSocket* socket, size_t max_message_bytes)
    : connection_(connection),
      socket_(socket),
      reader_(max_message_bytes),
      heard_(Clock::now()),
      pinged_(heard_) {
  connection_.LimitUnsent(connection_.shard().options.max_unsent_bytes);
  connection_.SetWait(Wait::kTick);
}

WsSession::~WsSession() {
  if (socket_ != nullptr) socket_->session_ = nullptr;
}

void WsSession::OnBytes(std::string_view bytes) {
  if (closing_) return;
  heard_ = Clock::now();
  const uint16_t code =
      reader_.Feed(bytes, [this](const WsMessage& message) { return OnMessage(message); });
  if (code != 0) Fail(code);
}

bool WsSession::OnMessage(const WsMessage& message) {
  switch (message.kind) {
    case WsMessage::kPing:
      Send(WsMessage::kPong, message.data);
      return !closing_;
    case WsMessage::kPong:
      return true;
    case WsMessage::kClose:
      Close(message.code, "");
      TellClosed();
      return false;
    default:
      // One read holds many messages, and each may have a long answer.
      if (connection_.CutIfBehind()) return false;
      // It may destroy the socket, never this.
      if (socket_ != nullptr && socket_->on_message_) {
        socket_->on_message_(message.kind, message.data);
      }
      return !closing_;
  }
}

void WsSession::Send(WsMessage::Kind kind, std::string_view data) {
  if (closing_) return;
  AppendWsFrame(kind, data, &connection_.Output());
}

void WsSession::Close(uint16_t code, std::string_view reason) {
  if (closing_) return;
  closing_ = true;
  AppendWsClose(code, reason, &connection_.Output());
  connection_.CloseWhenSent();
}

void WsSession::Fail(uint16_t code) {
  Close(code, "");
  TellClosed();
}

void WsSession::TellClosed() {
  if (socket_ == nullptr) return;
  WebSocket* socket = std::exchange(socket_, nullptr);
  socket->session_ = nullptr;
  auto on_closed = std::move(socket->on_closed_);
  if (on_closed) on_closed();
}

void WsSession::OnEnd() {
  closing_ = true;
  TellClosed();
}

void WsSession::OnTimeout(Wait) {
  const TimePoint now = Clock::now();
  if (now - heard_ > kSilence) return connection_.Abort();
  if (now - pinged_ < kPingPeriod) return;
  pinged_ = now;
  Send(WsMessage::kPing, "");
}

void WsSession::OnDrain() {
  Close(kWsGoingAway, "the server is shutting down");
  TellClosed();
}

}  // namespace portico::net
