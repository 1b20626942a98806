#include "net/http/multipart.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "net/http/http_text.h"

namespace portico::net {
namespace {

constexpr size_t kMaxParts = 64;
constexpr size_t kMaxPartHead = 4096;
constexpr size_t kMaxBoundary = 70;  // RFC 2046

Status Bad(std::string why) { return Error(StatusCode::kInvalidArgument, std::move(why)); }

// string_view::find() stops at each '\r': a body of them alone would hold its shard up for seconds.
size_t FindMark(std::string_view body, std::string_view mark, size_t from) {
  const void* at = memmem(body.data() + from, body.size() - from, mark.data(), mark.size());
  return at == nullptr ? std::string_view::npos
                       : static_cast<size_t>(static_cast<const char*>(at) - body.data());
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return lower;
}

// The value of a parameter of a header ("name" of `form-data; name="file"`); quotes and the escapes
// in them are resolved.
std::string Parameter(std::string_view header, std::string_view name) {
  size_t at = header.find(';');
  while (at != std::string_view::npos && at < header.size()) {
    const size_t equals = header.find('=', at);
    if (equals == std::string_view::npos) return "";
    const std::string key = Lower(TrimBlanks(header.substr(at + 1, equals - at - 1)));
    std::string value;
    size_t end = equals + 1;
    if (end < header.size() && header[end] == '"') {
      for (++end; end < header.size() && header[end] != '"'; ++end) {
        if (header[end] == '\\' && end + 1 < header.size()) ++end;
        value.push_back(header[end]);
      }
      at = header.find(';', end);
    } else {
      at = header.find(';', end);
      value = TrimBlanks(header.substr(end, at == std::string_view::npos ? at : at - end));
    }
    if (key == name) return value;
  }
  return "";
}

Status ReadHead(std::string_view head, FormPart* part) {
  while (!head.empty()) {
    const size_t end = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return Bad("a part of the form has a damaged header");
    const std::string name = Lower(line.substr(0, colon));
    const std::string_view value = TrimBlanks(line.substr(colon + 1));
    if (name == "content-disposition") {
      part->name = Parameter(value, "name");
      part->filename = Parameter(value, "filename");
    } else if (name == "content-type") {
      part->content_type = value;
    }
  }
  return part->name.empty() ? Bad("a part of the form has no name") : OkStatus();
}

bool HasFormType(std::string_view content_type) {
  return Lower(content_type.substr(0, content_type.find(';'))).starts_with("multipart/form-data");
}

// Calls `take` with each part, in their order.
template <typename Take>
Status ReadParts(std::string_view content_type, std::string_view body, const Take& take) {
  if (!HasFormType(content_type)) return Bad("the body must be multipart/form-data");
  const std::string boundary = Parameter(content_type, "boundary");
  if (boundary.empty() || boundary.size() > kMaxBoundary) {
    return Bad("the content type has no valid boundary");
  }
  const std::string first = "--" + boundary;
  const std::string mark = "\r\n" + first;
  // What stands before the first boundary is ignored, as RFC 2046 says.
  size_t at = 0;
  if (!body.starts_with(first)) {
    at = FindMark(body, mark, 0);
    if (at == std::string_view::npos) return Bad("the form has no boundary in its body");
    at += 2;
  }
  at += first.size();
  for (size_t parts = 0;; ++parts) {
    const std::string_view rest = body.substr(at);
    if (rest.starts_with("--")) return OkStatus();
    if (!rest.starts_with("\r\n")) return Bad("the form is cut off or damaged");
    if (parts == kMaxParts) return Bad("the form has too many parts");
    const size_t head_end = rest.substr(0, kMaxPartHead).find("\r\n\r\n");
    if (head_end == std::string_view::npos) return Bad("a part of the form has no end of headers");
    FormPart part;
    if (head_end > 0) PORTICO_RETURN_IF_ERROR(ReadHead(rest.substr(2, head_end - 2), &part));
    if (part.name.empty()) return Bad("a part of the form has no name");
    const size_t begin = at + head_end + 4;
    const size_t end = FindMark(body, mark, begin);
    if (end == std::string_view::npos) return Bad("the form is cut off");
    part.body = body.substr(begin, end - begin);
    take(std::move(part));
    at = end + mark.size();
  }
}

}  // namespace

bool IsForm(std::string_view content_type) { return HasFormType(content_type); }

StatusOr<std::vector<FormPart>> ParseForm(std::string_view content_type, std::string_view body) {
  std::vector<FormPart> parts;
  PORTICO_RETURN_IF_ERROR(
      ReadParts(content_type, body, [&parts](FormPart part) { parts.push_back(std::move(part)); }));
  return parts;
}

std::optional<std::string_view> FindFormText(std::string_view content_type, std::string_view body,
                                             std::string_view name) {
  std::optional<std::string_view> text;
  const Status read = ReadParts(content_type, body, [&](const FormPart& part) {
    if (part.filename.empty() && part.name == name) text = part.body;
  });
  static_cast<void>(read);  // of one that is cut off, what has come counts
  return text;
}

}  // namespace portico::net
