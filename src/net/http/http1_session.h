// HTTP/1.1 on a connection: one request after the other, answered in order. The next request is
// read only once the former is answered; what a client pipelines meanwhile waits, up to a bound,
// then in the kernel.
#pragma once

#include <cstdint>
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
  // The rest of the body of the exchange in flight (Exchange).
  bool rest_open() const { return rest_open_; }
  int64_t rest_bytes() const { return rest_open_ ? parser_->rest_bytes() : 0; }
  void ReadRest(BodyReader& reader);
  void ConsumeRest(size_t bytes);

 private:
  // Takes requests off `bytes` until one is in flight or more bytes are needed; the number used.
  size_t Consume(std::string_view bytes);
  void ConsumePending();
  // The head has come. False if the request is refused, which has been answered then.
  bool Admit();
  HeadVerdict CheckHead();
  void Refuse(HttpResponse response);
  void OnHeadDone(bool body_follows);
  // `whole`: its body is.
  void Dispatch(bool whole);
  bool FirstPartIsThere() const;
  // Gives the rest of a body to its reader; the number of bytes used.
  size_t PassRest(std::string_view bytes);
  // No more of it comes, for a reason of the client's.
  void FailRest(const HttpError& error);
  void DropRest();
  void OnDropped();
  void RefuseRequest(const HttpError& error);
  bool can_consume() const {
    if (closing_) return false;
    return exchange_ == nullptr ? !output_full_
                                : rest_open_ && reader_ != nullptr && held_ < kMaxHeldBody;
  }

  // Of the rest of a body, what its reader may hold on to.
  static constexpr size_t kMaxHeldBody = 256 << 10;

  Connection& connection_;
  std::unique_ptr<RequestParser> parser_;  // of the request that is being read, or its body's rest
  Http1Exchange* exchange_ = nullptr;      // in flight; the handler's
  std::string pending_;                    // read but not used yet
  bool closing_ = false;                   // no more requests
  bool dropping_ = false;                  // the request is refused, the rest of its body comes
  bool output_full_ = false;               // a client that pipelines must also read
  size_t whole_body_ = 0;                  // HeadVerdict::whole_body_bytes of the request
  bool rest_open_ = false;                 // the request in flight has a body that still comes
  BodyReader* reader_ = nullptr;           // who takes it; null: not wanted yet
  size_t held_ = 0;                        // what it was given and has not consumed
};

}  // namespace portico::net
