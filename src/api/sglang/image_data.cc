#include "api/sglang/image_data.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace portico::api::sglang {
namespace {

// A text, or an object with the text as its url.
Status ReadImage(std::string_view name, Element value, std::vector<MediaItem>* images) {
  MediaItem& item = images->emplace_back();
  item.field = name;
  item.place = fmt::format("{}[{}]", name, images->size() - 1);
  simdjson::dom::object object;
  if (!value.get(object)) {
    for (auto [key, member] : object) {
      if (member.is_null()) continue;
      std::string* to = key == "url" ? &item.url : key == "detail" ? &item.detail : nullptr;
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

Status ReadImages(std::string_view name, Element value,
                  std::shared_ptr<const RequestExtras>* extras) {
  auto media = std::make_shared<RequestMedia>();
  simdjson::dom::array list;
  if (value.is_null()) return OkStatus();
  if (value.get(list)) {
    PORTICO_RETURN_IF_ERROR(ReadImage(name, value, &media->items));
  } else {
    for (Element item : list) {
      if (item.is_null()) continue;
      PORTICO_RETURN_IF_ERROR(ReadImage(name, item, &media->items));
    }
  }
  if (media->items.empty()) return OkStatus();
  auto made = *extras == nullptr ? std::make_shared<RequestExtras>()
                                 : std::make_shared<RequestExtras>(**extras);
  made->media = std::move(media);
  *extras = std::move(made);
  return OkStatus();
}

}  // namespace portico::api::sglang
