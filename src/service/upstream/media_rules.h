// Which addresses of media a server looks at.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "message/request_media.h"

namespace portico {

struct MediaRules {
  MediaKind kind = MediaKind::kAudio;
  // Names: "example.org", and "*.example.org" for those below it; "*" for all. A name that leads to an
  // address which is not public is refused all the same, unless the address itself is here.
  std::vector<std::string> domains;
  std::string local_folder;  // files below it; empty: none
  size_t max_bytes = size_t{10} << 20;
  size_t total_bytes = 0;  // of which max_bytes are left; 0: they are the file's own bound
  Duration timeout = std::chrono::seconds(20);
  int max_redirects = 3;
};

struct MediaUrl {
  bool tls = false;
  std::string host;  // in lower case, IPv6 without brackets
  int port = 0;
  std::string target;  // path and query
  std::string file;    // of a local file: its path; then there is no host
};

// INVALID_ARGUMENT, a sentence without its beginning, for an address that is not looked at: another scheme
// than http, https and file, a name that is not listed, a file where none is allowed. A path is a file's.
StatusOr<MediaUrl> ReadMediaUrl(const MediaRules& rules, std::string_view url);
// Where a redirect from `from` leads: `location` may be relative. Not to files, and not from https to http.
StatusOr<MediaUrl> ReadRedirect(const MediaRules& rules, const MediaUrl& from,
                                std::string_view location);
// INVALID_ARGUMENT unless all of them are public, or named in the rules.
Status CheckMediaHost(const MediaRules& rules, const std::vector<std::string>& addresses);

}  // namespace portico
