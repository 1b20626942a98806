#include "parser/tool/pair_calls.h"

#include <algorithm>
#include <utility>

#include "text/white_space.h"

namespace portico::parser {
namespace {

using Kind = MarkerSet::Kind;

// White space, and line breaks that were escaped.
std::string_view TrimBreaks(std::string_view text) {
  while (true) {
    size_t begin = std::min(text.find_first_not_of(kWhiteSpace), text.size());
    text.remove_prefix(begin);
    if (!text.starts_with("\\n")) break;
    text.remove_prefix(2);
  }
  while (true) {
    text = text.substr(0, text.find_last_not_of(kWhiteSpace) + 1);
    if (!text.ends_with("\\n")) break;
    text.remove_suffix(2);
  }
  return text;
}

// A name as people give tools; other text between the markers is text.
bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= ToolParser::kMaxName &&
         name.find_first_of(" \t\r\n<>{}[]()\"',;!?") == std::string_view::npos;
}

}  // namespace

PairCalls::Compiled::Compiled(PairFamily from)
    : family(std::move(from)),
      text(JoinMarkers(JoinMarkers(family.sections, {family.call}), family.dropped),
           family.suffixed),
      starts(family.sections.size() + 1),
      section(JoinMarkers({family.call}, family.section_ends), family.suffixed),
      name({family.key, family.call_end, family.separator}, family.suffixed),
      body(JoinMarkers({family.key, family.value, family.type, family.call_end, family.call,
                        family.key_end},
                       family.section_ends),
           family.suffixed),
      key_ends({family.key_end}, family.suffixed),
      type_ends({family.type_end}, family.suffixed),
      value_ends({family.value_end, family.call_end, family.key}, family.suffixed) {}

PairCalls::PairCalls(std::shared_ptr<const Compiled> family, const ToolSet& tools, Sink* sink)
    : ToolParser(family->text, family->starts, tools, sink),
      family_(std::move(family)),
      object_(&call_),
      json_(&call_) {}

ToolParser::Next PairCalls::Step() {
  switch (at_) {
    case At::kText:
      return StepText();
    case At::kSection:
      return StepSection();
    case At::kName:
      return StepName();
    case At::kBody:
      return StepBody();
    case At::kKey:
      return StepSmall(family_->key_ends, &key_);
    case At::kType:
      return StepSmall(family_->type_ends, &type_);
    case At::kValue:
      return StepValue();
    case At::kJson:
      return StepJson();
  }
  return Next::kWait;
}

size_t PairCalls::Blank(bool* wait) const {
  std::string_view text = rest();
  size_t at = 0;
  *wait = false;
  while (at < text.size()) {
    if (kWhiteSpace.find(text[at]) != std::string_view::npos) {
      ++at;
    } else if (text.substr(at).starts_with("\\n")) {
      at += 2;
    } else {
      *wait = at == 0 && text == "\\" && !final();
      break;
    }
  }
  return at;
}

ToolParser::Next PairCalls::StepText() {
  Next next;
  size_t start = 0;
  if (!FindStart(&next, &start)) return next;
  BeginCalls();
  in_section_ = start < family_->family.sections.size();
  Take(family_->text.At(rest(), true).length);
  at_ = in_section_ ? At::kSection : At::kName;
  return Next::kGoOn;
}

ToolParser::Next PairCalls::StepSection() {
  bool wait = false;
  if (size_t blank = Blank(&wait); blank > 0) {
    Take(blank);
    return Next::kGoOn;
  }
  if (wait) return Next::kWait;
  MarkerSet::Match match = family_->section.At(rest(), final());
  if (match.kind == Kind::kPartial) return Next::kWait;
  if (match.kind != Kind::kFound) return LeaveSection();
  Take(match.length);
  if (match.marker > 0) return LeaveSection();
  at_ = At::kName;
  return Next::kGoOn;
}

ToolParser::Next PairCalls::LeaveSection() {
  LeaveCalls();
  at_ = At::kText;
  return Next::kGoOn;
}

ToolParser::Next PairCalls::StepName() {
  const PairFamily& family = family_->family;
  is_json_ = false;
  bool wait = false;
  if (size_t blank = Blank(&wait); blank > 0) {
    Take(blank);
    return Next::kGoOn;
  }
  if (wait) return Next::kWait;
  if (family.json_body && (rest()[0] == '{' || rest()[0] == '[')) {
    if (rest()[0] == '[') {
      Take(1);
      return Next::kGoOn;
    }
    json_.Begin();
    is_json_ = true;
    at_ = At::kJson;
    return Next::kGoOn;
  }
  // The name ends at a line break too; what follows must be one of its markers.
  const std::string_view text = rest().substr(0, kNameWindow);
  const bool cut = text.size() < rest().size();
  MarkerSet::Match match = family_->name.Find(text, final() || cut);
  size_t brace = family.json_body ? text.find('{') : std::string_view::npos;
  if (brace < match.begin) match = {Kind::kFound, brace, 0, 0};
  std::string_view name = TrimBreaks(text.substr(0, match.begin));
  if (match.kind != Kind::kFound) {
    // The beginning of an escaped line break, perhaps.
    if (match.begin == text.size() && name.ends_with('\\')) {
      name = TrimBreaks(name.substr(0, name.size() - 1));
    }
    const bool may_be = IsName(name) || name.empty();
    if (final() || cut || !may_be) return NoCall();
    return Next::kWait;
  }
  if (!IsName(name)) return NoCall();
  const std::string known(name);
  const bool separator = match.length > 0 && match.marker == 2;
  Take(match.begin + (separator ? match.length : 0));
  if (!call_.is_text() && call_.SetName(known)) call_.Commit();
  object_.Begin();
  keyed_ = false;
  stray_ = false;
  at_ = At::kBody;
  return Next::kGoOn;
}

