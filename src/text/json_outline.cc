#include "text/json_outline.h"

#include <array>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>

#include "text/json.h"
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

  // What comes next; 0: nothing.
  char Next() {
    SkipWhite();
    return at_ == end_ ? '\0' : *at_;
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

  // A value's text. The elements of a list and the members of an object are counted.
  std::optional<std::string_view> Value(LeftOutMember* of) {
    SkipWhite();
    const char* begin = at_;
    if (at_ == end_) return std::nullopt;
    const char* after = nullptr;
    if (*at_ == '"') {
      if (!SkipString()) return std::nullopt;
      after = at_;
    } else if (*at_ == '[' || *at_ == '{') {
      if (!SkipNested(of)) return std::nullopt;
      after = at_;
    } else {
      while (at_ < end_ && *at_ != ',' && *at_ != '}' && *at_ != ']') ++at_;
      for (after = at_; after > begin && IsWhiteSpace(after[-1]);) --after;
    }
    return std::string_view(begin, static_cast<size_t>(after - begin));
  }

 private:
  void SkipWhite() {
    while (at_ < end_ && IsWhiteSpace(*at_)) ++at_;
  }

  bool SkipNested(LeftOutMember* of) {
    const bool is_list = *at_ == '[';
    const char* first = at_ + 1;
    while (first < end_ && IsWhiteSpace(*first)) ++first;
    if (first < end_ && *first != (is_list ? ']' : '}')) {
      if (is_list) of->first = *first;
      of->items = 1;
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
        of->items += commas;
        return true;
      }
    }
    return false;
  }

  const char* at_;
  const char* end_;
};

// Gives each member of an object to `take`. False where it is none.
template <typename Take>
bool ReadMembers(OutlineReader& reader, Take take) {
  if (!reader.Take('{')) return false;
  if (reader.Take('}')) return true;
  do {
    const auto name = reader.Name();
    if (!name || !reader.Take(':')) return false;
    LeftOutMember member{.name = *name, .value = {}};
    const auto value = reader.Value(&member);
    if (!value || value->empty()) return false;
    member.value = *value;
    member.kind = value->front();
    take(member);
  } while (reader.Take(','));
  return reader.Take('}');
}

// Names are compared as they are read: an escape in one is another spelling.
std::string NameAsRead(std::string_view written) {
  const bool plain = written.find('\\') == written.npos;
  if (plain) return std::string(written);
  const StatusOr<Json> read = Json::Parse('"' + std::string(written) + '"');
  return read.ok() && read->is_string() ? read->as_string() : std::string(written);
}

// The members that are left out, by object; of doubled ones the last.
class LeftOutList {
 public:
  void BeginObject() { places_.clear(); }
  // False: it takes the place of one that is doubled.
  bool Add(LeftOutMember member) {
    const auto [place, is_new] = places_.try_emplace(NameAsRead(member.name), members_.size());
    if (is_new) {
      members_.push_back(member);
      return true;
    }
    LeftOutMember& doubled = members_[place->second];
    // Of two spellings the one without escapes, by which it is known.
    if (doubled.name.find('\\') == doubled.name.npos) member.name = doubled.name;
    return std::exchange(doubled, member).kind == kDropped;
  }
  // One of that name follows which stays.
  void Drop(std::string_view name) {
    if (places_.empty()) return;
    const auto place = places_.find(NameAsRead(name));
    if (place != places_.end()) members_[place->second].kind = kDropped;
  }
  std::vector<LeftOutMember> Take() {
    std::erase_if(members_, [](const LeftOutMember& member) { return member.kind == kDropped; });
    return std::move(members_);
  }

 private:
  static constexpr char kDropped = 0;  // no JSON begins with it

  std::vector<LeftOutMember> members_;
  std::unordered_map<std::string, size_t> places_;  // of the object that is read
};

// Of members in the object that `text` ends with.
void AppendMember(const LeftOutMember& member, std::string* text) {
  if (text->back() != '{') *text += ',';
  text->append("\"").append(member.name).append("\":").append(member.value);
}

}  // namespace

std::optional<JsonOutline> OutlineOf(std::string_view body,
                                     const std::function<bool(std::string_view name)>& is_long) {
  OutlineReader reader(body);
  JsonOutline outline;
  LeftOutList left_out;
  outline.text = "{";
  const bool whole = ReadMembers(reader, [&](const LeftOutMember& member) {
    if (!is_long(member.name) && member.value.size() <= kMaxOutlinedValue) {
      left_out.Drop(member.name);
      AppendMember(member, &outline.text);
    } else if (left_out.Add(member)) {
      AppendMember({.name = member.name, .value = "null"}, &outline.text);
    }
  });
  if (!whole || outline.text.size() == 1) return std::nullopt;
  outline.text += '}';
  outline.left_out = left_out.Take();
  return outline;
}

std::optional<JsonOutline> OutlineOfEach(
    std::string_view value, const std::function<bool(std::string_view name)>& is_needed) {
  OutlineReader reader(value);
  JsonOutline outline;
  LeftOutList left_out;
  std::vector<LeftOutMember> needed;  // of one object
  const auto read_object = [&] {
    needed.clear();
    left_out.BeginObject();
    const bool whole = ReadMembers(reader, [&](const LeftOutMember& member) {
      if (is_needed(member.name)) {
        std::erase_if(needed, [&](const auto& before) { return before.name == member.name; });
      }
      if (member.value.size() > kMaxOutlinedValue) {
        left_out.Add(member);
        return;
      }
      left_out.Drop(member.name);
      if (is_needed(member.name)) needed.push_back(member);
    });
    outline.text += '{';
    for (const LeftOutMember& member : needed) AppendMember(member, &outline.text);
    outline.text += '}';
    return whole;
  };
  if (reader.Next() == '{') {
    if (!read_object()) return std::nullopt;
    outline.left_out = left_out.Take();
    return outline;
  }
  if (!reader.Take('[')) return std::nullopt;
  outline.text = "[";
  if (!reader.Take(']')) {
    do {
      if (outline.text.size() > 1) outline.text += ',';
      if (reader.Next() == '{') {
        if (!read_object()) return std::nullopt;
        continue;
      }
      LeftOutMember element;
      const auto text = reader.Value(&element);
      if (!text || text->empty() || text->size() > kMaxOutlinedValue) return std::nullopt;
      outline.text += *text;
    } while (reader.Take(','));
    if (!reader.Take(']')) return std::nullopt;
  }
  outline.text += ']';
  outline.left_out = left_out.Take();
  return outline;
}

}  // namespace portico
