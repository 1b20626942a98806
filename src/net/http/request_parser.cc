#include "net/http/request_parser.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/impl/basic_parser.ipp>
#include <cstring>
#include <string>
#include <utility>

#include "net/http/body_room.h"
#include "net/http/chunked_body.h"

namespace portico::net {
namespace {

namespace http = boost::beast::http;
using boost::beast::string_view;
using ErrorCode = boost::beast::error_code;

// Of a declared length, before bytes have come: a client could make us reserve 32 MiB for nothing.
constexpr size_t kFirstReserve = 64 << 10;
constexpr size_t kMaxHeaders = 256;
// Above the head's own limit.
constexpr size_t kWidth = 4 << 10;
constexpr size_t kUsualHeaders = 12;

std::string_view View(string_view text) { return {text.data(), text.size()}; }

// ASCII only; the locale has no say in a protocol.
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool EqualsIgnoreCase(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() && std::equal(text.begin(), text.end(), lower.begin(),
                                                   [](char a, char b) { return Lower(a) == b; });
}

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }

HttpError ErrorOf(const ErrorCode& code) {
  if (code == http::error::header_limit) return {431, "the request head is too large"};
  if (code == http::error::bad_version) return {505, "only HTTP/1.0 and HTTP/1.1 are supported"};
  return {400, "malformed HTTP request: " + code.message()};
}

}  // namespace

struct RequestParser::Impl final : http::basic_parser<true> {
  Impl(size_t head_limit, size_t body_limit_bytes, std::shared_ptr<BodyBudget> of_all)
      : max_head(head_limit),
        max_body(body_limit_bytes),
        chunks(body_limit_bytes),
        budget(std::move(of_all)) {
    // The end of a head is found before Beast sees it, so Beast's own limit only has to be wide enough.
    header_limit(static_cast<std::uint32_t>(head_limit + kWidth));
    body_limit(boost::none);
    eager(false);
  }

  State FeedHead(std::string_view data, size_t* used);
  State StartBody();
  State FeedBody(std::string_view data, size_t* used);
  State FeedRest(std::string_view data, size_t* used, std::string* scratch,
                 std::string_view* piece);
  State OnChunks(ChunkedBody::State result);
  HttpError TooLarge() const {
    return {413, "the request body is larger than " + std::to_string(max_body) + " bytes"};
  }
  State Fail(HttpError what) {
    error = std::move(what);
    return state = State::kError;
  }
  // The end of the head's empty line, or 0 if that is not there yet.
  size_t FindHeadEnd(std::string_view data);
  HttpError CheckHead();
  HttpError TakeTarget(std::string_view target);

  // Beast's callbacks.
  void on_request_impl(http::verb, string_view method, string_view target_text, int version,
                       ErrorCode&) override;
  void on_response_impl(int, string_view, int, ErrorCode&) override {}
  void on_field_impl(http::field name, string_view text, string_view value, ErrorCode&) override;
  void on_header_impl(ErrorCode&) override { head_done = true; }
  // Bodies do not go through Beast.
  void on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorCode&) override {}
  std::size_t on_body_impl(string_view body, ErrorCode&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t, string_view, ErrorCode&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, ErrorCode&) override {
    return body.size();
  }
  void on_finish_impl(ErrorCode&) override {}

  // Keeps room for simdjson's padding without copying twice. False: the budget is used up.
  bool ReserveBody(size_t more) {
    const size_t whole = chunked() ? max_body : request.body.size() + body_left;
    return MakeBodyRoom(&request.body, more, whole, budget, &request.lease);
  }
  State FailFull() { return Fail({503, "too many large requests at once; try again"}); }

  const size_t max_head;
  size_t max_body;
  ChunkedBody chunks;
  std::shared_ptr<BodyBudget> budget;
  bool drops_body = false;
  size_t body_left = 0;  // of a declared length
  size_t scanned = 0;    // of an incomplete head
  State state = State::kHead;
  HttpRequest request;
  HttpError error;

  bool head_done = false;
  bool http_1_0 = false;
  bool keeps_alive = false;
  bool expects_continue = false;
  bool unknown_expectation = false;
  bool bad_transfer_coding = false;
  bool has_transfer_coding = false;
  bool has_length = false;
  bool repeated_length = false;
  int hosts = 0;
  std::string target;
};

