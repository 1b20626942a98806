#include "service/plan/request_media.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/base64.h"

namespace portico {
namespace {

// SGLang takes a text that ends like this for a file, and any other without a scheme for base64: that of a JPEG begins
// with a slash.
bool LooksLikeFile(std::string_view text) {
  constexpr std::string_view kEndings[] = {
      ".png", ".jpg",  ".jpeg", ".gif", ".webp", ".bmp", ".mp4", ".mov",  ".mkv", ".avi",  ".webm",
      ".mpg", ".mpeg", ".m4v",  ".wav", ".mp3",  ".ogg", ".m4a", ".flac", ".aac", ".opus",
  };
  const std::string lower =
      absl::AsciiStrToLower(absl::string_view(text.data(), std::min<size_t>(text.size(), 4096)));
  return text.size() <= 4096 &&
         std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return lower.ends_with(ending); });
}

bool IsAddress(std::string_view url) {
  if (url.starts_with("data:")) return false;
  const size_t colon = std::min(url.find("://"), url.size());
  if (colon < 16 && url.size() > colon) return true;
  return url.starts_with("file:") || LooksLikeFile(url);
}

Status Wrong(const MediaItem& item, std::string_view complaint) {
  return InvalidArgument(item.field, fmt::format("{} {}", item.place, complaint));
}

StatusOr<std::shared_ptr<const std::string>> Decode(const MediaLimits& limits,
                                                    const MediaItem& item) {
  std::string_view text = item.url;
  if (text.starts_with("data:")) {
    const size_t comma = text.find(',');
    if (comma == std::string_view::npos || !text.substr(0, comma).ends_with(";base64")) {
      return Wrong(item, "must be a data: URL in base64");
    }
    text.remove_prefix(comma + 1);
  }
  auto bytes = std::make_shared<std::string>();
  if (text.empty() || !FromBase64(text, bytes.get())) {
    return Wrong(
        item,
        fmt::format("must be {} in base64, a data: URL, or an address that this server allows",
                    WordsOf(item.kind).phrase));
  }
  if (const size_t most = limits.Of(item.kind).item_bytes; bytes->size() > most) {
    return Wrong(item, fmt::format("has more than {} bytes", most));
  }
  return std::shared_ptr<const std::string>(std::move(bytes));
}

Status CheckCounts(const MediaLimits& limits, const RequestMedia& media) {
  size_t counts[kMediaKinds] = {};
  for (const MediaItem& item : media.items) ++counts[static_cast<size_t>(item.kind)];
  for (const MediaItem& item : media.items) {
    const size_t count = counts[static_cast<size_t>(item.kind)];
    const size_t most = limits.Of(item.kind).count;
    if (count <= most) continue;
    return InvalidArgument(item.field, fmt::format("at most {} {} are taken, got {}", most,
                                                   WordsOf(item.kind).plural, count));
  }
  return OkStatus();
}

}  // namespace

MediaRules MediaLimits::RulesOf(MediaKind kind, size_t left) const {
  MediaRules of_kind = rules;
  of_kind.kind = kind;
  of_kind.max_bytes = std::min(Of(kind).item_bytes, left);
  of_kind.total_bytes = left < Of(kind).item_bytes ? Of(kind).total_bytes : 0;
  of_kind.timeout = Of(kind).timeout;
  return of_kind;
}

StatusOr<std::shared_ptr<const RequestMedia>> ReadInlineMedia(const MediaLimits& limits,
                                                              const RequestMedia& media) {
  PORTICO_RETURN_IF_ERROR(CheckCounts(limits, media));
  auto read = std::make_shared<RequestMedia>(media);
  size_t totals[kMediaKinds] = {};
  for (MediaItem& item : read->items) {
    if (IsAddress(item.url)) {
      const auto address = ReadMediaUrl(limits.rules, item.url);
      if (!address.ok()) return Wrong(item, MessageOf(address.status()));
      continue;
    }
    PORTICO_ASSIGN_OR_RETURN(item.bytes, Decode(limits, item));
    item.url.clear();
    size_t& total = totals[static_cast<size_t>(item.kind)];
    total += item.bytes->size();
    if (const size_t most = limits.Of(item.kind).total_bytes; total > most) {
      return InvalidArgument(item.field, fmt::format("the {} have more than {} bytes",
                                                     WordsOf(item.kind).plural, most));
    }
  }
  return std::shared_ptr<const RequestMedia>(std::move(read));
}

bool NeedsFetch(const RequestMedia& media) {
  return std::any_of(media.items.begin(), media.items.end(),
                     [](const MediaItem& item) { return item.bytes == nullptr; });
}

std::shared_ptr<const RequestExtras> WithMedia(const std::shared_ptr<const RequestExtras>& extras,
                                               std::shared_ptr<const RequestMedia> media) {
  auto made = extras == nullptr ? std::make_shared<RequestExtras>()
                                : std::make_shared<RequestExtras>(*extras);
  made->media = std::move(media);
  return made;
}

}  // namespace portico
