// Reads one HTTP/1.x request, piece by piece. Beast's parser does the grammar; around it stand the
// rules that Beast leaves to the server: limits, Host (RFC 9112, 3.2), request smuggling (RFC
// 9112, 6.3), targets, expectations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/http/exchange.h"
#include "net/http/http_text.h"

namespace portico::net {

class RequestParser {
 public:
  enum class State {
    kHead,   // the head is not complete
    kBody,   // the head is; the body is not
    kDone,   // request() is whole
    kError,  // see error(); the connection cannot be used for another request
  };

  // A body that is too large for what is left of the budget is refused (503). Null: there is none.
  RequestParser(size_t max_head_bytes, size_t max_body_bytes,
                std::shared_ptr<BodyBudget> budget = nullptr);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // Reads on in `data`, which begins with what an earlier call left over. *used counts the bytes
  // that are done with; the caller keeps the rest and appends to it. The rest is never larger than
  // a head may be. Stops after the head, so that the caller can answer an expectation; call again
  // for the body, unless the request is done.
  State Feed(std::string_view data, size_t* used);

  State state() const;
  // Whole when done; without body after the head.
  HttpRequest& request();
  const HttpError& error() const;

  // After the head:
  bool http_1_0() const;
  bool keep_alive() const;  // what the client wishes
  bool expects_continue() const;
  // The declared length; 0 without one, or where the body comes in chunks.
  size_t declared_body() const;
  // The body may have no more than this. It is not compared with the declared length, which has been
  // said already.
  void LimitBody(size_t bytes);
  // Once request() has been moved away with the body's first part: *piece is what `data` holds of the
  // rest, in `data` itself or in *scratch. *used as of Feed().
  State FeedRest(std::string_view data, size_t* used, std::string* scratch,
                 std::string_view* piece);
  // The length of what has not come yet; -1: it comes in chunks.
  int64_t rest_bytes() const;
  // Nobody wants the body: what comes of it is read and forgotten. Only one of a declared length.
  void DropBody();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace portico::net
