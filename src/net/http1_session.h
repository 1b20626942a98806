// HTTP/1.1 on a connection: one request after the other, answered in order. The next request is
// read only once the former is answered; what a client pipelines meanwhile waits, up to a bound,
// then in the kernel.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "net/connection.h"
#include "net/http_text.h"
#include "net/request_parser.h"
#include "net/session.h"

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

 private:
  // Takes requests off `bytes` until one is in flight or more bytes are needed; the number used.
  size_t Consume(std::string_view bytes);
  void ConsumePending();
  void OnHeadDone(bool body_follows);
  void Dispatch();
  void RefuseRequest(const HttpError& error);
  bool can_consume() const { return !closing_ && exchange_ == nullptr && !output_full_; }

  Connection& connection_;
  std::unique_ptr<RequestParser> parser_;  // of the request that is being read
  Http1Exchange* exchange_ = nullptr;      // in flight; the handler's
  std::string pending_;                    // read but not used yet
  bool closing_ = false;                   // no more requests
  bool output_full_ = false;               // a client that pipelines must also read
};

}  // namespace portico::net