void RequestParser::Impl::on_request_impl(http::verb, string_view method, string_view target_text,
                                          int version, ErrorCode&) {
  request.method.assign(method.data(), method.size());
  target.assign(target_text.data(), target_text.size());
  http_1_0 = version == 10;
  request.headers.reserve(kUsualHeaders);
}

void RequestParser::Impl::on_field_impl(http::field name, string_view text, string_view value,
                                        ErrorCode& code) {
  if (request.headers.size() >= kMaxHeaders) {
    code = http::error::header_limit;
    return;
  }
  if (name == http::field::host) {
    ++hosts;
  } else if (name == http::field::transfer_encoding) {
    has_transfer_coding = true;
    if (!EqualsIgnoreCase(View(value), "chunked")) bad_transfer_coding = true;
  } else if (name == http::field::content_length) {
    // Also where it is the same: whoever takes a list of lengths for none finds another end of the body.
    const bool again = std::exchange(has_length, true);
    repeated_length = repeated_length || again || View(value).find(',') != std::string_view::npos;
  } else if (name == http::field::expect) {
    (EqualsIgnoreCase(View(value), "100-continue") ? expects_continue : unknown_expectation) = true;
  }
  auto& [key, content] = request.headers.emplace_back();
  key.resize(text.size());
  std::transform(text.begin(), text.end(), key.begin(), Lower);
  content.assign(value.data(), value.size());
}

size_t RequestParser::Impl::FindHeadEnd(std::string_view data) {
  // `scanned` is the start of the first line not seen whole.
  while (scanned < data.size()) {
    const void* found = std::memchr(data.data() + scanned, '\n', data.size() - scanned);
    if (found == nullptr) return 0;
    size_t end = static_cast<size_t>(static_cast<const char*>(found) - data.data()) + 1;
    // A bare line feed ends lines for some parsers and not for others, which is how requests are
    // smuggled.
    if (end - scanned < 2 || data[end - 2] != '\r') {
      Fail({400, "malformed HTTP request: a line that does not end in CR LF"});
      return 0;
    }
    // A line that goes on with the one before (obs-fold) is a header of its own for some (RFC 9112, 5.2).
    if (scanned > 0 && (data[scanned] == ' ' || data[scanned] == '\t')) {
      Fail({400, "malformed HTTP request: a folded header"});
      return 0;
    }
    bool empty = end - scanned == 2;
    scanned = end;
    if (empty) return end;
  }
  return 0;
}

RequestParser::State RequestParser::Impl::FeedHead(std::string_view data, size_t* used) {
  // Empty lines before a request are skipped (RFC 9112, 2.2).
  size_t start = 0;
  while (scanned == 0 && data.substr(start, 2) == "\r\n") start += 2;
  data.remove_prefix(start);
  *used = start;
  if (data.empty() || data == "\r") return state;
  if (!IsUpper(data.front())) return Fail({400, "this is not an HTTP request"});

  size_t end = FindHeadEnd(data);
  if (state == State::kError) return state;
  if ((end == 0 ? data.size() : end) > max_head) {
    return Fail({431, "the request head is larger than " + std::to_string(max_head) + " bytes"});
  }
  if (end == 0) return state;

  ErrorCode code;
  put({data.data(), end}, code);
  if (!code && !head_done) code = http::error::bad_field;
  *used += end;
  if (code) return Fail(ErrorOf(code));
  HttpError wrong = CheckHead();
  if (wrong.status != 0) return Fail(std::move(wrong));
  return StartBody();
}

RequestParser::State RequestParser::Impl::StartBody() {
  if (!chunked()) {
    body_left = content_length().value_or(0);
    if (body_left > max_body) return Fail(TooLarge());
    if (body_left == 0) return state = State::kDone;
  }
  return state = State::kBody;
}

HttpError RequestParser::Impl::CheckHead() {
  keeps_alive = keep_alive();
  if (!std::all_of(request.method.begin(), request.method.end(), IsUpper)) {
    return {400, "malformed HTTP request: bad method"};
  }
  if (request.method == "CONNECT") return {501, "CONNECT is not supported"};
  if (hosts > 1) return {400, "more than one Host header"};
  if (hosts == 0 && !http_1_0) return {400, "HTTP/1.1 requires a Host header"};
  if (repeated_length) return {400, "more than one Content-Length"};
  if (bad_transfer_coding) return {501, "the only Transfer-Encoding supported is chunked"};
  if (has_transfer_coding && http_1_0) return {400, "HTTP/1.0 has no Transfer-Encoding"};
  if (unknown_expectation) return {417, "the only expectation supported is 100-continue"};
  if (http_1_0) expects_continue = false;
  return TakeTarget(target);
}