ToolParser::Next PairCalls::StepBody() {
  const PairFamily& family = family_->family;
  bool wait = false;
  if (size_t blank = stray_ ? 0 : Blank(&wait); blank > 0) {
    Take(blank);
    return Next::kGoOn;
  }
  if (wait) return Next::kWait;
  MarkerSet::Match match = family_->body.At(rest(), final());
  if (match.kind == Kind::kPartial) return Next::kWait;
  const bool whole = is_json_ && match.kind == Kind::kFound && match.marker <= 2;
  if (match.kind == Kind::kFound && !whole) {
    stray_ = false;
    switch (match.marker) {
      case 0:
        EndKey();
        Take(match.length);
        type_.clear();
        at_ = At::kKey;
        return Next::kGoOn;
      case 1:
        Take(match.length);
        BeginValue();
        at_ = At::kValue;
        return Next::kGoOn;
      case 2:
        Take(match.length);
        at_ = At::kType;
        return Next::kGoOn;
      case 5:
        Take(match.length);
        return Next::kGoOn;
      default:
        EndKey();
        if (!is_json_) object_.End();
        if (match.marker == 3) Take(match.length);
        EndOne();
        return Next::kGoOn;
    }
  }
  if (family.json_body && rest()[0] == '{' && object_.count() == 0 && !is_json_ && !stray_) {
    json_.BeginArguments();
    is_json_ = true;
    at_ = At::kJson;
    return Next::kGoOn;
  }
  MarkerSet::Match ahead = family_->body.Find(rest(), final());
  size_t bytes = std::max<size_t>(whole ? match.length : 1, ahead.begin);
  if (is_json_ && !stray_ && (rest()[0] == ']' || rest()[0] == ',')) {
    Take(1);
    return Next::kGoOn;
  }
  stray_ = true;
  call_.Stray(rest().substr(0, bytes));
  Take(bytes);
  return Next::kGoOn;
}

void PairCalls::BeginValue() {
  const ValueTypes* arguments = call_.tools().Arguments(call_.name());
  const ValueTypes* found = arguments == nullptr ? nullptr : arguments->Find(key_);
  TypeSet types = found == nullptr ? 0 : found->types;
  if (types == 0 && type_ == "string") types = kStringType;
  object_.BeginValue(key_, types);
  keyed_ = false;
}

// A key without a value has an empty one.
void PairCalls::EndKey() {
  if (!keyed_ || is_json_) return;
  BeginValue();
  object_.EndValue();
}

// A key or a type, up to its end marker.
ToolParser::Next PairCalls::StepSmall(const MarkerSet& ends, std::string* out) {
  // All markers are tags. Without its end marker the key ends at the next one, or when it is too long.
  const std::string_view text = rest().substr(0, kMaxName);
  const size_t end = std::min(text.find('<'), text.size());
  MarkerSet::Match match;
  if (end == text.size()) {
    if (end < kMaxName && !final()) return Next::kWait;
  } else {
    match = ends.At(rest().substr(end), final());
    if (match.kind == Kind::kPartial && !final()) return Next::kWait;
  }
  *out = TrimBreaks(rest().substr(0, end));
  if (out == &key_) keyed_ = !key_.empty();
  Take(end + match.length);
  at_ = At::kBody;
  return Next::kGoOn;
}

ToolParser::Next PairCalls::StepValue() {
  MarkerSet::Match match = family_->value_ends.Find(rest(), final());
  if (match.begin > 0) {
    object_.Value(rest().substr(0, match.begin));
    Take(match.begin);
    return Next::kGoOn;
  }
  if (match.kind == Kind::kPartial) return Next::kWait;
  object_.EndValue();
  if (match.marker == 0) Take(match.length);
  at_ = At::kBody;
  return Next::kGoOn;
}

ToolParser::Next PairCalls::StepJson() {
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

void PairCalls::EndOne() {
  EndCall(true);
  if (in_section_) {
    BeginCall();
    at_ = At::kSection;
  } else {
    at_ = At::kText;
  }
}

ToolParser::Next PairCalls::NoCall() {
  RejectCall();
  at_ = At::kText;
  return Next::kGoOn;
}

void PairCalls::AtEnd() {
  const At at = std::exchange(at_, At::kText);
  if (call_.idle()) return;
  if (at == At::kSection) {
    LeaveSection();
    return;
  }
  if (at == At::kValue) object_.CutValue();
  if (at == At::kJson) json_.Cut();
  EndCall(false);
}

}  // namespace portico::parser
