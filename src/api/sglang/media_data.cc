#include "api/sglang/media_data.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace portico::api::sglang {
namespace {

// A text, or an object with the text as its url.
Status ReadItem(MediaKind kind, Element value, std::vector<MediaItem>* items) {
  const std::string_view name = WordsOf(kind).data;
  MediaItem& item = items->emplace_back();
  item.kind = kind;
  item.field = name;
  item.place = fmt::format("{}[{}]", name, items->size() - 1);
  simdjson::dom::object object;
  if (!value.get(object)) {
    for (auto [key, member] : object) {
      if (member.is_null()) continue;
      std::string* to = key == "url"                                   ? &item.url
                        : key == "detail" && kind == MediaKind::kImage ? &item.detail
                                                                       : nullptr;
      if (to == nullptr) {
        return InvalidArgument(
            name, fmt::format("{} has a field that is not supported: {:.64}", item.place, key));
      }
      PORTICO_RETURN_IF_ERROR(ReadString(name, member, to));
    }
  } else {
    PORTICO_RETURN_IF_ERROR(ReadString(name, value, &item.url));
  }
  if (!item.url.empty()) return OkStatus();
  return InvalidArgument(name, fmt::format("{} is empty", item.place));
}

}  // namespace

Status ReadMediaData(MediaKind kind, Element value, std::shared_ptr<const RequestExtras>* extras) {
  const std::string_view name = WordsOf(kind).data;
  std::vector<MediaItem> items;
  simdjson::dom::array list;
  if (value.is_null()) return OkStatus();
  if (value.get(list)) {
    PORTICO_RETURN_IF_ERROR(ReadItem(kind, value, &items));
  } else {
    // Before they are read: a text of three bytes would become hundreds.
    PORTICO_RETURN_IF_ERROR(CheckMembers(name, list.size(), kMaxMediaOfKind, "items"));
    for (Element item : list) {
      if (item.is_null()) continue;
      PORTICO_RETURN_IF_ERROR(ReadItem(kind, item, &items));
    }
  }
  AddMedia(std::move(items), extras);
  return OkStatus();
}

}  // namespace portico::api::sglang