HttpError RequestParser::Impl::TakeTarget(std::string_view text) {
  if (text != "*" && text.front() != '/') {
    // http://host/path: the authority has been said in Host already.
    size_t scheme = text.find("://");
    if (scheme == std::string_view::npos || scheme == 0) return {400, "bad request target"};
    text.remove_prefix(scheme + 3);
    size_t path = text.find_first_of("/?");
    text = path == std::string_view::npos ? std::string_view() : text.substr(path);
  }
  if (text.find('#') != std::string_view::npos) return {400, "bad request target"};
  size_t question = text.find('?');
  if (question != std::string_view::npos) {
    request.query.assign(text.substr(question + 1));
    text = text.substr(0, question);
  }
  if (text.empty()) text = "/";
  if (!DecodePath(text, &request.path)) return {400, "bad percent escape in the request target"};
  target = std::string();
  return {};
}

RequestParser::State RequestParser::Impl::FeedBody(std::string_view data, size_t* used) {
  if (!chunked()) {
    size_t size = std::min(body_left, data.size());
    if (!drops_body) {
      const size_t room = std::max(size, std::min(body_left, kFirstReserve));
      if (!ReserveBody(request.body.empty() ? room : size)) return FailFull();
      request.body.append(data.substr(0, size));
    }
    body_left -= size;
    *used = size;
    return body_left == 0 ? state = State::kDone : state;
  }
  if (!ReserveBody(data.size())) return FailFull();
  return OnChunks(chunks.Feed(data, used, &request.body));
}

RequestParser::State RequestParser::Impl::FeedRest(std::string_view data, size_t* used,
                                                   std::string* scratch, std::string_view* piece) {
  if (chunked()) {
    const State after = OnChunks(chunks.Feed(data, used, scratch));
    *piece = *scratch;
    return after;
  }
  *used = std::min(body_left, data.size());
  *piece = data.substr(0, *used);
  body_left -= *used;
  return body_left == 0 ? state = State::kDone : state;
}

RequestParser::State RequestParser::Impl::OnChunks(ChunkedBody::State result) {
  switch (result) {
    case ChunkedBody::State::kMore:
      return state;
    case ChunkedBody::State::kDone:
      return state = State::kDone;
    case ChunkedBody::State::kMalformed:
      return Fail({400, "malformed HTTP request: bad chunk"});
    case ChunkedBody::State::kTooLarge:
      return Fail(TooLarge());
  }
  return state;
}

RequestParser::RequestParser(size_t max_head_bytes, size_t max_body_bytes,
                             std::shared_ptr<BodyBudget> budget)
    : impl_(std::make_unique<Impl>(max_head_bytes, max_body_bytes, std::move(budget))) {}

RequestParser::~RequestParser() = default;

RequestParser::State RequestParser::Feed(std::string_view data, size_t* used) {
  *used = 0;
  if (impl_->state == State::kHead) return impl_->FeedHead(data, used);
  if (impl_->state == State::kBody) return impl_->FeedBody(data, used);
  return impl_->state;
}

RequestParser::State RequestParser::FeedRest(std::string_view data, size_t* used,
                                             std::string* scratch, std::string_view* piece) {
  return impl_->FeedRest(data, used, scratch, piece);
}

int64_t RequestParser::rest_bytes() const {
  return impl_->chunked() ? -1 : static_cast<int64_t>(impl_->body_left);
}

RequestParser::State RequestParser::state() const { return impl_->state; }
HttpRequest& RequestParser::request() { return impl_->request; }
const HttpError& RequestParser::error() const { return impl_->error; }
bool RequestParser::http_1_0() const { return impl_->http_1_0; }
bool RequestParser::keep_alive() const { return impl_->keeps_alive; }
bool RequestParser::expects_continue() const { return impl_->expects_continue; }
size_t RequestParser::declared_body() const { return impl_->body_left; }
void RequestParser::LimitBody(size_t bytes) {
  if (bytes >= impl_->max_body) return;
  impl_->max_body = bytes;
  impl_->chunks = ChunkedBody(bytes);
}
void RequestParser::DropBody() { impl_->drops_body = true; }

}  // namespace portico::net
