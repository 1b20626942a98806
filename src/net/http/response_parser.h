// Reads HTTP/1.x answers of a server that we have asked, piece by piece and strictly: what two
// readers could understand differently is refused (RFC 9112, 6.3 and 11), since bytes that one
// answer leaves over would become another client's. Lines end in CR LF, headers do not fold, a
// length is said once and in one way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "net/http/chunked_body.h"
#include "net/http/exchange.h"

namespace portico::net {

struct ResponseHead {
  int status = 0;
  Headers headers;      // names in lower case, as they came
  int64_t length = -1;  // of the body; -1: not told
  bool chunked = false;
  bool keep_alive = false;  // the connection may be used again after the body
  bool to_end = false;      // the end of the connection ends the body, which may be cut then

  // The first value of a header (name in lower case), or "".
  std::string_view Header(std::string_view name) const;
};

class ResponseParser {
 public:
  enum class State {
    kHead,   // the head is not complete
    kBody,   // the head is; the body is not
    kDone,   // the answer is whole
    kError,  // see error(); the connection cannot be used any more
  };

  // `head_request`: the answer to HEAD, which has no body whatever its head says.
  ResponseParser(size_t max_head_bytes, bool head_request);

  // Reads on in `data`, which begins with what an earlier call left over; appends what it holds of
  // the body to *body. *used counts the bytes that are done with; the caller keeps the rest, which
  // is never larger than a head may be (or a chunk's line). Stops after the head; call again for
  // the body, unless the answer is done. Interim answers (1xx) are passed over, a few of them.
  State Feed(std::string_view data, size_t* used, std::string* body);
  // The connection has ended: kDone where that ends the body, else kError.
  State OnEnd();

  State state() const { return state_; }
  // Whole from State::kBody on.
  ResponseHead& head() { return head_; }
  // A sentence without the server's bytes.
  std::string_view error() const { return error_; }

 private:
  State FeedHead(std::string_view data, size_t* used);
  State FeedBody(std::string_view data, size_t* used, std::string* body);
  State Fail(std::string_view why);
  // False if the head is malformed; says why by Fail().
  bool ReadHead(std::string_view text);
  bool ReadStatusLine(std::string_view line);
  bool ReadField(std::string_view line);
  State StartBody();

  const size_t max_head_;
  const bool head_request_;
  State state_ = State::kHead;
  ResponseHead head_;
  std::string_view error_;
  ChunkedBody chunks_;
  size_t scanned_ = 0;  // of an incomplete head
  int64_t left_ = 0;    // of a body whose length is known
  int interim_ = 0;     // answers passed over
  bool http_1_0_ = false;
  bool says_close_ = false;
  bool says_keep_alive_ = false;
};

}  // namespace portico::net
