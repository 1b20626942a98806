// Any text as the address of media, and what follows its first line break as a redirect from there: what is accepted names a host
// of the list, or a file where one may be, and can be written into a request's head.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "service/upstream/media_rules.h"

namespace {

using portico::MediaRules;
using portico::MediaUrl;

void Check(const MediaUrl& url) {
  if (!url.file.empty()) {
    if (url.file[0] != '/' || url.file.find('\0') != std::string::npos) std::abort();
    return;
  }
  const std::string_view host = url.host;
  if (host != "example.org" && host != "::1" && !host.ends_with(".sounds.net")) std::abort();
  for (const char c : host) {
    if (c <= ' ' || c > '~' || c == '/' || c == '@' || c == '%' || c == '#') std::abort();
  }
  if (url.target.empty() || url.target[0] != '/' || url.port < 1 || url.port > 65535) std::abort();
  for (const char c : url.target) {
    if (c <= ' ' || c > '~' || c == '#') std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* rules = [] {
    auto* made = new MediaRules;
    made->domains = {"example.org", "*.sounds.net", "::1"};
    made->local_folder = "/srv";
    return made;
  }();
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = input.find('\n');
  const auto url = ReadMediaUrl(*rules, input.substr(0, line));
  if (!url.ok()) return 0;
  Check(*url);
  if (line == std::string_view::npos || !url->file.empty()) return 0;
  const auto next = ReadRedirect(*rules, *url, input.substr(line + 1));
  if (!next.ok()) return 0;
  Check(*next);
  if (!next->file.empty() || (url->tls && !next->tls)) std::abort();
  return 0;
}
