#include "parser/tool/nested_calls.h"

#include <algorithm>
#include <utility>

#include "text/json_writer.h"
#include "text/white_space.h"

namespace portico::parser {
namespace {

constexpr size_t kMaxTag = 512;
constexpr size_t kMaxLevels = 1000;
constexpr std::string_view kInvoke = "invoke";

using Kind = MarkerSet::Kind;

std::string NameOf(std::string_view tag) {
  size_t at = tag.find("name=");
  if (at == std::string_view::npos) return "";
  std::string_view value = tag.substr(at + 5);
  if (!value.empty() && (value[0] == '"' || value[0] == '\'')) {
    return std::string(value.substr(1, value.find(value[0], 1) - 1));
  }
  return std::string(value.substr(0, value.find_first_of(kWhiteSpace)));
}

}  // namespace

NestedCalls::Compiled::Compiled(NestedFamily from)
    : family(std::move(from)),
      text({family.mark + "<tool_call>", family.mark + "<invoke"}),
      mark({family.mark}) {}

NestedCalls::NestedCalls(std::shared_ptr<const Compiled> family, const ToolSet& tools, Sink* sink)
    : ToolParser(family->text, 2, tools, sink), family_(std::move(family)) {}

ToolParser::Next NestedCalls::Step() {
  switch (at_) {
    case At::kText:
      return StepText();
    case At::kSection:
      return StepSection();
    case At::kBody:
    case At::kValue:
      return StepInside();
  }
  return Next::kWait;
}

ToolParser::Next NestedCalls::StepText() {
  Next next;
  size_t start = 0;
  if (!FindStart(&next, &start)) return next;
  if (start == 1) {  // a call without a section, if it has a name
    std::string tag;
    size_t bytes = 0;
    bool wait = false;
    if (!ReadTag(&tag, &bytes, &wait) && wait) return Next::kWait;
    if (bytes == 0 || NameOf(tag).empty()) {
      PassText(std::max(bytes, family_->family.mark.size()));
      return Next::kGoOn;
    }
  }
  BeginCalls();
  if (start == 0) Take(family_->text.text(0).size());
  at_ = At::kSection;
  return Next::kGoOn;
}

bool NestedCalls::ReadTag(std::string* tag, size_t* bytes, bool* wait) const {
  std::string_view text = rest();
  MarkerSet::Match mark = family_->mark.At(text, final());
  *wait = mark.kind == Kind::kPartial;
  if (mark.kind != Kind::kFound) return false;
  std::string_view behind = text.substr(mark.length);
  size_t space = std::min(behind.find_first_not_of(kWhiteSpace), behind.size());
  size_t end = behind.find('>');
  *wait = end == std::string_view::npos && !final() && behind.size() <= kMaxTag;
  if (*wait && space < behind.size() && behind[space] != '<') *wait = false;
  if (end == std::string_view::npos || end > kMaxTag || behind[space] != '<') return false;
  *tag = behind.substr(space + 1, end - space - 1);
  *bytes = mark.length + end + 1;
  return true;
}

ToolParser::Next NestedCalls::StepSection() {
  if (size_t space = SpaceAhead(); space > 0) {
    Take(space);
    return Next::kGoOn;
  }
  std::string tag;
  size_t bytes = 0;
  bool wait = false;
  if (!ReadTag(&tag, &bytes, &wait)) return wait ? Next::kWait : Leave();
  if (tag == "/tool_call") {
    Take(bytes);
    return Leave();
  }
  std::string name = tag.starts_with(kInvoke) ? NameOf(tag) : "";
  if (name.empty()) return NoCall();
  Take(bytes);
  if (!call_.is_text() && call_.SetName(name)) call_.Commit();
  call_.Arguments("{");
  members_ = 0;
  levels_.clear();
  at_ = At::kBody;
  return Next::kGoOn;
}

// Inside a call: tags and text of values.
ToolParser::Next NestedCalls::StepInside() {
  MarkerSet::Match mark = family_->mark.Find(rest(), final());
  if (mark.begin > 0) {
    std::string_view text = rest().substr(0, mark.begin);
    Level* level = levels_.empty() ? nullptr : &levels_.back();
    const bool blank = text.find_first_not_of(kWhiteSpace) == std::string_view::npos;
    if (level != nullptr && level->shape == Shape::kUnknown && blank && !final() &&
        mark.kind != Kind::kFound && text.size() <= kMaxTag) {
      return Next::kWait;  // white space before a tag is none of a value
    }
    if (level != nullptr && level->shape == Shape::kUnknown && mark.kind == Kind::kFound && blank &&
        text.size() <= kMaxTag) {
      // What follows tells: a tag that closes makes it a text.
      std::string_view behind = rest().substr(mark.begin + family_->family.mark.size());
      size_t space = std::min(behind.find_first_not_of(kWhiteSpace), behind.size());
      if (space + 1 >= behind.size() && !final() && behind.size() <= kMaxTag) return Next::kWait;
      if (space + 2 > kMaxTag || !behind.substr(space).starts_with("</")) {
        Take(mark.begin);
        return Next::kGoOn;
      }
    }
    if (level != nullptr && level->shape == Shape::kUnknown) BeginText(level);
    if (level != nullptr && level->shape == Shape::kScalar) {
      out_.clear();
      value_.Push(text, &out_);
      call_.Stray(value_.TakeStray());
      call_.Arguments(out_);
    } else {
      Stray(text);
    }
    Take(mark.begin);
    return Next::kGoOn;
  }
  if (mark.kind == Kind::kPartial) return Next::kWait;
  stray_ = false;
  std::string tag;
  size_t bytes = 0;
  bool wait = false;
  if (!ReadTag(&tag, &bytes, &wait)) {
    if (wait) return Next::kWait;
    Take(family_->family.mark.size());  // a mark without a tag
    return Next::kGoOn;
  }
  if (tag == "/tool_call") {
    EndInvoke(true);
    return Next::kGoOn;
  }
  Take(bytes);
  if (tag == "/invoke") {
    EndInvoke(true);
  } else if (tag.starts_with('/')) {
    CloseTag(tag.substr(1));
  } else {
    OpenTag(tag);
  }
  return Next::kGoOn;
}

// Text of a call that stands in no value: content, without the white space behind a tag.
void NestedCalls::Stray(std::string_view text) {
  if (!stray_) text.remove_prefix(std::min(text.find_first_not_of(kWhiteSpace), text.size()));
  if (text.empty()) return;
  stray_ = true;
  call_.Stray(text);
}

void NestedCalls::BeginText(Level* level) {
  level->shape = Shape::kScalar;
  value_.Begin(level->types == nullptr ? 0 : level->types->types);
}

// The value has tags, of which this is the first.
void NestedCalls::BeginTags(Level* level, std::string_view tag) {
  const TypeSet types = level->types == nullptr ? 0 : level->types->types;
  const bool may_be_array = (types & kArrayType) != 0 || types == 0;
  const bool may_be_object = (types & kObjectType) != 0 || types == 0;
  const bool array = may_be_array && (!may_be_object || tag == "item");
  level->shape = array ? Shape::kArray : Shape::kObject;
  call_.Arguments(array ? "[" : "{");
}

void NestedCalls::OpenTag(const std::string& tag) {
  if (levels_.size() >= kMaxLevels) return;
  Level level;
  level.tag = tag.substr(0, tag.find_first_of(kWhiteSpace));
  const ValueTypes* parent = nullptr;
  Shape shape = Shape::kObject;
  int* members = &members_;
  if (levels_.empty()) {
    parent = call_.tools().Arguments(call_.name());
  } else {
    Level& outer = levels_.back();
    if (outer.shape == Shape::kScalar) return;  // a tag within a text
    if (outer.shape == Shape::kUnknown) {
      BeginTags(&outer, level.tag);
    }
    parent = outer.types;
    shape = outer.shape;
    members = &outer.members;
  }
  out_ = (*members)++ == 0 ? "" : ", ";
  if (shape == Shape::kObject) {
    AppendJsonString(level.tag, &out_);
    out_ += ": ";
    level.types = parent == nullptr ? nullptr : parent->Find(level.tag);
  } else {
    level.types = parent == nullptr ? nullptr : parent->Find("[]");
  }
  call_.Arguments(out_);
  levels_.push_back(std::move(level));
  at_ = At::kValue;
}

void NestedCalls::CloseLevel() {
  Level& level = levels_.back();
  out_.clear();
  if (level.shape == Shape::kUnknown) {
    TypeSet types = level.types == nullptr ? kStringType : level.types->types;
    if ((types & kStringType) != 0 || types == 0) {
      out_ = "\"\"";
    } else {
      out_ = (types & kArrayType) != 0 ? "[]" : (types & kObjectType) != 0 ? "{}" : "null";
    }
  } else if (level.shape == Shape::kScalar) {
    value_.End(&out_);
  } else {
    out_ = level.shape == Shape::kArray ? "]" : "}";
  }
  call_.Arguments(out_);
  levels_.pop_back();
}

void NestedCalls::CloseTag(const std::string& tag) {
  auto open = std::find_if(levels_.rbegin(), levels_.rend(),
                           [&](const Level& level) { return level.tag == tag; });
  if (open == levels_.rend()) return;
  size_t depth = static_cast<size_t>(levels_.rend() - open) - 1;
  while (levels_.size() > depth) CloseLevel();
  if (levels_.empty()) at_ = At::kBody;
}

void NestedCalls::EndInvoke(bool complete) {
  if (complete) {
    while (!levels_.empty()) CloseLevel();
    call_.Arguments("}");
  }
  EndCall(complete);
  BeginCall();
  at_ = At::kSection;
}

ToolParser::Next NestedCalls::Leave() {
  LeaveCalls();
  at_ = At::kText;
  return Next::kGoOn;
}

ToolParser::Next NestedCalls::NoCall() {
  RejectCall();
  at_ = At::kText;
  return Next::kGoOn;
}

void NestedCalls::AtEnd() {
  const At at = std::exchange(at_, At::kText);
  if (call_.idle()) return;
  if (at == At::kSection) {
    Leave();
    return;
  }
  out_.clear();
  if (!levels_.empty() && levels_.back().shape == Shape::kScalar) value_.Cut(&out_);
  call_.Arguments(out_);
  EndCall(false);
}

}  // namespace portico::parser
