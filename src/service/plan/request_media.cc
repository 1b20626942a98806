#include "service/plan/request_media.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/base64.h"

namespace portico {
namespace {

// SGLang takes a text that ends like this for a file, and any other without a scheme for base64: that of a JPEG begins
// with a slash.
bool LooksLikeFile(std::string_view text) {
  constexpr std::array<std::string_view, 6> kEndings = {".png", ".jpg",  ".jpeg",
                                                        ".gif", ".webp", ".bmp"};
  const std::string lower =
      absl::AsciiStrToLower(absl::string_view(text.data(), std::min<size_t>(text.size(), 4096)));
  return text.size() <= 4096 &&
         std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return lower.ends_with(ending); });
}

bool IsAddress(std::string_view url) {
  if (url.starts_with("data:")) return false;
  const size_t colon = std::min(url.find("://"), url.size());
  if (colon < 16 && url.size() > colon) return true;
  return url.starts_with("file:") || LooksLikeFile(url);
}

Status Wrong(const RequestMedia& media, const MediaItem& item, std::string_view complaint) {
  return InvalidArgument(media.field, fmt::format("{} {}", item.place, complaint));
}

StatusOr<std::shared_ptr<const std::string>> Decode(const MediaLimits& limits,
                                                    const RequestMedia& media,
                                                    const MediaItem& item) {
  std::string_view text = item.url;
  if (text.starts_with("data:")) {
    const size_t comma = text.find(',');
    if (comma == std::string_view::npos || !text.substr(0, comma).ends_with(";base64")) {
      return Wrong(media, item, "must be a data: URL in base64");
    }
    text.remove_prefix(comma + 1);
  }
  auto bytes = std::make_shared<std::string>();
  if (text.empty() || !FromBase64(text, bytes.get())) {
    return Wrong(media, item,
                 "must be an image in base64, a data: URL, or an address that this server allows");
  }
  if (bytes->size() > limits.rules.max_bytes) {
    return Wrong(media, item, fmt::format("has more than {} bytes", limits.rules.max_bytes));
  }
  return std::shared_ptr<const std::string>(std::move(bytes));
}

}  // namespace

StatusOr<std::shared_ptr<const RequestMedia>> ReadInlineMedia(const MediaLimits& limits,
                                                              const RequestMedia& media) {
  if (media.items.size() > limits.max_images) {
    return InvalidArgument(media.field, fmt::format("at most {} images are taken, got {}",
                                                    limits.max_images, media.items.size()));
  }
  auto read = std::make_shared<RequestMedia>(media);
  size_t total = 0;
  for (MediaItem& item : read->items) {
    if (IsAddress(item.url)) {
      const auto address = ReadMediaUrl(limits.rules, item.url);
      if (!address.ok()) return Wrong(media, item, MessageOf(address.status()));
      continue;
    }
    PORTICO_ASSIGN_OR_RETURN(item.bytes, Decode(limits, media, item));
    item.url.clear();
    total += item.bytes->size();
    if (total > limits.max_total_bytes) {
      return InvalidArgument(
          media.field, fmt::format("the images have more than {} bytes", limits.max_total_bytes));
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
