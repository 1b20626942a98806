#include "parser/tool/tagged_calls.h"

#include <algorithm>
#include <utility>

#include "parser/tool/tag_head.h"
#include "text/white_space.h"

namespace portico::parser {
namespace {

constexpr size_t kMaxFrame = 4096;
constexpr std::string_view kCdata = "<![CDATA[";
constexpr std::string_view kCdataEnd = "]]>";

using Kind = MarkerSet::Kind;

std::vector<std::string> Starts(const TaggedFamily& family) {
  std::vector<std::string> starts = family.starts;
  if (family.bare_calls) starts.push_back(family.call);
  return starts;
}

HeadForm HeadOf(const TaggedFamily& family) {
  return {.end = family.head_end, .quotes = !family.equals};
}

}  // namespace

TaggedCalls::Compiled::Compiled(TaggedFamily from)
    : family(std::move(from)),
      text(JoinMarkers(Starts(family), family.dropped)),
      starts(Starts(family).size()),
      section(JoinMarkers(JoinMarkers({family.call}, family.ends),
                          JoinMarkers(family.noise, family.starts))),
      body(JoinMarkers({family.parameter, family.call_end},
                       JoinMarkers(family.ends, {family.call}))),
      ends(family.ends),
      value(JoinMarkers({family.parameter_end, family.call_end, family.parameter}, family.ends)) {}

TaggedCalls::TaggedCalls(std::shared_ptr<const Compiled> family, const ToolSet& tools, Sink* sink)
    : ToolParser(family->text, family->starts, tools, sink),
      family_(std::move(family)),
      object_(&call_),
      json_(&call_) {}

ToolParser::Next TaggedCalls::Step() {
  switch (at_) {
    case At::kText:
      return StepText();
    case At::kSection:
      return StepSection();
    case At::kHead:
      return StepHead();
    case At::kBody:
      return StepBody();
    case At::kJson:
      return StepJson();
    case At::kParameterHead:
      return StepParameterHead();
    case At::kValue:
      return StepValue();
    case At::kBareEnd:
      return StepBareEnd();
  }
  return Next::kWait;
}

ToolParser::Next TaggedCalls::StepText() {
  Next next;
  size_t start = 0;
  if (!FindStart(&next, &start)) return next;
  const TaggedFamily& family = family_->family;
  BeginCalls();
  in_section_ = start < family.starts.size();
  Take(family_->text.text(start).size());
  at_ = in_section_ ? At::kSection : At::kHead;
  return Next::kGoOn;
}

// Between a section's start and its end, outside calls. A candidate is open.
ToolParser::Next TaggedCalls::StepSection() {
  if (size_t space = SpaceAhead(); space > 0) {
    Take(space);
    return Next::kGoOn;
  }
  const TaggedFamily& family = family_->family;
  MarkerSet::Match match = family_->section.At(rest(), final());
  if (match.kind == Kind::kPartial) return Next::kWait;
  if (match.kind == Kind::kFound) {
    if (match.marker == 0) {
      if (call_.idle()) BeginCall();
      Take(match.length);
      at_ = At::kHead;
      return Next::kGoOn;
    }
    Take(match.length);
    return match.marker <= family.ends.size() ? LeaveSection(true) : Next::kGoOn;
  }
  if (family.json_body && rest()[0] == '{') {  // J alone, with its name in it
    json_.Begin();
    is_json_ = true;
    at_ = At::kJson;
    return Next::kGoOn;
  }
  return LeaveSection(false);
}

ToolParser::Next TaggedCalls::LeaveSection(bool complete) {
  LeaveCalls(complete);
  at_ = At::kText;
  return Next::kGoOn;
}

ToolParser::Next TaggedCalls::StepHead() {
  const TaggedFamily& family = family_->family;
  size_t end = 0;
  bool bad = false;
  if (!FindHeadEnd(rest(), HeadOf(family), final(), &end, &bad))
    return bad ? NoCall() : Next::kWait;
  std::string_view head = rest().substr(0, end);
  self_closed_ = !family.equals && TrimWhiteSpace(head).ends_with('/');
  if (self_closed_) head = head.substr(0, head.rfind('/'));
  std::string name;
  if (family.equals) {
    name = TrimWhiteSpace(head);
    if (name.size() > 1 && name.front() == '"' && name.back() == '"') {
      name = name.substr(1, name.size() - 2);
    }
  } else if (head.empty() || kWhiteSpace.find(head[0]) != std::string_view::npos) {
    name = AttributeOf(head, family.name_key, family.entities);
  }
  if (name.empty()) return NoCall();
  const std::string others =
      family.equals ? "" : OtherAttributes(head, {family.name_key, "id", "type", "index"});
  Take(end + family.head_end.size());
  if (call_.is_text()) {
  } else if (call_.SetName(name)) {
    call_.Commit();
    call_.Stray(others);
  }
  object_.Begin();
  is_json_ = false;
  stray_ = false;
  at_ = At::kBody;
  if (self_closed_) {
    object_.End();
    EndOne(true);
  }
  return Next::kGoOn;
}

void TaggedCalls::EndOne(bool complete) {
  EndCall(complete);
  if (in_section_) {
    BeginCall();
    at_ = At::kSection;
  } else {
    at_ = between() ? At::kBareEnd : At::kText;
  }
}

// Behind a call without a section: the section's end may stand there all the same.
ToolParser::Next TaggedCalls::StepBareEnd() {
  const size_t space = SpaceAhead();
  const bool near = space <= kMaxSpace;
  if (space == rest().size() && near && !final()) return Next::kWait;
  const MarkerSet::Match end = family_->ends.At(rest().substr(space), final());
  if (end.kind == Kind::kPartial && near) return Next::kWait;
  if (end.kind == Kind::kFound && near) Skip(space + end.length);
  at_ = At::kText;
  return Next::kGoOn;
}

ToolParser::Next TaggedCalls::StepBody() {
  if (size_t space = SpaceAhead(); space > 0 && !stray_) {
    Take(space);
    return Next::kGoOn;
  }
  const TaggedFamily& family = family_->family;
  MarkerSet::Match match = family_->body.At(rest(), final());
  if (match.kind == Kind::kPartial) return Next::kWait;
  if (match.kind == Kind::kFound) stray_ = false;
  if (match.kind == Kind::kFound && match.marker == 0) {
    Take(match.length);
    if (is_json_) {
      ParameterIsText();  // the arguments are whole
    } else {
      at_ = At::kParameterHead;
    }
    return Next::kGoOn;
  }
  if (match.kind == Kind::kFound) {
    if (!is_json_) object_.End();
    if (match.marker == 1) Take(match.length);
    EndOne(true);  // at an end or at the next call too, where the call's own end is missing
    return Next::kGoOn;
  }
  if (family.json_body && rest()[0] == '{' && object_.count() == 0 && !is_json_ && !stray_) {
    json_.BeginArguments();
    is_json_ = true;
    at_ = At::kJson;
    return Next::kGoOn;
  }
  // Stray text: read over to the next marker, as part of the call.
  MarkerSet::Match ahead = family_->body.Find(rest(), final());
  size_t bytes = ahead.kind == Kind::kAbsent ? rest().size() : ahead.begin;
  stray_ = true;
  call_.Stray(rest().substr(0, bytes));
  Take(bytes);
  return Next::kGoOn;
}

// J in place of parameters, or in place of a call.
ToolParser::Next TaggedCalls::StepJson() {
  size_t used = 0;
  const CallObject::Reach reach = json_.PushUntil(family_->body, rest(), final(), &used);
  Skip(used);
  if (reach == CallObject::Reach::kUnknown) return Next::kWait;
  if (reach == CallObject::Reach::kStop) {  // brackets are missing
    json_.Close();
    at_ = At::kBody;
    return Next::kGoOn;
  }
  if (json_.state() == CallObject::State::kOpen) return Next::kGoOn;
  if (json_.state() == CallObject::State::kBad && call_.pending()) return NoCall();
  json_.Close();
  at_ = At::kBody;
  return Next::kGoOn;
}

ToolParser::Next TaggedCalls::StepParameterHead() {
  const TaggedFamily& family = family_->family;
  size_t end = 0;
  bool bad = false;
  if (!FindHeadEnd(rest(), HeadOf(family), final(), &end, &bad)) {
    if (!bad) return Next::kWait;
    ParameterIsText();
    return Next::kGoOn;
  }
  std::string_view head = rest().substr(0, end);
  std::string key;
  TypeSet types = 0;
  if (family.equals) {
    key = TrimWhiteSpace(head);
    if (key.size() > 1 && key.front() == '"' && key.back() == '"')
      key = key.substr(1, key.size() - 2);
  } else {
    key = AttributeOf(head, family.key_key, family.entities);
    std::string string = AttributeOf(head, "string", family.entities);
    std::string type = AttributeOf(head, "type", family.entities);
    if (string == "true" || type == "string") types = kStringType;
    if (string == "false") types = static_cast<TypeSet>(~kStringType & 0x7F);
    if (type == "number" || type == "integer") types = kNumberType | kIntegerType;
    if (type == "boolean") types = kBooleanType;
    if (type == "null") types = kNullType;
    if (type == "object" || type == "array") types = kObjectType | kArrayType;
  }
  const std::string others =
      family.equals ? "" : OtherAttributes(head, {family.key_key, "string", "type"});
  Take(end + family.head_end.size());
  call_.Stray(others);
  if (types == 0) {
    const ValueTypes* arguments = call_.tools().Arguments(call_.name());
    const ValueTypes* found = arguments == nullptr ? nullptr : arguments->Find(key);
    if (found != nullptr) types = found->types;
    if (types == 0 && family.values_are_strings) types = kStringType;
  }
  BeginValue(key, types);
  return Next::kGoOn;
}

// A tag that is none. Before the call is committed its bytes are kept with the others.
void TaggedCalls::ParameterIsText() {
  call_.Stray(family_->family.parameter);
  stray_ = true;
  at_ = At::kBody;
}

void TaggedCalls::BeginValue(std::string_view key, TypeSet types) {
  object_.BeginValue(key, types);
  value_started_ = false;
  in_cdata_ = false;
  held_.clear();
  space_ = 0;
  at_ = At::kValue;
}

ToolParser::Next TaggedCalls::StepValue() {
  const TaggedFamily& family = family_->family;
  if (family.cdata && !in_cdata_ && !value_started_) {
    std::string_view text = rest().substr(SpaceAhead());
    const bool near = SpaceAhead() < kMaxTagHead;
    if (near && text.size() < kCdata.size() && kCdata.starts_with(text) && !final()) {
      return Next::kWait;
    }
    if (near && text.starts_with(kCdata)) {
      Take(SpaceAhead() + kCdata.size());
      in_cdata_ = true;
      value_started_ = true;
      return Next::kGoOn;
    }
  }
  if (in_cdata_) {
    std::string_view text = rest();
    size_t end = text.find(kCdataEnd);
    const bool found = end != std::string_view::npos;
    if (!found) end = final() ? text.size() : text.size() - std::min<size_t>(text.size(), 2);
    if (end == 0 && !found) return Next::kWait;
    object_.Value(text.substr(0, end));
    Take(end + (found ? kCdataEnd.size() : 0));
    if (found) in_cdata_ = false;
    return found ? Next::kGoOn : (final() ? Next::kGoOn : Next::kWait);
  }
  MarkerSet::Match match = family_->value.Find(rest(), final());
  if (match.begin > 0) {
    Value(rest().substr(0, match.begin));
    Take(match.begin);
    return Next::kGoOn;
  }
  if (match.kind == Kind::kPartial) return Next::kWait;
  EndValue();
  if (match.marker == 0) Take(match.length);
  at_ = At::kBody;
  return Next::kGoOn;
}

void TaggedCalls::Value(std::string_view text) {
  const TaggedFamily& family = family_->family;
  if (!family.trim_newline && !family.trim) {
    value_started_ = true;
    return object_.Value(text);
  }
  if (!value_started_) {
    if (family.trim) {
      text.remove_prefix(std::min(text.find_first_not_of(kWhiteSpace), text.size()));
    } else if (text.starts_with('\n')) {
      text.remove_prefix(1);
      value_started_ = true;
    }
    if (text.empty()) return;
    value_started_ = true;
  }
  // What may be the frame's waits for what follows.
  size_t end = text.size();
  if (family.trim) {
    end = text.find_last_not_of(kWhiteSpace) + 1;
  } else if (text.ends_with('\n')) {
    --end;
  }
  if (end > 0) {
    if (!held_.empty()) object_.Value(held_);
    held_.clear();
    space_ = 0;
  } else if (!family.trim && !held_.empty() && text.size() > end) {
    object_.Value(held_);
    held_.clear();
  }
  object_.Value(text.substr(0, end));
  held_.append(text.substr(end));
  space_ += text.size() - end;
  if (family.trim && space_ > kMaxFrame) {  // so much belongs to the value, and what follows of it
    object_.Value(held_);
    held_.clear();
  }
}

void TaggedCalls::EndValue() {
  held_.clear();
  object_.EndValue();
}

ToolParser::Next TaggedCalls::NoCall() {
  RejectCall();
  at_ = At::kText;
  return Next::kGoOn;
}

void TaggedCalls::AtEnd() {
  const At at = std::exchange(at_, At::kText);
  if (call_.idle()) return;
  if (at == At::kSection) {
    LeaveSection(true);
    return;
  }
  if (at == At::kParameterHead) ParameterIsText();
  if (at == At::kValue) object_.CutValue();
  if (at == At::kJson) json_.Cut();
  at_ = At::kText;
  EndCall(false);
}

}  // namespace portico::parser
