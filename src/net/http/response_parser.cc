#include "net/http/response_parser.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "net/http/http_text.h"

namespace portico::net {
namespace {

constexpr size_t kMaxFields = 256;
constexpr int kMaxInterim = 8;
constexpr size_t kUsualFields = 12;
constexpr size_t kMaxDigits = 18;  // of a length: below 2^63

// ASCII only; the locale has no say in a protocol.
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool EqualsIgnoreCase(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() && std::equal(text.begin(), text.end(), lower.begin(),
                                                   [](char a, char b) { return Lower(a) == b; });
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// RFC 9110, 5.6.2.
constexpr std::array<bool, 256> kToken = [] {
  std::array<bool, 256> token{};
  for (unsigned char c = '0'; c <= '9'; ++c) token[c] = true;
  for (unsigned char c = 'a'; c <= 'z'; ++c) token[c] = token[c - 32] = true;
  for (const char c :
       {'!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~'}) {
    token[static_cast<unsigned char>(c)] = true;
  }
  return token;
}();

// Calls `take` with each element of a comma-separated list.
template <typename Take>
void EachElement(std::string_view list, Take take) {
  while (true) {
    const size_t comma = list.find(',');
    take(TrimBlanks(list.substr(0, comma)));
    if (comma == std::string_view::npos) return;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace

std::string_view ResponseHead::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

ResponseParser::ResponseParser(size_t max_head_bytes, bool head_request)
    : max_head_(max_head_bytes),
      head_request_(head_request),
      chunks_(std::numeric_limits<size_t>::max()) {}

ResponseParser::State ResponseParser::Feed(std::string_view data, size_t* used, std::string* body) {
  *used = 0;
  if (state_ == State::kHead) return FeedHead(data, used);
  if (state_ == State::kBody) return FeedBody(data, used, body);
  return state_;
}

ResponseParser::State ResponseParser::OnEnd() {
  if (state_ == State::kBody && !head_.chunked && head_.length < 0) return state_ = State::kDone;
  if (state_ == State::kDone) return state_;
  return Fail(state_ == State::kHead ? "the connection ended within the head"
                                     : "the connection ended within the body");
}

ResponseParser::State ResponseParser::Fail(std::string_view why) {
  error_ = why;
  return state_ = State::kError;
}

ResponseParser::State ResponseParser::FeedHead(std::string_view data, size_t* used) {
  while (true) {
    size_t end = 0;
    while (scanned_ < data.size() && end == 0) {
      const void* found = std::memchr(data.data() + scanned_, '\n', data.size() - scanned_);
      if (found == nullptr) break;
      const auto after = static_cast<size_t>(static_cast<const char*>(found) - data.data()) + 1;
      if (after - scanned_ < 2 || data[after - 2] != '\r') {
        return Fail("a line of the head does not end in CR LF");
      }
      if (after - scanned_ == 2) end = after;
      scanned_ = after;
    }
    if ((end == 0 ? data.size() : end) > max_head_) return Fail("the head is too large");
    if (end == 0) return state_;
    if (!ReadHead(data.substr(0, end - 2))) return state_;
    *used += end;
    scanned_ = 0;
    if (head_.status >= 200) return StartBody();
    if (head_.status == 101) return Fail("it switches protocols without being asked to");
    if (++interim_ > kMaxInterim) return Fail("too many interim answers");
    data.remove_prefix(end);
    head_ = {};
  }
}

bool ResponseParser::ReadHead(std::string_view text) {
  head_.headers.reserve(kUsualFields);
  head_.length = -1;
  says_close_ = says_keep_alive_ = false;
  bool first = true;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end - 1);
    text.remove_prefix(end + 1);
    if (!(first ? ReadStatusLine(line) : ReadField(line))) return false;
    first = false;
  }
  if (first) {
    Fail("it begins with an empty line");
    return false;
  }
  if (head_.chunked && head_.length >= 0) {
    Fail("it has both Content-Length and Transfer-Encoding");
    return false;
  }
  if (head_.chunked && http_1_0_) {
    Fail("HTTP/1.0 has no Transfer-Encoding");
    return false;
  }
  head_.keep_alive = !says_close_ && (!http_1_0_ || says_keep_alive_);
  return true;
}

bool ResponseParser::ReadStatusLine(std::string_view line) {
  constexpr std::string_view kVersion = "HTTP/1.";
  constexpr size_t kCode = 9;
  const bool ok = line.size() >= kCode + 3 && line.starts_with(kVersion) &&
                  (line[kVersion.size()] == '0' || line[kVersion.size()] == '1') &&
                  line[kCode - 1] == ' ' && line[kCode] >= '1' && line[kCode] <= '9' &&
                  IsDigit(line[kCode + 1]) && IsDigit(line[kCode + 2]) &&
                  (line.size() == kCode + 3 || line[kCode + 3] == ' ') && IsFieldText(line);
  if (!ok) {
    Fail("its status line is malformed");
    return false;
  }
  http_1_0_ = line[kVersion.size()] == '0';
  head_.status = (line[kCode] - '0') * 100 + (line[kCode + 1] - '0') * 10 + (line[kCode + 2] - '0');
  return true;
}

bool ResponseParser::ReadField(std::string_view line) {
  const size_t colon = line.find(':');
  // A line that begins with a space folds the one before; a space in front of the colon belongs to
  // the name for some readers.
  const bool ok = colon != std::string_view::npos && colon > 0 &&
                  std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(colon),
                              [](char c) { return kToken[static_cast<unsigned char>(c)]; }) &&
                  IsFieldText(line.substr(colon + 1));
  if (!ok || head_.headers.size() >= kMaxFields) {
    Fail(ok ? "it has too many headers" : "a header is malformed");
    return false;
  }
  auto& [name, value] = head_.headers.emplace_back();
  name.resize(colon);
  std::transform(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(colon), name.begin(),
                 Lower);
  value = TrimBlanks(line.substr(colon + 1));
  if (name == "content-length") {
    if (head_.length >= 0 || value.empty() || value.size() > kMaxDigits ||
        !std::all_of(value.begin(), value.end(), IsDigit)) {
      Fail("its Content-Length is malformed or repeated");
      return false;
    }
    head_.length = 0;
    for (const char c : value) head_.length = head_.length * 10 + (c - '0');
  } else if (name == "transfer-encoding") {
    if (head_.chunked || !EqualsIgnoreCase(value, "chunked")) {
      Fail("its Transfer-Encoding is not chunked");
      return false;
    }
    head_.chunked = true;
  } else if (name == "connection") {
    EachElement(value, [this](std::string_view option) {
      if (EqualsIgnoreCase(option, "close")) says_close_ = true;
      if (EqualsIgnoreCase(option, "keep-alive")) says_keep_alive_ = true;
    });
  }
  return true;
}

ResponseParser::State ResponseParser::StartBody() {
  if (head_request_ || head_.status == 204 || head_.status == 304) return state_ = State::kDone;
  if (!head_.chunked) {
    if (head_.length == 0) return state_ = State::kDone;
    head_.to_end = head_.length < 0;
    if (head_.to_end) head_.keep_alive = false;
    left_ = head_.length;
  }
  return state_ = State::kBody;
}

ResponseParser::State ResponseParser::FeedBody(std::string_view data, size_t* used,
                                               std::string* body) {
  if (head_.chunked) {
    switch (chunks_.Feed(data, used, body)) {
      case ChunkedBody::State::kMore:
        return state_;
      case ChunkedBody::State::kDone:
        return state_ = State::kDone;
      case ChunkedBody::State::kMalformed:
      case ChunkedBody::State::kTooLarge:
        return Fail("a chunk of its body is malformed");
    }
  }
  const size_t size =
      left_ > 0 ? static_cast<size_t>(std::min<uint64_t>(static_cast<uint64_t>(left_), data.size()))
                : data.size();
  body->append(data.substr(0, size));
  *used = size;
  if (left_ > 0) {
    left_ -= static_cast<int64_t>(size);
    if (left_ == 0) return state_ = State::kDone;
  }
  return state_;
}

}  // namespace portico::net
