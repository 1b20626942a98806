#include "text/json_outline.h"

#include <array>
#include <cstring>

#include "text/white_space.h"

namespace portico {
namespace {

// What ends a run of bytes inside a list or an object.
constexpr auto kOutlineMarks = [] {
  std::array<bool, 256> marks{};
  for (const char c : {'"', '[', ']', '{', '}', ','}) marks[static_cast<unsigned char>(c)] = true;
  return marks;
}();

class OutlineReader {
 public:
  explicit OutlineReader(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  bool Take(char c) {
    SkipWhite();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  // A string from its first quote to behind its last one.
  bool SkipString() {
    for (++at_; at_ < end_;) {
      at_ = static_cast<const char*>(std::memchr(at_, '"', static_cast<size_t>(end_ - at_)));
      if (at_ == nullptr) break;
      size_t slashes = 0;  // the quote that begins the string ends the run
      for (const char* before = at_ - 1; *before == '\\'; --before) ++slashes;
      ++at_;
      if (slashes % 2 == 0) return true;
    }
    at_ = end_;
    return false;
  }

  std::optional<std::string_view> Name() {
    SkipWhite();
    if (at_ == end_ || *at_ != '"') return std::nullopt;
    const char* begin = at_;
    if (!SkipString()) return std::nullopt;
    return std::string_view(begin + 1, static_cast<size_t>(at_ - begin) - 2);
  }

  // A value's text; the elements of a list are counted.
  std::optional<std::string_view> Value(LeftOutMember* list) {
    SkipWhite();
    const char* begin = at_;
    if (at_ == end_) return std::nullopt;
    if (*at_ == '"') {
      if (!SkipString()) return std::nullopt;
    } else if (*at_ == '[' || *at_ == '{') {
      if (!SkipNested(*at_ == '[' ? list : nullptr)) return std::nullopt;
    } else {
      while (at_ < end_ && *at_ != ',' && *at_ != '}') ++at_;
    }
    return std::string_view(begin, static_cast<size_t>(at_ - begin));
  }

 private:
  void SkipWhite() {
    while (at_ < end_ && IsWhiteSpace(*at_)) ++at_;
  }

  bool SkipNested(LeftOutMember* list) {
    if (list != nullptr) {
      const char* first = at_ + 1;
      while (first < end_ && IsWhiteSpace(*first)) ++first;
      if (first < end_ && *first != ']') {
        list->first = *first;
        list->items = 1;
      }
    }
    size_t depth = 0;
    size_t commas = 0;
    while (at_ < end_) {
      const char c = *at_;
      if (!kOutlineMarks[static_cast<unsigned char>(c)]) {
        ++at_;
        continue;
      }
      if (c == '"') {
        if (!SkipString()) return false;
        continue;
      }
      ++at_;
      if (c == ',') {
        commas += depth == 1;
      } else if (c == '[' || c == '{') {
        ++depth;
      } else if (--depth == 0) {
        if (list != nullptr) list->items += commas;
        return true;
      }
    }
    return false;
  }

  const char* at_;
  const char* end_;
};

}  // namespace

std::optional<JsonOutline> OutlineOf(std::string_view body,
                                     const std::function<bool(std::string_view name)>& is_long) {
  OutlineReader reader(body);
  JsonOutline outline;
  outline.text = "{";
  if (!reader.Take('{')) return std::nullopt;
  if (reader.Take('}')) return std::nullopt;
  do {
    const auto name = reader.Name();
    if (!name || !reader.Take(':')) return std::nullopt;
    LeftOutMember member{.name = *name};
    const auto value = reader.Value(&member);
    if (!value || value->empty()) return std::nullopt;
    member.kind = value->front();
    if (is_long(*name) || value->size() > kMaxOutlinedValue) {
      outline.left_out.push_back(member);
      continue;
    }
    if (outline.text.size() > 1) outline.text += ',';
    outline.text.append("\"").append(*name).append("\":").append(*value);
  } while (reader.Take(','));
  if (!reader.Take('}')) return std::nullopt;
  outline.text += '}';
  return outline;
}

}  // namespace portico
