// HTTP/1.1 on a connection: one request after the other, answered in order. The next request is
// read only once the former is answered; what a client pipelines meanwhile waits, up to a bound,
// then in the kernel.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "net/http/http_text.h"
#include "net/http/request_parser.h"
#include "net/socket/connection.h"
#include "net/socket/session.h"

namespace portico::net {

class Http1Exchange;

class Http1Session final : public Session {
 public:
  explicit Http1Session(Connection& connection);
  ~Http1Session() override;

  void OnBytes(std::string_view bytes) override;
  void OnEnd() override;
  void OnTimeout(Wait wait) override;
  void OnSent() override;
  void OnEndOfTurn() override;
  void OnDrain() override;

  // Answers with an error of the transport's own and closes.
  static void Refuse(Connection& connection, const HttpError& error);

  // For the exchange in flight.
  Connection& connection() { return connection_; }
  void OnAnswered(bool keep_alive);
  void OnCut();
  // Another session follows this one.
  void OnSwitched();

 private:
  // Takes requests off `bytes` until one is in flight or more bytes are needed; the number used.
  size_t Consume(std::string_view bytes);
  void ConsumePending();
  // The head has come. False if the request is refused, which has been answered then.
  bool Admit();
  HeadVerdict CheckHead();
  void Refuse(HttpResponse response);
  void OnHeadDone(bool body_follows);
  void Dispatch();
  void OnDropped();
  void RefuseRequest(const HttpError& error);
  bool can_consume() const { return !closing_ && exchange_ == nullptr && !output_full_; }

  Connection& connection_;
  std::unique_ptr<RequestParser> parser_;  // of the request that is being read
  Http1Exchange* exchange_ = nullptr;      // in flight; the handler's
  std::string pending_;                    // read but not used yet
  bool closing_ = false;                   // no more requests
  bool dropping_ = false;                  // the request is refused, the rest of its body comes
  bool output_full_ = false;               // a client that pipelines must also read
};

}  // namespace portico::net
