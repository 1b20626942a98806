// A request over HTTP/2 and its answer. Before the request is whole it belongs to its stream, then
// to the handler.
#pragma once

#include <memory>
#include <string_view>

#include "base/clock.h"
#include "net/http/exchange.h"
#include "net/http/exchange_events.h"
#include "net/http/http_text.h"
#include "net/http2/http2_stream.h"

namespace portico::net {

class Http2Exchange final : public Exchange, private Http2User {
 public:
  // The head has come. `too_large`: it was over its limit and is refused. `ended`: there is no
  // body.
  static void Begin(Http2Stream& stream, bool too_large, bool ended);
  ~Http2Exchange() override;

  Shard& shard() override { return shard_; }
  void Respond(HttpResponse response) override;
  void StartStream(HttpResponse response) override;
  void Write(std::string_view bytes) override;
  void End() override;
  size_t unsent_bytes() const override;
  void Cut() override;

 private:
  explicit Http2Exchange(Http2Stream& stream);

  void OnBody(std::string_view bytes) override;
  void OnRequestEnd() override;
  void OnSlowBody() override;
  void OnGone(Http2Error why) override;

  // What is wrong with the head; takes the path apart.
  HttpError ReadHead();
  HttpError TooLarge() const;
  static HttpError Full();
  void Refuse(const HttpError& error);
  void RefuseWith(HttpResponse response);
  void SendHead(const HttpResponse& response, bool has_length, bool end);
  void Complete();
  void Report(int status);

  Http2Stream* stream_;  // null once the answer is complete or the client gone
  Shard& shard_;
  std::unique_ptr<Http2Exchange> self_;  // until the request is whole
  bool is_head_request_ = false;
  bool streaming_ = false;
  bool has_body_ = true;
  int status_ = 0;
  size_t body_bytes_ = 0;
  ExchangeEvents events_;
  size_t max_body_;      // of the request
  size_t declared_ = 0;  // of its body
  TimePoint start_;      // only where completions are reported
};

}  // namespace portico::net
