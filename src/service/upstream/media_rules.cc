#include "service/upstream/media_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "base/hex_digit.h"
#include "net/socket/host_addresses.h"

namespace portico {
namespace {

constexpr size_t kMaxUrl = 4096;

Status Refused(std::string message) {
  return Error(StatusCode::kInvalidArgument, std::move(message));
}

bool Lists(const MediaRules& rules, std::string_view host) {
  return std::any_of(rules.domains.begin(), rules.domains.end(), [host](std::string_view domain) {
    if (domain == "*" || domain == host) return true;
    return domain.starts_with("*.") && host.size() > domain.size() - 1 &&
           host.ends_with(domain.substr(1));
  });
}

bool IsHostByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

StatusOr<MediaUrl> ReadFilePath(const MediaRules& rules, std::string_view text, bool escaped) {
  if (rules.local_folder.empty()) {
    return Refused(
        "is a local file, and this server does not read local files (--allowed-local-media-path)");
  }
  MediaUrl url;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = escaped && text[i] == '%';
    const int high = escape && i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = escape && i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
    if (escape && (high < 0 || low < 0)) return Refused("has a bad escape");
    url.file.push_back(escape ? static_cast<char>(high * 16 + low) : text[i]);
    if (escape) i += 2;
  }
  if (!url.file.starts_with('/') || url.file.find('\0') != std::string::npos) {
    return Refused("must be file:///PATH, or an absolute path");
  }
  return url;
}

// What stands behind "http://" or "https://".
StatusOr<MediaUrl> ReadHttpUrl(const MediaRules& rules, std::string_view rest, bool tls) {
  MediaUrl url;
  url.tls = tls;
  url.port = tls ? 443 : 80;
  rest = rest.substr(0, rest.find('#'));
  const size_t path = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view place = rest.substr(0, path);
  url.target = rest.substr(path);
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  const auto bad = [] { return Refused("must be http://HOST[:PORT]/… or https://…"); };
  const size_t colon = place.rfind(':');
  if (colon != std::string_view::npos && place.find(']', colon) == std::string_view::npos) {
    if (!absl::SimpleAtoi(std::string(place.substr(colon + 1)), &url.port)) return bad();
    place = place.substr(0, colon);
  }
  url.host = absl::AsciiStrToLower(absl::string_view(place.data(), place.size()));
  if (url.host.starts_with('[') && url.host.ends_with(']')) {
    url.host = url.host.substr(1, url.host.size() - 2);
    const bool address = url.host.find_first_not_of("0123456789abcdef:.") == std::string::npos;
    if (!address) return bad();
  } else if (!std::all_of(url.host.begin(), url.host.end(), IsHostByte)) {
    return bad();  // users and passwords among them
  }
  if (url.host.empty() || url.port < 1 || url.port > 65535) return bad();
  if (rules.domains.empty()) {
    return Refused(
        "must be a data: URL in base64; this server fetches no other addresses "
        "(--allowed-media-domain)");
  }
  if (!Lists(rules, url.host)) {
    return Refused(fmt::format("is on {}, from which this server does not fetch media", url.host));
  }
  return url;
}

}  // namespace

StatusOr<MediaUrl> ReadMediaUrl(const MediaRules& rules, std::string_view url) {
  if (url.size() > kMaxUrl) return Refused(fmt::format("is longer than {} bytes", kMaxUrl));
  for (const char c : url) {
    if (c <= ' ' || c == 0x7f) return Refused("has blanks or control characters");
  }
  if (url.starts_with('/')) return ReadFilePath(rules, url, /*escaped=*/false);
  const size_t colon = std::min(url.find(':'), url.size());
  const std::string scheme = absl::AsciiStrToLower(absl::string_view(url.data(), colon));
  std::string_view rest = url.substr(std::min(colon + 1, url.size()));
  if (scheme == "file") {
    if (rest.starts_with("//localhost/")) rest.remove_prefix(11);
    if (rest.starts_with("//")) rest.remove_prefix(2);
    return ReadFilePath(rules, rest, /*escaped=*/true);
  }
  if ((scheme != "http" && scheme != "https") || !rest.starts_with("//")) {
    return Refused(
        "must be a data: URL in base64, or an http, https or file URL that this server allows");
  }
  for (const char c : rest) {
    if (static_cast<unsigned char>(c) >= 0x80) return Refused("must be percent-encoded ASCII");
  }
  return ReadHttpUrl(rules, rest.substr(2), scheme == "https");
}

StatusOr<MediaUrl> ReadRedirect(const MediaRules& rules, const MediaUrl& from,
                                std::string_view location) {
  std::string url(location);
  const std::string scheme = from.tls ? "https:" : "http:";
  const size_t colon = url.find("://");
  const bool absolute = colon != std::string::npos && colon < url.find_first_of("/?#");
  if (!absolute && !url.starts_with("//")) {
    const std::string host =
        from.host.find(':') == std::string::npos ? from.host : "[" + from.host + "]";
    std::string path = url.starts_with('/') ? "" : from.target.substr(0, from.target.find('?'));
    path.resize(path.rfind('/') + 1);
    url = fmt::format("{}//{}:{}{}{}", scheme, host, from.port, path, url);
  } else if (!absolute) {
    url.insert(0, scheme);
  }
  PORTICO_ASSIGN_OR_RETURN(MediaUrl to, ReadMediaUrl(rules, url));
  if (!to.file.empty() || (from.tls && !to.tls))
    return Refused("leads to an address that is not allowed");
  return to;
}

Status CheckMediaHost(const MediaRules& rules, const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) {
    const bool listed =
        std::find(rules.domains.begin(), rules.domains.end(), address) != rules.domains.end();
    if (!listed && !net::IsPublicAddress(address)) {
      return Refused("is in a private network");
    }
  }
  return OkStatus();
}

}  // namespace portico
