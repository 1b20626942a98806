#include "parser/tool/json_calls.h"

#include <algorithm>
#include <utility>

#include "text/white_space.h"

namespace portico::parser {
namespace {

std::vector<std::string> TextMarkers(const JsonFamily& family) {
  std::vector<std::string> markers = family.starts;
  if (family.bare || family.bare_first) {
    markers.push_back("{");
    markers.push_back("[");
  }
  markers.insert(markers.end(), family.dropped.begin(), family.dropped.end());
  return markers;
}

std::vector<std::string> HeaderMarkers(const JsonFamily& family) {
  std::vector<std::string> markers = {family.header_end};
  markers.insert(markers.end(), family.dropped.begin(), family.dropped.end());
  return markers;
}

}  // namespace

JsonCalls::Compiled::Compiled(JsonFamily from)
    : family(std::move(from)),
      text(TextMarkers(family)),
      starts(family.starts.size() + (family.bare || family.bare_first ? 2 : 0)),
      ends(family.ends),
      stops(JoinMarkers(family.ends, family.starts)),
      name_ends(family.name_ends),
      headers(HeaderMarkers(family)) {}

JsonCalls::JsonCalls(std::shared_ptr<const Compiled> family, const ToolSet& tools, Sink* sink)
    : ToolParser(family->text, family->starts, tools, sink),
      family_(std::move(family)),
      object_(&call_) {}

ToolParser::Next JsonCalls::Step() {
  switch (at_) {
    case At::kText:
      return StepText();
    case At::kHeader:
      return StepHeader();
    case At::kOpen:
      return StepOpen();
    case At::kName:
      return StepName();
    case At::kObject:
      return StepObject();
    case At::kListNext:
      return StepListNext();
    case At::kAfter:
      return StepAfter();
  }
  return Next::kWait;
}

ToolParser::Next JsonCalls::StepText() {
  Next next;
  size_t start = 0;
  if (!FindStart(&next, &start)) return next;
  const JsonFamily& family = family_->family;
  bare_ = start >= family.starts.size();
  if (bare_ && family.bare_first && !family.bare && !between()) {
    PassText(1);
    return Next::kGoOn;
  }
  BeginCalls();
  object_.Begin();
  in_list_ = false;
  named_ = false;
  if (!bare_) Take(family.starts[start].size());
  const bool header =
      !bare_ && !family.header_end.empty() && family.starts[start] != family.header_end;
  at_ = header ? At::kHeader : At::kOpen;
  return Next::kGoOn;
}

ToolParser::Next JsonCalls::StepHeader() {
  const std::string_view text = rest().substr(0, kNameWindow);
  const bool cut = text.size() < rest().size();
  MarkerSet::Match match = family_->headers.Find(text, final() || cut);
  const std::string_view name = TrimWhiteSpace(text.substr(0, match.begin));
  const bool is_name = name.find_first_of(" \t\r\n{}\"") == std::string_view::npos;
  if (match.kind == MarkerSet::Kind::kFound && match.marker == 0 && is_name) {
    Take(match.begin + match.length);
    at_ = At::kOpen;
    return Next::kGoOn;
  }
  if (match.kind == MarkerSet::Kind::kFound && match.begin == 0) {
    DropCall();
    at_ = At::kText;
    return Next::kGoOn;
  }
  if (match.kind != MarkerSet::Kind::kFound && !final() && rest().size() <= kMaxName) {
    return Next::kWait;
  }
  return NoCall();
}

ToolParser::Next JsonCalls::StepOpen() {
  size_t space = SpaceAhead();
  if (space > 0) {
    Take(space);
    return Next::kGoOn;
  }
  char c = rest()[0];
  if (c == '[' && !in_list_) {
    Take(1);
    in_list_ = true;
    return Next::kGoOn;
  }
  if (c == ']' && in_list_ && !bare_) {  // an empty list
    Take(1);
    return NoCall();
  }
  if (c == '{') {
    BeginObject();
    return Next::kGoOn;
  }
  if (family_->family.fence && c == '`' && !in_list_) {
    constexpr std::string_view kFence = "```json";
    std::string_view text = rest();
    if (text.size() < kFence.size() && !final() && kFence.starts_with(text)) return Next::kWait;
    if (text.starts_with("```")) {
      Take(text.starts_with(kFence) ? kFence.size() : 3);
      return Next::kGoOn;
    }
  }
  if (!family_->name_ends.empty() && !in_list_ && !bare_) {
    at_ = At::kName;
    return Next::kGoOn;
  }
  return NoCall();
}

ToolParser::Next JsonCalls::StepName() {
  const std::string_view text = rest().substr(0, kNameWindow);
  const bool cut = text.size() < rest().size();
  MarkerSet::Match match = family_->name_ends.Find(text, final() || cut);
  size_t brace = text.find('{');
  if (brace < match.begin) {
    match = {MarkerSet::Kind::kFound, brace, 0, 0};
  } else if (match.kind != MarkerSet::Kind::kFound) {
    if (!final() && text.size() <= kMaxName) return Next::kWait;
    return NoCall();
  }
  std::string_view name = text.substr(0, match.begin);
  size_t end = name.find_first_of(" \t\r\n[");
  if (name.empty() || match.begin > kMaxName) return NoCall();
  // An id is a word; other text between the markers is none.
  if (call_.has_name() && name.find_first_of(" \t\r\n") != std::string_view::npos) return NoCall();
  if (end != std::string_view::npos && !call_.has_name()) {
    if (name.find_first_not_of(" \t\r\n", end) != std::string_view::npos) return NoCall();
    name = name.substr(0, end);
  }
  if (!call_.has_name() && !call_.is_text()) call_.SetName(name);
  const bool more = match.length > 0 && family_->name_ends.text(match.marker) == "[CALL_ID]";
  Take(match.begin + match.length);
  if (more) return Next::kGoOn;  // an id, up to [ARGS]
  named_ = true;
  object_.BeginArguments();
  at_ = At::kObject;
  return Next::kGoOn;
}

void JsonCalls::BeginObject() {
  const JsonFamily& family = family_->family;
  object_.Begin({family.key_is_name, family.tool_name, family.python, bare_});
  at_ = At::kObject;
}

ToolParser::Next JsonCalls::StepObject() {
  size_t used = 0;
  const CallObject::Reach reach = object_.PushUntil(family_->stops, rest(), final(), &used);
  Skip(used);
  if (reach == CallObject::Reach::kUnknown) return Next::kWait;
  if (reach == CallObject::Reach::kStop) {  // brackets are missing
    object_.Close();
    at_ = At::kAfter;
    in_list_ = false;
    return Next::kGoOn;
  }
  switch (object_.state()) {
    case CallObject::State::kOpen:
      break;
    case CallObject::State::kBad:
      return NoCall();
    case CallObject::State::kDone:
      at_ = in_list_ ? At::kListNext : At::kAfter;
      if (in_list_) {
        if (call_.pending() && !call_.has_name()) return NoCall();
        EndCall(true);
        BeginCall();
      }
      break;
  }
  return Next::kGoOn;
}

ToolParser::Next JsonCalls::StepListNext() {
  char c = rest()[0];
  if (SpaceAhead() > 0) {
    Take(SpaceAhead());
    return Next::kGoOn;
  }
  if (c == ',' || c == ';') {
    Take(1);
    return Next::kGoOn;
  }
  if (c == '{') {
    BeginObject();
    return Next::kGoOn;
  }
  if (c == ']') {
    Take(1);
    in_list_ = false;
    at_ = At::kAfter;
    return Next::kGoOn;
  }
  MarkerSet::Match end = family_->ends.At(rest(), final());
  if (end.kind == MarkerSet::Kind::kPartial) return Next::kWait;
  if (end.kind == MarkerSet::Kind::kFound) {
    in_list_ = false;
    at_ = At::kAfter;
    return Next::kGoOn;
  }
  return NoCall();
}

// Behind an object or a list.
ToolParser::Next JsonCalls::StepAfter() {
  std::string_view text = rest();
  size_t space = SpaceAhead();
  if (space == text.size() && !final() && space <= kMaxSpace) return Next::kWait;
  std::string_view behind = text.substr(space);
  MarkerSet::Match end = family_->ends.At(behind, final());
  if (end.kind == MarkerSet::Kind::kPartial && space <= kMaxSpace) return Next::kWait;
  if (end.kind == MarkerSet::Kind::kFound) {
    Take(space + end.length);
    return ToText(true);
  }
  if (family_->family.fence && behind.starts_with('`')) {
    if (behind.size() < 3 && !final() && std::string_view("```").starts_with(behind)) {
      return Next::kWait;
    }
    if (behind.starts_with("```")) {
      Take(space + 3);
      return Next::kGoOn;
    }
  }
  if (bare_ && (behind.starts_with(';') || behind.starts_with(','))) {
    size_t skip = 1 + std::min(behind.substr(1).find_first_not_of(" \t\r\n"), behind.size() - 1);
    if (skip == behind.size() && !final() && skip <= kMaxSpace) return Next::kWait;
    if (skip < behind.size() && behind[skip] == '{') {
      EndCall(true);
      BeginCall();
      Take(space + skip);
      BeginObject();
      return Next::kGoOn;
    }
  }
  if (!bare_ && behind.starts_with(';')) {
    EndCall(true);
    BeginCall();
    Take(space + 1);
    at_ = At::kOpen;
    return Next::kGoOn;
  }
  if (!bare_ && !family_->family.ends.empty() && behind.starts_with('{')) {
    EndCall(true);
    BeginCall();
    Take(space);
    BeginObject();
    return Next::kGoOn;
  }
  if (family_->family.needs_end) call_.Doubt();
  return ToText(true);
}

ToolParser::Next JsonCalls::NoCall() {
  if (call_.pending()) call_.Reject();
  if (call_.committed()) object_.Close();
  return ToText(object_.arguments_done() || named_);
}

ToolParser::Next JsonCalls::ToText(bool complete) {
  if (!call_.idle()) {
    if (call_.pending() && !call_.has_name() && called()) {
      DropCall();
    } else {
      EndCall(complete);
    }
  }
  at_ = At::kText;
  in_list_ = false;
  return Next::kGoOn;
}

void JsonCalls::AtEnd() {
  const At at = std::exchange(at_, At::kText);
  if (call_.idle()) return;
  const bool complete = at == At::kAfter;
  if (complete && family_->family.needs_end) call_.Doubt();
  if (at == At::kObject) object_.Cut();
  if (call_.pending() && !call_.has_name() && called() &&
      (at == At::kListNext || at == At::kAfter)) {
    return DropCall();
  }
  EndCall(complete);
}

}  // namespace portico::parser
