#include "service/upstream/http_upstream.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "text/utf8.h"

namespace portico {
namespace {

constexpr size_t kMaxRefusal = 16 << 10;
constexpr size_t kShownRefusal = 300;

}  // namespace

StatusOr<UpstreamUrl> ParseUpstreamUrl(std::string_view url) {
  const auto bad = [] {
    return Error(StatusCode::kInvalidArgument,
                 "factory.url must be http://HOST[:PORT][/PATH] or https://…");
  };
  UpstreamUrl read;
  const size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return bad();
  const std::string_view name = url.substr(0, scheme);
  if (name != "http" && name != "https") return bad();
  read.tls = name == "https";
  read.port = read.tls ? 443 : 80;
  std::string_view rest = url.substr(scheme + 3);
  const size_t slash = std::min(rest.find('/'), rest.size());
  read.path = rest.substr(slash);
  while (read.path.ends_with('/')) read.path.pop_back();
  rest = rest.substr(0, slash);
  if (rest.find('@') != std::string_view::npos) return bad();
  const size_t colon = rest.rfind(':');
  if (colon != std::string_view::npos && rest.find(']', colon) == std::string_view::npos) {
    if (!absl::SimpleAtoi(std::string(rest.substr(colon + 1)), &read.port)) return bad();
    rest = rest.substr(0, colon);
  }
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  read.host = rest;
  if (read.host.empty() || read.port < 1 || read.port > 65535) return bad();
  for (const char c : read.host + read.path) {
    if (c <= ' ' || c > '~') return bad();
  }
  return read;
}

std::string FormBody(const UpstreamForm& form, std::string_view boundary) {
  std::string body;
  for (const auto& [name, value] : form.fields) {
    body += fmt::format("--{}\r\ncontent-disposition: form-data; name=\"{}\"\r\n\r\n{}\r\n",
                        boundary, name, value);
  }
  body += fmt::format(
      "--{}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{}\"\r\n"
      "content-type: application/octet-stream\r\n\r\n",
      boundary, form.file_name);
  body += form.file;
  body += fmt::format("\r\n--{}--\r\n", boundary);
  return body;
}

void UpstreamCall::Start(net::Http1Client& client, const UpstreamUrl& url,
                         const std::string& api_key, UpstreamRequest request) {
  if (ended_) return;
  net::HttpCallRequest call;
  call.head = fmt::format(
      "POST {}{} HTTP/1.1\r\nhost: {}:{}\r\ncontent-type: {}\r\ncontent-length: {}\r\n"
      "accept: */*\r\n",
      url.path, request.path,
      url.host.find(':') != std::string::npos ? "[" + url.host + "]" : url.host, url.port,
      request.content_type, request.body.size());
  if (!api_key.empty()) call.head += fmt::format("authorization: Bearer {}\r\n", api_key);
  call.head += "\r\n";
  call.body = std::make_shared<const std::string>(std::move(request.body));
  call_ = client.Start(std::move(call), *this, /*fresh=*/true);
}

void UpstreamCall::Drop() {
  ended_ = true;
  call_.reset();
}

void UpstreamCall::Pause() {
  if (call_ != nullptr) call_->Pause();
}

void UpstreamCall::Resume() {
  if (call_ != nullptr) call_->Resume();
}

void UpstreamCall::OnHead(net::ResponseHead& head) {
  status_ = head.status;
  if (status_ / 100 == 2 && events_.on_head) events_.on_head(head);
}

void UpstreamCall::OnBody(std::string_view bytes) {
  if (ended_) return;
  if (status_ / 100 == 2) return events_.on_bytes(bytes);
  refusal_ += bytes.substr(0, kMaxRefusal - std::min(kMaxRefusal, refusal_.size()));
}

void UpstreamCall::OnDone() { End(status_ / 100 == 2 ? OkStatus() : Refusal()); }

void UpstreamCall::OnFailed(net::CallFailure, const std::string& why) {
  LogWarning("stage `{}`: the upstream failed: {}", stage_, why);
  End(Error(StatusCode::kUnavailable,
            fmt::format("the upstream of stage `{}` cannot be reached, or broke off", stage_), {},
            "upstream_failed"));
}

void UpstreamCall::End(Status status) {
  if (std::exchange(ended_, true)) return;
  events_.on_end(std::move(status));
}

// What the server says of the request is for who made it; what it says of itself is not.
Status UpstreamCall::Refusal() const {
  std::string said;
  if (auto body = Json::Parse(refusal_); body.ok()) {
    const Json* error = body->Find("error");
    if (error != nullptr)
      said = error->is_string() ? error->as_string() : error->GetString("message");
  }
  said.resize(std::min(said.size(), kShownRefusal));
  while (!IsValidUtf8(said)) said.pop_back();
  const bool of_client = status_ == 400 || status_ == 404 || status_ == 413 || status_ == 422;
  static LogLimit lines{10, std::chrono::seconds(1)};  // any client can cause them
  if (const auto others = lines.Take(Clock::now())) {
    LogWarning("stage `{}`: the upstream answered {}{}{}{}", stage_, status_, of_client ? "" : ": ",
               of_client ? "" : said, AndOthers(*others));
  }
  if (status_ == 429) {
    return Error(StatusCode::kResourceExhausted,
                 fmt::format("the upstream of stage `{}` is full", stage_));
  }
  if (of_client) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("the upstream of stage `{}` refused the request: {}", stage_, said),
                 {}, "upstream_refused");
  }
  return Error(StatusCode::kUnavailable, fmt::format("the upstream of stage `{}` failed", stage_),
               {}, "upstream_failed");
}

bool EventLines::Feed(std::string_view bytes,
                      const std::function<void(std::string_view)>& on_data) {
  held_ += bytes;
  size_t begin = 0;
  while (true) {
    const size_t end = held_.find('\n', begin);
    if (end == std::string::npos) break;
    std::string_view line = std::string_view(held_).substr(begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.starts_with("data:")) continue;
    line.remove_prefix(5);
    if (line.starts_with(' ')) line.remove_prefix(1);
    on_data(line);
  }
  held_.erase(0, begin);
  return held_.size() <= kMaxLine;
}

}  // namespace portico
