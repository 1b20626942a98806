// A request over HTTP/1.1 and the framing of its answer.
#pragma once

#include <string_view>

#include "base/clock.h"
#include "net/http/exchange.h"
#include "net/http/exchange_events.h"
#include "net/http/http1_session.h"
#include "net/http/http_text.h"

namespace portico::net {

class Http1Exchange final : public Exchange {
 public:
  // Takes the parser's request over.
  Http1Exchange(Http1Session& session, RequestParser& parser);
  ~Http1Exchange() override;

  Shard& shard() override { return shard_; }
  void Respond(HttpResponse response) override;
  void StartStream(HttpResponse response) override;
  void Write(std::string_view bytes) override;
  void End() override;
  size_t unsent_bytes() const override;
  void CallWhenBelow(size_t bytes, absl::AnyInvocable<void()> call) override;
  void Cut() override;
  bool body_open() const override { return session_ != nullptr && session_->rest_open(); }
  int64_t rest_bytes() const override { return session_ == nullptr ? 0 : session_->rest_bytes(); }
  void ReadBody(BodyReader& reader) override {
    if (session_ != nullptr) session_->ReadRest(reader);
  }
  void ConsumeBody(size_t bytes) override {
    if (session_ != nullptr) session_->ConsumeRest(bytes);
  }

  // Ends HTTP on this connection: answers 101 with these headers and gives the connection, whose
  // session the caller replaces at once (Connection::BecomeSession). Null, and nothing is answered,
  // where that is too late or the client speaks HTTP/1.0. Only from within the handler.
  Connection* SwitchProtocol(const Headers& headers);

  // What the handler works on, from now on.
  events::Current BeginEvents() { return events_.Begin(request); }
  // The answer, which has not begun, is the connection's last one.
  void CloseAfterwards() { keep_alive_ = false; }

  // From the session: the client has left; calls on_closed, which may destroy this.
  void OnClientGone();
  // The session goes first, without a word.
  void Detach() { session_ = nullptr; }

 private:
  void SendHead(const HttpResponse& response, BodyFraming framing, size_t length);
  void Complete();
  void Report(int status);

  Http1Session* session_;   // null once the answer is complete or the client gone
  Connection* connection_;  // the session's, as long as there is one
  Shard& shard_;
  bool is_head_request_;
  bool http_1_0_;
  bool keep_alive_;
  bool streaming_ = false;
  BodyFraming framing_ = BodyFraming::kLength;
  int status_ = 0;
  size_t body_bytes_ = 0;
  ExchangeEvents events_;
  TimePoint start_;  // only where completions are reported
};

}  // namespace portico::net
