#include "net/http2/http2_client.h"

#include <algorithm>
#include <utility>

#include "net/http2/http2_connection.h"

namespace portico::net {

Http2Call::~Http2Call() {
  if (waiting_ != nullptr) std::erase(waiting_->calls, this);
  if (connection_ != nullptr) connection_->Abandon(*this);
}

void Http2Call::Resume() {
  paused_ = false;
  if (connection_ != nullptr) connection_->Consume(*this, std::exchange(unconsumed_, 0));
}

void Http2Call::WriteBody(std::string_view bytes) {
  if (!rest_open_ || bytes.empty()) return;
  rest_.append(bytes);
  body_wanted_ = false;
  if (connection_ != nullptr) connection_->SendMore(*this);
}

void Http2Call::EndBody() {
  if (!std::exchange(rest_open_, false)) return;
  body_wanted_ = false;
  if (connection_ != nullptr) connection_->SendMore(*this);
}

void Http2Client::Pool::Assign() {
  const std::shared_ptr<Pool> self = shared_from_this();
  while (!waiting->calls.empty()) {
    const auto room = std::find_if(connections.begin(), connections.end(),
                                   [](const auto& one) { return one->has_room(); });
    if (room == connections.end()) break;
    Http2Call& call = *waiting->calls.front();
    const std::shared_ptr<Http2Connection> connection = *room;
    if (!connection->Begin(call)) continue;
    waiting->calls.erase(waiting->calls.begin());
    call.waiting_ = nullptr;
  }
  if (waiting->calls.empty()) return;
  const bool comes = std::any_of(connections.begin(), connections.end(),
                                 [](const auto& one) { return !one->ready(); });
  if (comes) return;
  connections.push_back(std::make_shared<Http2Connection>(self));
  connections.back()->Connect();
}

void Http2Client::Pool::Retire(Http2Connection& connection, CallFailure failure,
                               const std::string& why) {
  const std::shared_ptr<Pool> self = shared_from_this();
  std::erase_if(connections, [&](const auto& one) { return one.get() == &connection; });
  if (connection.ready()) return;
  // Each may drop others of them, and begin new calls.
  const auto lost = std::exchange(waiting, std::make_shared<Http2Call::Waiting>());
  while (!lost->calls.empty()) {
    Http2Call& call = *lost->calls.front();
    lost->calls.erase(lost->calls.begin());
    call.waiting_ = nullptr;
    call.events_.OnFailed(failure, why);
  }
}

Http2Client::Http2Client(Shard& shard, ClientTarget target, const Http2ClientOptions& options)
    : pool_(std::make_shared<Pool>(shard, std::move(target), options)) {
  pool_->waiting = std::make_shared<Http2Call::Waiting>();
}

Http2Client::~Http2Client() {
  const auto connections = pool_->connections;
  for (const auto& connection : connections) connection->Drain();
}

std::unique_ptr<HttpCall> Http2Client::StartCall(HttpCallRequest request, HttpCallEvents& events,
                                                 bool fresh) {
  static_cast<void>(fresh);  // what a connection has refused, another will get
  std::unique_ptr<Http2Call> call(new Http2Call(std::move(request), events));
  call->waiting_ = pool_->waiting;
  pool_->waiting->calls.push_back(call.get());
  pool_->Assign();
  return call;
}

size_t Http2Client::connections() const { return pool_->connections.size(); }

}  // namespace portico::net
