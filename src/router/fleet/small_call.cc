#include "router/fleet/small_call.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace portico::router {

std::string WhyLost(std::string_view address, bool reached, std::string_view why) {
  if (!address.empty() && why.starts_with(fmt::format("{}: ", address))) {
    why.remove_prefix(address.size() + 2);
  }
  // Without an answer, and with or without a reset.
  constexpr std::string_view kClosed[] = {"the server closed the connection", "connection lost"};
  if (reached && std::find(std::begin(kClosed), std::end(kClosed), why) != std::end(kClosed)) {
    return "it closed the connection";
  }
  std::string lost = reached ? "the connection to it was lost" : "it cannot be reached";
  if (!why.empty()) lost += fmt::format(" ({})", why);
  // OpenSSL's words for the answer of a server of HTTP.
  if (why.find("wrong version number") != std::string_view::npos) {
    lost += "; its URL begins with https, but it does not use TLS";
  }
  return lost;
}

SmallCall::SmallCall(net::Shard& shard, net::HttpClient& client, const Worker& worker,
                     SmallRequest request, Done done)
    : max_bytes_(request.max_bytes),
      on_body_(std::move(request.on_body)),
      address_(fmt::format("{}:{}", worker.spec().host, worker.spec().port)),
      done_(std::move(done)) {
  const WorkerSpec& spec = worker.spec();
  const bool ipv6 = spec.host.find(':') != std::string::npos;
  std::string head = fmt::format("{} {}{} HTTP/1.1\r\nhost: {}{}{}:{}\r\naccept: */*\r\n",
                                 request.method, spec.path_prefix, request.target, ipv6 ? "[" : "",
                                 spec.host, ipv6 ? "]" : "", spec.port);
  if (!request.authorization.empty()) {
    head += fmt::format("authorization: {}\r\n", request.authorization);
  }
  std::shared_ptr<const std::string> body;
  if (request.method != "GET") {
    if (!request.content_type.empty()) {
      head += fmt::format("content-type: {}\r\n", request.content_type);
    }
    head += fmt::format("content-length: {}\r\n", request.body.size());
    body = std::make_shared<const std::string>(std::move(request.body));
  }
  head += "\r\n";
  SetDeadline(shard, request.timeout);
  call_ = client.StartCall(
      {.head = std::move(head), .body = std::move(body), .head_request = request.method == "HEAD"},
      *this, false);
}

SmallCall::SmallCall(net::Shard& shard, TokenWorkers& workers, const Worker& worker,
                     SmallRequest request, Done done)
    : max_bytes_(request.max_bytes), on_body_(std::move(request.on_body)), done_(std::move(done)) {
  const size_t query = request.target.find('?');
  net::HttpRequest asked;
  asked.method = std::move(request.method);
  asked.path = request.target.substr(0, query);
  if (query != std::string::npos) asked.query = request.target.substr(query + 1);
  if (!request.content_type.empty()) {
    asked.headers.emplace_back("content-type", std::move(request.content_type));
  }
  asked.body.reserve(request.body.size() + simdjson::SIMDJSON_PADDING);
  asked.body += request.body;
  SetDeadline(shard, request.timeout);
  auto call = workers.Start(worker, shard, std::move(asked), *this);
  if (call.ok()) {
    call_ = *std::move(call);
    return;
  }
  timer_ = shard.After(Duration::zero(), [this, why = call.status()] { Finish(why); });
}

void SmallCall::SetDeadline(net::Shard& shard, Duration timeout) {
  timer_ = shard.After(timeout, [this] {
    Finish(Error(StatusCode::kDeadlineExceeded, "it has not answered in time"));
  });
}

void SmallCall::OnHead(net::ResponseHead& head) {
  answer_.status = head.status;
  answer_.content_type = std::string(head.Header("content-type"));
}

void SmallCall::OnBody(std::string_view bytes) {
  body_bytes_ += bytes.size();
  if (body_bytes_ > max_bytes_) {
    return Finish(Error(StatusCode::kInternal, "its answer is too large"));
  }
  on_body_ != nullptr ? on_body_(bytes) : void(answer_.body.append(bytes));
}

void SmallCall::OnDone() { Finish(std::move(answer_)); }

void SmallCall::OnFailed(net::CallFailure failure, const std::string& why) {
  if (failure == net::CallFailure::kMalformed) {
    return Finish(Error(StatusCode::kInternal, "its answer is malformed: " + why));
  }
  Finish(Error(StatusCode::kUnavailable,
               WhyLost(address_, failure != net::CallFailure::kConnect, why)));
}

void SmallCall::Finish(StatusOr<SmallAnswer> answer) {
  timer_.reset();
  call_.reset();
  Done done = std::move(done_);
  done(std::move(answer));
}

}  // namespace portico::router
