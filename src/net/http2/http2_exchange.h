// A request over HTTP/2 and its answer. Before the request is whole, or its first part is there, it belongs
// to its stream, then to the handler.
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
  void CallWhenBelow(size_t bytes, absl::AnyInvocable<void()> call) override;
  void Cut() override;
  bool body_open() const override { return rest_ != Rest::kNone; }
  int64_t rest_bytes() const override;
  void ReadBody(BodyReader& reader) override;
  void ConsumeBody(size_t bytes) override;

 private:
  // What of a body comes after its request has been given to the handler.
  enum class Rest : uint8_t {
    kNone,  // nothing (any more)
    kOpen,  // some
    kHere,  // it has all come; its reader has not had it
  };

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
  void Dispatch();
  void OnRest(std::string_view bytes);
  // To the reader: what came before it, and the end.
  void TellRest();
  void EndRest();
  void FailRest(const HttpError& error);
  void DropRest();
  void SendHead(const HttpResponse& response, bool has_length, bool end);
  void Complete();
  void Report(int status);

  Http2Stream* stream_;  // null once the answer is complete or the client gone
  Shard& shard_;
  std::unique_ptr<Http2Exchange> self_;  // until the handler has it
  bool is_head_request_ = false;
  bool streaming_ = false;
  bool has_body_ = true;
  int status_ = 0;
  size_t body_bytes_ = 0;
  ExchangeEvents events_;
  size_t max_body_;    // of the request
  size_t whole_body_;  // HeadVerdict::whole_body_bytes
  Rest rest_ = Rest::kNone;
  size_t body_came_ = 0;    // the request's, with the rest
  size_t held_ = 0;         // of the rest, what the reader has not consumed
  bool held_back_ = false;  // since the last OnSlowBody() the client may have waited for the reader
  std::string ahead_;       // of the rest, what came before its reader
  BodyReader* reader_ = nullptr;
  std::unique_ptr<Shard::Timer> tell_;  // TellRest()
  size_t declared_ = 0;                 // of its body
  bool has_length_ = false;             // it was declared
  TimePoint start_;                     // only where completions are reported
};

}  // namespace portico::net
