#include "net/http/chunked_body.h"

#include <algorithm>

#include "base/hex_digit.h"
#include "net/http/http_text.h"

namespace portico::net {
namespace {

bool IsTrailer(std::string_view line) {
  size_t colon = line.find(':');
  return colon != std::string_view::npos && colon > 0 &&
         line.substr(0, colon).find_first_of(" \t\"(),/;<=>?@[\\]{}") == std::string_view::npos &&
         IsFieldText(line);
}

}  // namespace

ChunkedBody::State ChunkedBody::TakeLine(std::string_view* data, std::string_view* line) {
  size_t end = data->find('\n');
  if (end == std::string_view::npos) {
    return data->size() > kMaxLine ? State::kMalformed : State::kMore;
  }
  if (end == 0 || end > kMaxLine || (*data)[end - 1] != '\r') return State::kMalformed;
  *line = data->substr(0, end - 1);
  data->remove_prefix(end + 1);
  return State::kDone;
}

ChunkedBody::State ChunkedBody::OnSizeLine(std::string_view line) {
  size_t digits = 0;
  size_t size = 0;
  for (; digits < line.size() && HexDigit(line[digits]) >= 0; ++digits) {
    if (size >> 56 != 0) return State::kMalformed;  // no honest size; more digits would overflow
    size = size * 16 + static_cast<size_t>(HexDigit(line[digits]));
  }
  if (digits == 0) return State::kMalformed;
  line.remove_prefix(digits);
  size_t extension = line.find_first_not_of(" \t");
  if (!line.empty() && (extension == std::string_view::npos || line[extension] != ';')) {
    return State::kMalformed;
  }
  if (!IsFieldText(line)) return State::kMalformed;
  if (size > allowed_) return State::kTooLarge;
  allowed_ -= size;
  left_ = size;
  part_ = size == 0 ? Part::kTrailers : Part::kData;
  return State::kDone;
}

ChunkedBody::State ChunkedBody::Feed(std::string_view data, size_t* used, std::string* body) {
  const size_t all = data.size();
  State state = State::kDone;
  bool complete = false;
  while (state == State::kDone && !complete) {
    std::string_view line;
    switch (part_) {
      case Part::kSize:
        state = TakeLine(&data, &line);
        if (state == State::kDone) state = OnSizeLine(line);
        break;
      case Part::kData: {
        size_t size = std::min(left_, data.size());
        body->append(data.substr(0, size));
        data.remove_prefix(size);
        left_ -= size;
        if (left_ > 0) {
          state = State::kMore;
        } else {
          part_ = Part::kDataEnd;
        }
        break;
      }
      case Part::kDataEnd:
        if (data.substr(0, 2) != std::string_view("\r\n").substr(0, data.size())) {
          state = State::kMalformed;
        } else if (data.size() < 2) {
          state = State::kMore;
        } else {
          data.remove_prefix(2);
          part_ = Part::kSize;
        }
        break;
      case Part::kTrailers:
        state = TakeLine(&data, &line);
        if (state != State::kDone) break;
        trailer_bytes_ += line.size() + 2;
        complete = line.empty();
        if (!complete && (!IsTrailer(line) || trailer_bytes_ > kMaxLine)) state = State::kMalformed;
        break;
    }
  }
  *used = all - data.size();
  return state;
}

}  // namespace portico::net
