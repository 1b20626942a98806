#include "router/proxy/forward_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "net/http/bearer.h"

namespace portico::router {
namespace {

constexpr std::string_view kHopByHop[] = {"connection",
                                          "keep-alive",
                                          "proxy-authenticate",
                                          "proxy-authorization",
                                          "proxy-connection",
                                          "te",
                                          "trailer",
                                          "transfer-encoding",
                                          "upgrade",
                                          "http2-settings"};

// Of requests: made anew for the worker.
constexpr std::string_view kMadeAnew[] = {"host", "content-length", "expect"};
// Of requests to workers that are sent a key: in its place. (Anthropic's clients send theirs in the second.)
constexpr std::string_view kClientKey[] = {"authorization", "x-api-key"};
// Which web page sends a request is judged here: to a worker it is the gateway that asks.
bool TellsOfPages(std::string_view name) {
  return name == "origin" || name.starts_with("sec-fetch-");
}
// Of answers: the gateway's own.
constexpr std::string_view kOwn[] = {
    "content-length",          "date", "server", "content-type", "x-request-id", "x-portico-worker",
    "x-portico-prefill-worker"};

template <size_t N>
bool IsOneOf(std::string_view name, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// SGLang's and vLLM's, for a data-parallel rank; it beats the body's field.
constexpr std::string_view kRankHeader = "x-data-parallel-rank";

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// Whether Connection names the header, which makes it the connection's.
bool IsNamed(std::string_view connection, std::string_view name) {
  while (!connection.empty()) {
    const size_t comma = connection.find(',');
    std::string_view option = connection.substr(0, comma);
    while (!option.empty() && (option.front() == ' ' || option.front() == '\t')) {
      option.remove_prefix(1);
    }
    while (!option.empty() && (option.back() == ' ' || option.back() == '\t')) {
      option.remove_suffix(1);
    }
    if (option.size() == name.size() && std::equal(option.begin(), option.end(), name.begin(),
                                                   [](char a, char b) { return Lower(a) == b; })) {
      return true;
    }
    if (comma == std::string_view::npos) return false;
    connection.remove_prefix(comma + 1);
  }
  return false;
}

// What its lines of Connection say together.
std::string ConnectionOf(const net::Headers& headers) {
  std::string options;
  for (const auto& [name, value] : headers) {
    if (name == "connection") options.append(options.empty() ? "" : ",").append(value);
  }
  return options;
}

// The only escape that a request's path still has.
constexpr std::string_view kEscapedSlash = "%2F";

constexpr std::array<bool, 256> kPathByte = [] {
  std::array<bool, 256> kept{};
  for (unsigned char c = '0'; c <= '9'; ++c) kept[c] = true;
  for (unsigned char c = 'a'; c <= 'z'; ++c) kept[c] = kept[c - 32] = true;
  for (const char c : {'-', '.', '_', '~', '!', '$', '&', '\'', '(', ')', '*', '+', ',', ';', '=',
                       ':', '@', '/'}) {
    kept[static_cast<unsigned char>(c)] = true;
  }
  return kept;
}();

void AppendHeader(std::string_view name, std::string_view value, std::string* out) {
  // A value of HTTP/2 or of a configuration could forge headers.
  if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) return;
  out->append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

bool IsHopByHop(std::string_view name) { return IsOneOf(name, kHopByHop); }

bool ShowsKey(std::string_view name, std::string_view value, std::span<const std::string> keys) {
  if (keys.empty() || !IsOneOf(name, kClientKey)) return false;
  const std::string_view shown = name == kClientKey[0] ? net::BearerToken(value) : value;
  return !shown.empty() && std::any_of(keys.begin(), keys.end(), [shown](std::string_view key) {
    return net::SameKey(shown, key);
  });
}

void AppendPath(std::string_view path, std::string* out) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (size_t i = 0; i < path.size(); ++i) {
    const auto byte = static_cast<unsigned char>(path[i]);
    if (kPathByte[byte] || path.substr(i, 3) == kEscapedSlash) {
      out->push_back(path[i]);
    } else {
      out->push_back('%');
      out->push_back(kDigits[byte >> 4]);
      out->push_back(kDigits[byte & 15]);
    }
  }
}

bool HasDotSegment(std::string_view path) {
  size_t begin = 0;
  for (size_t i = 0; i <= path.size(); ++i) {
    const bool escaped = path.substr(i, 3) == kEscapedSlash;
    if (i < path.size() && path[i] != '/' && path[i] != '\\' && !escaped) continue;
    const std::string_view segment = path.substr(begin, i - begin);
    if (segment == "." || segment == "..") return true;
    if (escaped) i += kEscapedSlash.size() - 1;
    begin = i + 1;
  }
  return false;
}

std::string MakeRequestHead(const ForwardedHead& forwarded) {
  const net::HttpRequest& request = forwarded.request;
  const WorkerSpec& spec = forwarded.worker.spec();
  std::string head;
  head.reserve(1024);
  head.append(request.method).push_back(' ');
  head.append(spec.path_prefix);
  AppendPath(request.path, &head);
  if (!request.query.empty()) head.append("?").append(request.query);
  head.append(" HTTP/1.1\r\nhost: ");
  const bool ipv6 = spec.host.find(':') != std::string::npos;
  head.append(ipv6 ? "[" : "").append(spec.host).append(ipv6 ? "]:" : ":");
  fmt::format_to(std::back_inserter(head), "{}\r\n", spec.port);
  const std::string own = forwarded.worker.api_key();
  const std::string_view key = own.empty() ? forwarded.key : own;
  const std::string connection = ConnectionOf(request.headers);
  bool has_id = false;
  for (const auto& [name, value] : request.headers) {
    if (IsHopByHop(name) || IsOneOf(name, kMadeAnew) || name.starts_with(':')) continue;
    if (TellsOfPages(name)) continue;
    if (!key.empty() && IsOneOf(name, kClientKey)) continue;
    if (ShowsKey(name, value, forwarded.kept_keys)) continue;
    if (!connection.empty() && IsNamed(connection, name)) continue;
    if (spec.dp_rank >= 0 && name == kRankHeader) continue;
    has_id = has_id || name == "x-request-id";
    AppendHeader(name, value, &head);
  }
  if (!key.empty()) head.append("authorization: Bearer ").append(key).append("\r\n");
  if (spec.dp_rank >= 0) AppendHeader(kRankHeader, std::to_string(spec.dp_rank), &head);
  if (!has_id && !forwarded.request_id.empty()) {
    AppendHeader("x-request-id", forwarded.request_id, &head);
  }
  if (forwarded.has_body && forwarded.body_bytes < 0) {
    head.append("transfer-encoding: chunked\r\n");
  } else if (forwarded.has_body) {
    fmt::format_to(std::back_inserter(head), "content-length: {}\r\n", forwarded.body_bytes);
  }
  head.append("\r\n");
  return head;
}

net::HttpResponse MakeResponseHead(net::ResponseHead& head, const Worker& worker) {
  net::HttpResponse response;
  response.status = head.status;
  response.content_type = std::string(head.Header("content-type"));
  const std::string connection = ConnectionOf(head.headers);
  const std::string place = fmt::format("{}:{}", worker.spec().host, worker.spec().port);
  for (auto& [name, value] : head.headers) {
    if (IsHopByHop(name) || IsOneOf(name, kOwn)) continue;
    if (!connection.empty() && IsNamed(connection, name)) continue;
    if (value.find(place) != std::string::npos) continue;
    response.headers.emplace_back(std::move(name), std::move(value));
  }
  return response;
}

}  // namespace portico::router
