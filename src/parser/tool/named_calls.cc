#include "parser/tool/named_calls.h"

#include <algorithm>
#include <utility>

#include "text/white_space.h"

namespace portico::parser {
namespace {

using Kind = MarkerSet::Kind;

bool AllDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

NamedCalls::Compiled::Compiled(NamedFamily from)
    : family(std::move(from)),
      text(JoinMarkers({family.section, family.call}, family.dropped)),
      section(JoinMarkers({family.call, family.section_end}, family.noise)),
      before(JoinMarkers({family.before_name}, family.separators)),
      separators(family.separators),
      ends({family.call_end, family.call, family.section_end}) {}

NamedCalls::NamedCalls(std::shared_ptr<const Compiled> family, const ToolSet& tools, Sink* sink)
    : ToolParser(family->text, 2, tools, sink), family_(std::move(family)), object_(&call_) {}

ToolParser::Next NamedCalls::Step() {
  switch (at_) {
    case At::kText:
      return StepText();
    case At::kSection:
      return StepSection();
    case At::kName:
      return StepName();
    case At::kArguments:
      return StepArguments();
    case At::kAfterArguments:
      return StepAfter();
  }
  return Next::kWait;
}

ToolParser::Next NamedCalls::StepText() {
  Next next;
  size_t start = 0;
  if (!FindStart(&next, &start)) return next;
  BeginCalls();
  prefix_seen_ = false;
  Take(family_->text.text(start).size());
  at_ = start == 0 ? At::kSection : At::kName;
  return Next::kGoOn;
}

ToolParser::Next NamedCalls::StepSection() {
  if (size_t space = SpaceAhead(); space > 0) {
    Take(space);
    return Next::kGoOn;
  }
  MarkerSet::Match match = family_->section.At(rest(), final());
  if (match.kind == Kind::kPartial) return Next::kWait;
  if (match.kind != Kind::kFound) return LeaveSection();
  Take(match.length);
  if (match.marker == 1) return LeaveSection();
  if (match.marker > 1) return Next::kGoOn;
  prefix_seen_ = false;
  at_ = At::kName;
  return Next::kGoOn;
}

ToolParser::Next NamedCalls::LeaveSection() {
  LeaveCalls();
  at_ = At::kText;
  return Next::kGoOn;
}

ToolParser::Next NamedCalls::StepName() {
  const NamedFamily& family = family_->family;
  const std::string_view text = rest().substr(0, kNameWindow);
  const bool cut = text.size() < rest().size();
  if (!family.before_name.empty() && !prefix_seen_) {
    MarkerSet::Match prefix = family_->before.At(text, final());
    if (prefix.kind == Kind::kPartial) return Next::kWait;
    if (prefix.kind == Kind::kFound && prefix.marker == 0) {
      // Arguments behind it make it the name of a tool, with its separator.
      const std::string_view behind = text.substr(prefix.length);
      const size_t ahead = behind.find_first_not_of(kWhiteSpace);
      if (ahead == std::string_view::npos && !cut && !final()) return Next::kWait;
      prefix_seen_ = true;
      if (ahead != std::string_view::npos && behind[ahead] == '{') return Next::kGoOn;
      Take(prefix.length);
      return Next::kGoOn;
    }
    prefix_seen_ = true;
  }
  if (text.find_first_not_of(kWhiteSpace) == std::string_view::npos && text.size() < kMaxName &&
      !final()) {
    return Next::kWait;
  }
  MarkerSet::Match match =
      family_->separators.Find(text, final() || cut, std::min(SpaceAhead(), text.size()));
  if (match.kind != Kind::kFound) {
    if (!final() && text.size() <= kMaxName) return Next::kWait;
    return NoCall();
  }
  std::string name(TrimWhiteSpace(text.substr(0, match.begin)));
  if (name.empty() || match.begin > kMaxName ||
      name.find_first_of(" \t\r\n<>{}\"'") != std::string::npos) {
    return NoCall();
  }
  nameless_ = false;
  Take(match.begin + match.length);
  if (!call_.is_text() && !SetName(name)) return NoCall();
  object_.BeginArguments();
  at_ = At::kArguments;
  return Next::kGoOn;
}

// False: no name at all.
bool NamedCalls::SetName(std::string_view name) {
  if (!family_->family.counted) {
    call_.SetName(name);
    return true;
  }
  const std::string id(name);
  if (AllDigits(name)) {  // which is no id: the next turn's template writes ids as headers
    std::string_view only = call_.tools().Only();
    if (!only.empty()) {
      call_.SetName(only);
    } else {
      nameless_ = true;
      arguments_.clear();
    }
    return true;
  }
  size_t colon = name.rfind(':');
  if (colon == std::string_view::npos || !AllDigits(name.substr(colon + 1))) {
    // A tool's name without a number.
    name = call_.tools().Resolve(name);
    return call_.tools().Arguments(name) != nullptr && call_.SetName(name);
  }
  name = name.substr(0, colon);
  if (name.starts_with("functions.")) name.remove_prefix(10);
  if (name.empty()) return false;
  call_.SetName(name, id);
  return true;
}

ToolParser::Next NamedCalls::StepArguments() {
  const NamedFamily& family = family_->family;
  std::string_view text = rest();
  // A fence stands in front of the arguments; within them it is a part of them, or makes them none.
  if (family.fence && call_.pending() && object_.untouched()) {
    std::string_view ahead = text.substr(SpaceAhead());
    if (ahead.empty() && !final() && text.size() < 64) return Next::kWait;
    constexpr std::string_view kFence = "```json";
    if (ahead.size() < kFence.size() && kFence.starts_with(ahead) && !ahead.empty() && !final()) {
      return Next::kWait;
    }
    if (ahead.starts_with("```")) {
      Take(SpaceAhead() + (ahead.starts_with(kFence) ? kFence.size() : 3));
      return Next::kGoOn;
    }
  }
  MarkerSet::Match match = family_->ends.Find(text, final());
  text = text.substr(0, match.begin);
  if (text.empty()) {
    if (match.kind != Kind::kFound) return Next::kWait;
    if (nameless_ && call_.pending()) NameByKeys();
    if (call_.pending() && !call_.has_name()) return NoCall();
    if (call_.pending()) call_.Commit();
    if (!object_.arguments_done() && call_.committed() && !object_.untouched()) object_.Close();
    at_ = At::kAfterArguments;
    return Next::kGoOn;
  }
  if (nameless_) {
    arguments_.append(text);
    Take(text.size());
    return Next::kGoOn;
  }
  Skip(object_.Push(text));
  if (object_.state() == CallObject::State::kBad) return NoCall();
  if (object_.state() == CallObject::State::kDone) at_ = At::kAfterArguments;
  return Next::kGoOn;
}

// The arguments of a nameless call are whole: whose are they?
void NamedCalls::NameByKeys() {
  StatusOr<Json> value = Json::Parse(TrimWhiteSpace(arguments_));
  std::string_view name = value.ok() ? call_.tools().WithKeys(*value) : std::string_view();
  nameless_ = false;
  if (name.empty() || !call_.SetName(name)) return call_.Reject();
  call_.Arguments(TrimWhiteSpace(arguments_));
}

ToolParser::Next NamedCalls::StepAfter() {
  if (size_t space = SpaceAhead(); space > 0) {
    Take(space);
    return Next::kGoOn;
  }
  if (family_->family.fence && rest()[0] == '`') {
    Take(1);
    return Next::kGoOn;
  }
  MarkerSet::Match match = family_->ends.At(rest(), final());
  if (match.kind == Kind::kPartial) return Next::kWait;
  if (match.kind == Kind::kFound) {
    if (match.marker == 0) Take(match.length);
    EndOne();
    return Next::kGoOn;
  }
  // Text that belongs to nobody.
  EndCall(true);
  at_ = At::kText;
  return Next::kGoOn;
}

void NamedCalls::EndOne() {
  EndCall(true);
  BeginCall();
  at_ = At::kSection;
}

ToolParser::Next NamedCalls::NoCall() {
  if (call_.committed()) {
    object_.Close();
    EndCall(true);
  } else {
    call_.Reject();
    EndCall(false);
  }
  at_ = At::kText;
  return Next::kGoOn;
}

void NamedCalls::AtEnd() {
  const At at = std::exchange(at_, At::kText);
  if (call_.idle()) return;
  if (at == At::kSection) {
    LeaveSection();
    return;
  }
  if (at == At::kArguments) object_.Cut();
  EndCall(at == At::kAfterArguments);
}

}  // namespace portico::parser
