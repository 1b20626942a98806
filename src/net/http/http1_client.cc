#include "net/http/http1_client.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "net/http/http_text.h"

namespace portico::net {
namespace {

// Of a request body, between two looks at what the kernel takes.
constexpr size_t kBodyPiece = 256 << 10;
// Up to here head and body leave in one buffer.
constexpr size_t kKeptScratch = 256 << 10;

}  // namespace

// What the calls of a client share; lives as long as any of its connections.
struct Http1Client::Pool : std::enable_shared_from_this<Pool> {
  struct Idle {
    std::shared_ptr<Http1Connection> connection;
    TimePoint since;
  };

  Pool(Shard& on_shard, ClientTarget where, const Http1ClientOptions& how)
      : shard(on_shard), target(std::move(where)), options(how) {}

  std::shared_ptr<Http1Connection> Take();
  void Give(std::shared_ptr<Http1Connection> connection);
  void Remove(const Http1Connection* connection);
  void Sweep();
  void ScheduleSweep();

  Shard& shard;
  const ClientTarget target;
  const Http1ClientOptions options;
  std::vector<Idle> idle;  // the one used last is at the end
  std::unique_ptr<Shard::Timer> sweep;
  bool closed = false;
};

class Http1Connection final : public ClientSocketEvents,
                              public std::enable_shared_from_this<Http1Connection> {
 public:
  explicit Http1Connection(std::shared_ptr<Http1Client::Pool> pool) : pool_(std::move(pool)) {}

  void Begin(Http1Call* call, HttpCallRequest request) {
    call_ = call;
    request_ = std::move(request);
    parser_.emplace(pool_->options.max_head_bytes, request_.head_request);
    head_sent_ = answered_ = false;
    body_sent_ = 0;
    rest_.clear();
    rest_open_ = request_.body_open;
    if (socket_ == nullptr) {
      connect_timer_ = pool_->shard.After(pool_->options.connect_timeout, [this] {
        const auto self = shared_from_this();
        Fail(CallFailure::kConnect, "no connection within the time limit");
      });
      socket_ = std::make_unique<ClientSocket>(pool_->shard, pool_->target, *this);
    } else {
      reused_ = true;
      socket_->WriteSoon();
    }
  }

  // The call has been dropped.
  void Abandon() {
    call_ = nullptr;
    Close();
  }

  void Close() {
    connect_timer_.reset();
    socket_.reset();
  }

  void Pause() {
    if (socket_ != nullptr) socket_->PauseReading();
  }
  void Resume() {
    if (socket_ != nullptr) socket_->ResumeReading();
  }
  size_t body_sent() const { return body_sent_; }

  void WriteBody(std::string_view bytes) {
    if (!rest_open_ || bytes.empty()) return;
    request_.chunked ? AppendChunk(bytes, &rest_) : void(rest_.append(bytes));
    if (socket_ != nullptr) socket_->WriteSoon();
  }

  void EndBody() {
    if (!std::exchange(rest_open_, false)) return;
    if (request_.chunked) rest_.append(kLastChunk);
    if (socket_ != nullptr) socket_->WriteSoon();
  }

  void OnConnected() override {
    connected_ = true;
    connect_timer_.reset();
    socket_->WriteSoon();
  }

  void OnWritable() override {
    if (call_ == nullptr) return;
    std::string& out = socket_->Output();
    if (!head_sent_) {
      out.append(request_.head);
      head_sent_ = true;
    }
    bool wrote = request_.body != nullptr;
    if (wrote && !WriteFirst(&out)) return socket_->WriteSoon();
    if (!request_.body_open) return;
    wrote = wrote || !rest_.empty();
    out.append(rest_);
    rest_.clear();
    if (!rest_open_) return;
    if (wrote) return socket_->WriteSoon();  // more is wanted once the kernel has taken this
    const auto self = shared_from_this();
    call_->events_.OnBodyWanted();
  }

  // False: there is more of it.
  bool WriteFirst(std::string* out) {
    const std::string_view piece = std::string_view(*request_.body).substr(body_sent_, kBodyPiece);
    request_.chunked && !piece.empty() ? AppendChunk(piece, out) : void(out->append(piece));
    body_sent_ += piece.size();
    if (body_sent_ < request_.body->size()) return false;
    if (request_.body_open) request_.body.reset();  // it is large, and the rest may take its time
    return true;
  }

  void OnBytes(std::string_view bytes) override {
    const auto self = shared_from_this();
    if (call_ == nullptr) return pool_->Remove(this);  // nothing was asked
    answered_ = true;
    if (!pending_.empty()) {
      pending_.append(bytes);
      const std::string joined = std::exchange(pending_, {});
      return Read(joined);
    }
    Read(bytes);
  }

  void OnLost(const Status& status) override {
    const auto self = shared_from_this();
    socket_.reset();
    connect_timer_.reset();
    if (call_ == nullptr) return pool_->Remove(this);
    if (connected_ && parser_->state() == ResponseParser::State::kBody &&
        parser_->OnEnd() == ResponseParser::State::kDone) {
      return Complete(false);
    }
    Fail(!connected_             ? CallFailure::kConnect
         : reused_ && !answered_ ? CallFailure::kStale
                                 : CallFailure::kLost,
         std::string(MessageOf(status)));
  }

 private:
  using State = ResponseParser::State;

  void Read(std::string_view bytes) {
    thread_local std::string body;
    while (true) {
      const State before = parser_->state();
      size_t used = 0;
      body.clear();
      const State state = parser_->Feed(bytes, &used, &body);
      bytes.remove_prefix(used);
      if (before == State::kHead && state != State::kHead && state != State::kError) {
        call_->events_.OnHead(parser_->head());
        if (call_ == nullptr) return;
      }
      if (!body.empty()) {
        call_->events_.OnBody(body);
        if (body.capacity() > kKeptScratch) std::string().swap(body);
        if (call_ == nullptr) return;
      }
      if (state == State::kError) {
        return Fail(CallFailure::kMalformed, std::string(parser_->error()));
      }
      if (state == State::kDone) return Complete(bytes.empty());
      if (before != State::kHead || state != State::kBody) break;
    }
    pending_.assign(bytes);
  }

  // `clean`: nothing has come behind the answer.
  void Complete(bool clean) {
    Http1Call* call = std::exchange(call_, nullptr);
    const bool body_gone = !rest_open_ && rest_.empty() &&
                           (request_.body == nullptr || body_sent_ == request_.body->size());
    const bool again = clean && head_sent_ && body_gone && parser_->head().keep_alive &&
                       socket_ != nullptr && socket_->unsent() == 0;
    HttpCallEvents& events = call->events_;
    auto self = std::exchange(call->connection_, nullptr);
    request_ = {};
    if (again) {
      socket_->ResumeReading();
      pool_->Give(std::move(self));
    } else {
      Close();
    }
    events.OnDone();
  }

  void Fail(CallFailure failure, const std::string& why) {
    Http1Call* call = std::exchange(call_, nullptr);
    Close();
    if (call == nullptr) return;
    HttpCallEvents& events = call->events_;
    const auto self = std::exchange(call->connection_, nullptr);
    events.OnFailed(failure, why);
  }

  const std::shared_ptr<Http1Client::Pool> pool_;
  std::unique_ptr<ClientSocket> socket_;
  std::unique_ptr<Shard::Timer> connect_timer_;
  Http1Call* call_ = nullptr;
  HttpCallRequest request_;
  std::optional<ResponseParser> parser_;
  std::string pending_;  // of the answer, read but not used yet
  size_t body_sent_ = 0;
  std::string rest_;        // of an open body, framed, for the next output
  bool rest_open_ = false;  // more of it comes
  bool connected_ = false;
  bool reused_ = false;
  bool head_sent_ = false;
  bool answered_ = false;  // some bytes have come
};

std::shared_ptr<Http1Connection> Http1Client::Pool::Take() {
  if (idle.empty()) return nullptr;
  if (Clock::now() - idle.back().since >= options.idle_life) {
    idle.clear();
    return nullptr;
  }
  auto connection = std::move(idle.back().connection);
  idle.pop_back();
  return connection;
}

void Http1Client::Pool::Give(std::shared_ptr<Http1Connection> connection) {
  if (closed || idle.size() >= options.max_idle) return connection->Close();
  idle.push_back({std::move(connection), Clock::now()});
  ScheduleSweep();
}

void Http1Client::Pool::Remove(const Http1Connection* connection) {
  std::erase_if(idle, [&](const Idle& one) { return one.connection.get() == connection; });
}

void Http1Client::Pool::ScheduleSweep() {
  if (sweep != nullptr) return;
  sweep = shard.After(options.idle_life, [this] {
    sweep.reset();
    Sweep();
  });
}

void Http1Client::Pool::Sweep() {
  const TimePoint now = Clock::now();
  std::erase_if(idle, [&](const Idle& one) { return now - one.since >= options.idle_life; });
  if (!idle.empty()) ScheduleSweep();
}

Http1Call::~Http1Call() {
  if (connection_ != nullptr) connection_->Abandon();
}

void Http1Call::Pause() {
  if (connection_ != nullptr) connection_->Pause();
}

void Http1Call::Resume() {
  if (connection_ != nullptr) connection_->Resume();
}

void Http1Call::WriteBody(std::string_view bytes) {
  if (connection_ != nullptr) connection_->WriteBody(bytes);
}

void Http1Call::EndBody() {
  if (connection_ != nullptr) connection_->EndBody();
}

size_t Http1Call::body_sent() const {
  return connection_ == nullptr ? 0 : connection_->body_sent();
}

Http1Client::Http1Client(Shard& shard, ClientTarget target, const Http1ClientOptions& options)
    : pool_(std::make_shared<Pool>(shard, std::move(target), options)) {}

Http1Client::~Http1Client() {
  pool_->closed = true;
  pool_->sweep.reset();
  pool_->idle.clear();
}

std::unique_ptr<Http1Call> Http1Client::Start(HttpCallRequest request, HttpCallEvents& events,
                                              bool fresh) {
  std::unique_ptr<Http1Call> call(new Http1Call(events));
  auto connection = fresh ? nullptr : pool_->Take();
  if (connection == nullptr) connection = std::make_shared<Http1Connection>(pool_);
  call->connection_ = connection;
  connection->Begin(call.get(), std::move(request));
  return call;
}

size_t Http1Client::idle() const { return pool_->idle.size(); }

}  // namespace portico::net
