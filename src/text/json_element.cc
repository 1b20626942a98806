#include "text/json_element.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

namespace portico {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

// Up to here comparing each key with each other is faster than sorting.
constexpr size_t kFewMembers = 16;

bool HasDoubledKeys(const JsonObject& object) {
  for (size_t i = 1; i < object.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (object[i].first == object[j].first) return true;
    }
  }
  return false;
}

// The last of doubled keys moves into the first one's place. By sorting, so that a hostile object
// of many members costs n log n.
void ResolveDoubledKeys(JsonObject* object) {
  std::vector<size_t> order(object->size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    int compared = (*object)[a].first.compare((*object)[b].first);
    return compared != 0 ? compared < 0 : a < b;
  });
  std::vector<bool> dropped(object->size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i + 1;
    while (end < order.size() && (*object)[order[end]].first == (*object)[order[i]].first) ++end;
    if (end - i > 1) (*object)[order[i]].second = std::move((*object)[order[end - 1]].second);
    for (size_t j = i + 1; j < end; ++j) dropped[order[j]] = true;
    i = end;
  }
  size_t kept = 0;
  for (size_t i = 0; i < object->size(); ++i) {
    if (dropped[i]) continue;
    if (kept != i) (*object)[kept] = std::move((*object)[i]);
    ++kept;
  }
  object->resize(kept);
}

// What an integer of the text is: int64 where it fits.
Json IntegerOf(const std::string& text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec == std::errc() && read.ptr == end) return Json(value);
  return Json(JsonBigInteger::Read(text));
}

// Goes through the text in its order, so that fractions can be counted.
class Converter {
 public:
  explicit Converter(const BigIntegers& big) : big_(big) {}

  Json Convert(element from) {
    switch (from.type()) {
      case element_type::ARRAY:
        return Array(simdjson::dom::array(from));
      case element_type::OBJECT:
        return Object(simdjson::dom::object(from));
      case element_type::INT64:
        return Json(int64_t(from));
      case element_type::UINT64:
        return IntegerOf(std::to_string(uint64_t(from)));
      case element_type::DOUBLE:
        return Fraction(double(from));
      case element_type::STRING:
        return Json(std::string_view(from));
      case element_type::BOOL:
        return Json(bool(from));
      case element_type::NULL_VALUE:
        break;
    }
    return Json();
  }

 private:
  Json Array(simdjson::dom::array from) {
    JsonArray array;
    array.reserve(from.size());
    for (element item : from) array.push_back(Convert(item));
    return Json(std::move(array));
  }

  Json Object(simdjson::dom::object from) {
    JsonObject object;
    object.reserve(from.size());
    for (auto [key, item] : from) object.emplace_back(std::string(key), Convert(item));
    if (object.size() > kFewMembers || HasDoubledKeys(object)) ResolveDoubledKeys(&object);
    return Json(std::move(object));
  }

  Json Fraction(double value) {
    const size_t number = fractions_++;
    if (next_big_ == big_.size() || big_[next_big_].first != number) return Json(value);
    return IntegerOf(big_[next_big_++].second);
  }

  const BigIntegers& big_;
  size_t next_big_ = 0;
  size_t fractions_ = 0;
};

}  // namespace

Json JsonOf(element from) {
  static const BigIntegers none;
  return JsonOf(from, none);
}

Json JsonOf(element from, const BigIntegers& big) { return Converter(big).Convert(from); }

}  // namespace portico
