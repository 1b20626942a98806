#include "net/grpc/grpc_channel.h"

#include <algorithm>
#include <utility>

#include "net/grpc/grpc_connection.h"

namespace portico::net {
namespace {

// Servers that leave one after another are followed at once; one that sends every new connection
// away at once is a server that fails.
constexpr int kMaxEarlyGoaways = 3;

std::string Authority(const std::string& host, int port) {
  const bool brackets = host.find(':') != std::string::npos;
  return (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string UserAgent(const std::string& prefix) {
  return (prefix.empty() ? "" : prefix + " ") + "grpc-portico/" PORTICO_VERSION;
}

Status ShutDown() { return Error(StatusCode::kUnavailable, "the channel is shut down"); }

}  // namespace

GrpcChannel::GrpcChannel(Shard& shard, GrpcChannelOptions options)
    : shard_(shard), options_(std::move(options)), backoff_(options_.backoff) {
  target_ = {options_.host, options_.port, options_.tls.get(),
             options_.server_name.empty() ? options_.host : options_.server_name};
  authority_ =
      options_.authority.empty() ? Authority(options_.host, options_.port) : options_.authority;
  user_agent_ = UserAgent(options_.user_agent);
}

GrpcChannel::~GrpcChannel() {
  shut_down_ = true;
  if (gone_ != nullptr) *gone_ = true;
  for (auto& connection : connections_) connection->Detach();
  while (!calls_.empty()) {
    calls_.back()->Fail(Error(StatusCode::kCancelled, "the channel is closed"));
  }
  // One of them may be telling a call just now.
  for (auto& connection : connections_) {
    shard_.AtEndOfTurn([leaving = std::move(connection)] { leaving->Leave(); });
  }
  if (on_shut_down_) shard_.AtEndOfTurn(std::move(on_shut_down_));
}

std::unique_ptr<GrpcClientCall> GrpcChannel::Start(GrpcCallOptions options,
                                                   GrpcCallEvents& events) {
  Headers metadata;
  Status said = EncodeMetadata(options.metadata, &metadata);
  if (said.ok() && !options.path.starts_with('/')) {
    said = Error(StatusCode::kInternal, "a path is /package.Service/Method");
  }
  options.metadata = std::move(metadata);
  std::unique_ptr<GrpcClientCall> call(new GrpcClientCall(*this, std::move(options), events));
  call->channel_place_ = calls_.size();
  calls_.push_back(call.get());
  if (!said.ok()) {
    call->FailSoon(std::move(said));
  } else if (shut_down_) {
    call->FailSoon(ShutDown());
  } else if (pending_.size() >= options_.max_pending_calls) {
    call->FailSoon(Error(StatusCode::kResourceExhausted, "too many calls wait for a connection"));
  } else {
    Queue(*call, false);
  }
  return call;
}

void GrpcChannel::Shutdown(Shard::Task done) {
  shut_down_ = true;
  on_shut_down_ = std::move(done);
  attempt_timer_.reset();
  last_failure_ = ShutDown();
  while (!pending_.empty()) pending_.front()->FailSoon(last_failure_);
  // A connection that is not ready yet leaves at once.
  for (size_t i = connections_.size(); i-- > 0;) connections_[i]->Drain();
  CheckShutdown();
}

void GrpcChannel::CheckShutdown() {
  if (!on_shut_down_ || !calls_.empty() || !connections_.empty()) return;
  shard_.AtEndOfTurn(std::exchange(on_shut_down_, nullptr));
}

void GrpcChannel::Forget(GrpcClientCall& call) {
  Unqueue(call);
  calls_[call.channel_place_] = calls_.back();
  calls_[call.channel_place_]->channel_place_ = call.channel_place_;
  calls_.pop_back();
  if (std::exchange(call.soon_, false)) {
    std::replace(soon_.begin(), soon_.end(), &call, static_cast<GrpcClientCall*>(nullptr));
    std::replace(running_.begin(), running_.end(), &call, static_cast<GrpcClientCall*>(nullptr));
  }
  CheckShutdown();
}

void GrpcChannel::RunSoon(GrpcClientCall& call) {
  if (std::exchange(call.soon_, true)) return;
  soon_.push_back(&call);
  if (soon_timer_ != nullptr) return;
  soon_timer_ = shard_.After(Duration::zero(), [this] { RunAllSoon(); });
}

void GrpcChannel::RunAllSoon() {
  soon_timer_.reset();
  running_.swap(soon_);
  bool gone = false;
  gone_ = &gone;
  for (size_t i = 0; i < running_.size(); ++i) {
    GrpcClientCall* call = std::exchange(running_[i], nullptr);
    if (call == nullptr) continue;
    call->soon_ = false;
    call->RunSoon();
    if (gone) return;
  }
  gone_ = nullptr;
  running_.clear();
}

void GrpcChannel::Queue(GrpcClientCall& call, bool again) {
  if (pending_.empty() && !again) {
    GrpcConnection* connection = Room();
    if (connection != nullptr && connection->Begin(call)) return;
  }
  call.queue_place_ = pending_.insert(again ? pending_.begin() : pending_.end(), &call);
  call.queued_ = true;
  Assign();
}

void GrpcChannel::Unqueue(GrpcClientCall& call) {
  if (std::exchange(call.queued_, false)) pending_.erase(call.queue_place_);
}

GrpcConnection* GrpcChannel::Room() const {
  for (const auto& connection : connections_) {
    if (connection->has_room()) return connection.get();
  }
  return nullptr;
}

void GrpcChannel::Assign() {
  while (!pending_.empty()) {
    GrpcConnection* connection = Room();
    if (connection == nullptr) return Connect();
    GrpcClientCall& call = *pending_.front();
    if (connection->Begin(call)) Unqueue(call);
  }
}

size_t GrpcChannel::connections() const {
  return static_cast<size_t>(std::count_if(connections_.begin(), connections_.end(),
                                           [](const auto& one) { return !one->draining(); }));
}

bool GrpcChannel::connecting() const {
  return std::any_of(connections_.begin(), connections_.end(),
                     [](const auto& one) { return !one->ready() && !one->draining(); });
}

void GrpcChannel::Connect() {
  if (shut_down_) return FailPending();
  if (connecting() || connections() >= options_.max_connections) return;
  const TimePoint now = Clock::now();
  if (now >= next_attempt_) {
    attempt_timer_.reset();
    connections_.push_back(std::make_unique<GrpcConnection>(*this));
    return;
  }
  // While another connection serves, calls wait for room there.
  if (connections() == 0) FailPending();
  if (pending_.empty() || attempt_timer_ != nullptr) return;
  attempt_timer_ = shard_.After(next_attempt_ - now, [this] {
    attempt_timer_.reset();
    Assign();
  });
}

void GrpcChannel::FailPending() {
  for (auto at = pending_.begin(); at != pending_.end();) {
    GrpcClientCall& call = **at++;
    if (shut_down_ || !call.options_.wait_for_ready) call.FailSoon(last_failure_);
  }
}

void GrpcChannel::BackOff(const GrpcConnection& connection, const Status& status) {
  next_attempt_ = connection.began() + backoff_.Next();
  last_failure_ = status;
}

void GrpcChannel::OnDraining(GrpcConnection& connection) {
  if (connection.proved()) {
    early_goaways_ = 0;
    backoff_.Reset();
  } else if (++early_goaways_ >= kMaxEarlyGoaways) {
    BackOff(connection, Error(StatusCode::kUnavailable, "the server refuses new connections"));
  }
}

void GrpcChannel::Retire(GrpcConnection& connection, const Status& status) {
  auto at = std::find_if(connections_.begin(), connections_.end(),
                         [&](const auto& one) { return one.get() == &connection; });
  std::unique_ptr<GrpcConnection> leaving = std::move(*at);
  connections_.erase(at);
  leaving->Detach();
  if (!status.ok() && !leaving->draining()) {
    if (leaving->proved()) {
      backoff_.Reset();
    } else {
      BackOff(*leaving, status);
    }
  }
  shard_.AtEndOfTurn([gone = std::move(leaving)] { gone->Leave(); });
  if (!pending_.empty()) Assign();
  CheckShutdown();
}

}  // namespace portico::net
