#include "parser/tool/python_calls.h"

#include <algorithm>
#include <utility>

#include "text/json_writer.h"

namespace portico::parser {
namespace {

using Kind = MarkerSet::Kind;

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-' || static_cast<unsigned char>(c) >= 0x80;
}

size_t NameBytes(std::string_view text) {
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), IsNameByte) - text.begin());
}

// Whether a Python literal may begin so.
bool BeginsValue(char c) {
  return std::string_view("\"'[({-+.0123456789TFNtfn").find(c) != std::string_view::npos;
}

std::vector<std::string> TextMarkers(const PythonFamily& family) {
  std::vector<std::string> markers = family.starts;
  if (family.bare) markers.push_back("[");
  markers.insert(markers.end(), family.dropped.begin(), family.dropped.end());
  return markers;
}

}  // namespace

PythonCalls::Compiled::Compiled(PythonFamily from)
    : family(std::move(from)),
      text(TextMarkers(family)),
      starts(family.starts.size() + (family.bare ? 1 : 0)),
      ends(family.ends) {}

PythonCalls::PythonCalls(std::shared_ptr<const Compiled> family, const ToolSet& tools, Sink* sink)
    : ToolParser(family->text, family->starts, tools, sink),
      family_(std::move(family)),
      value_(LiteralRelay::Options{.python = true, .inner_quotes = true}),
      object_(&call_) {}

ToolParser::Next PythonCalls::Step() {
  if (at_ != At::kText && at_ != At::kValue && at_ != At::kObject && at_ != At::kEnd) {
    if (size_t space = SpaceAhead(); space > 0) {
      Take(space);
      return Next::kGoOn;
    }
  }
  switch (at_) {
    case At::kText:
      return StepText();
    case At::kOpen:
      return StepOpen();
    case At::kName:
      return StepName();
    case At::kKey:
      return StepKey();
    case At::kValue:
      return StepValue();
    case At::kAfterValue:
      return StepAfterValue();
    case At::kAfterCall:
      return StepAfterCall();
    case At::kObject:
      return StepObject();
    case At::kEnd:
      return StepEnd();
  }
  return Next::kWait;
}

ToolParser::Next PythonCalls::StepText() {
  Next next;
  size_t start = 0;
  if (!FindStart(&next, &start)) return next;
  BeginCalls();
  bare_ = start >= family_->family.starts.size();
  brackets_ = false;
  if (!bare_) Take(family_->text.text(start).size());
  at_ = At::kOpen;
  return Next::kGoOn;
}

ToolParser::Next PythonCalls::StepOpen() {
  char c = rest()[0];
  if (c == '[' && !brackets_) {
    Take(1);
    brackets_ = true;
    return Next::kGoOn;
  }
  if (c == '{' && family_->family.json) {
    object_.Begin({false, false, true, bare_});
    at_ = At::kObject;
    return Next::kGoOn;
  }
  if (!brackets_ && !family_->family.lines) return NoCall();
  at_ = At::kName;
  return Next::kGoOn;
}

ToolParser::Next PythonCalls::StepName() {
  std::string_view text = rest();
  size_t end = NameBytes(text);
  if (end > kMaxName) return NoCall();
  if (end == text.size()) return final() ? NoCall() : Next::kWait;
  if (end == 0 || text[end] != '(' || (text[0] >= '0' && text[0] <= '9')) return NoCall();
  std::string name(text.substr(0, end));
  Take(end + 1);
  if (!call_.is_text()) call_.SetName(name);
  keys_ = 0;
  at_ = At::kKey;
  return Next::kGoOn;
}

ToolParser::Next PythonCalls::StepKey() {
  std::string_view text = rest();
  if (text[0] == ')') {
    if (call_.pending()) call_.Commit();
    Take(1);
    EndOne();
    return Next::kGoOn;
  }
  size_t end = NameBytes(text);
  size_t equals = end;
  while (equals < text.size() && equals < end + kMaxSpace && text[equals] == ' ') ++equals;
  if (equals == text.size() && !final() && text.size() <= kMaxName + kMaxSpace) return Next::kWait;
  if (end == 0 || equals == text.size() || text[equals] != '=') {
    if (!call_.committed()) return NoCall();
    key_ = "argument_" + std::to_string(keys_ + 1);  // a value without a name
  } else {
    // The first value decides whether this is a call.
    size_t value = equals + 1;
    while (value < text.size() && value < equals + kMaxSpace && text[value] == ' ') ++value;
    if (value == text.size() && !final()) return Next::kWait;
    if (call_.pending() && (value == text.size() || !BeginsValue(text[value]))) return NoCall();
    key_ = text.substr(0, end);
    Take(value);
  }
  if (call_.pending()) call_.Commit();
  out_ = keys_++ == 0 ? "{" : ", ";
  AppendJsonString(key_, &out_);
  out_ += ": ";
  call_.Arguments(out_);
  value_.Reset();
  at_ = At::kValue;
  return Next::kGoOn;
}

ToolParser::Next PythonCalls::StepValue() {
  if (size_t space = SpaceAhead(); space > 0 && value_.empty()) {
    Take(space);
    return Next::kGoOn;
  }
  std::string_view text = rest();
  const bool until_end = (value_.broken() || value_.has_inner_quotes()) && !family_->ends.empty();
  bool last = final();
  if (until_end) {
    MarkerSet::Match match = family_->ends.Find(text, final());
    text = text.substr(0, match.begin);
    if (text.empty() && match.kind != Kind::kFound) return Next::kWait;
    last = last || match.kind == Kind::kFound;
  }
  out_.clear();
  // A value that stands where none is.
  const bool missing = value_.empty() && !text.empty() && (text[0] == ',' || text[0] == ')');
  size_t used = missing ? 0 : value_.Push(text, &out_, last);
  const bool ended = used == 0 && (value_.broken() || text.empty());
  if (!value_.done() && !ended && !missing) {
    call_.Arguments(out_);
    if (used == 0) return Next::kWait;
    Take(used);
    return Next::kGoOn;
  }
  if (!value_.done()) value_.Close(&out_);
  call_.Arguments(out_);
  Take(used);
  at_ = At::kAfterValue;
  return Next::kGoOn;
}

ToolParser::Next PythonCalls::StepAfterValue() {
  char c = rest()[0];
  if (c == ',') {
    Take(1);
    at_ = At::kKey;
    return Next::kGoOn;
  }
  if (c == ')') {
    call_.Arguments("}");
    Take(1);
    EndOne();
    return Next::kGoOn;
  }
  // The call ends here: without its bracket, or with text behind a value.
  MarkerSet::Match match = family_->ends.At(rest(), final());
  if (match.kind == Kind::kPartial) return Next::kWait;
  call_.Arguments("}");
  if (c == ']' && brackets_) {
    EndOne();
    return Next::kGoOn;
  }
  EndCall(true);
  if (match.kind == Kind::kFound) Skip(match.length);
  at_ = At::kText;
  return Next::kGoOn;
}

void PythonCalls::EndOne() {
  if (keys_ > 0 && at_ == At::kKey) call_.Arguments("}");  // a comma stood before the bracket
  EndCall(true);
  BeginCall();
  at_ = At::kAfterCall;
}

// A candidate is open, with what stands between calls.
ToolParser::Next PythonCalls::StepAfterCall() {
  char c = rest()[0];
  if (c == ',' || c == ';') {
    Take(1);
    at_ = family_->family.json && brackets_ ? At::kOpen : At::kName;
    return Next::kGoOn;
  }
  if (c == ']' && brackets_) {
    Take(1);
    at_ = At::kEnd;
    return Next::kGoOn;
  }
  MarkerSet::Match match = family_->ends.At(rest(), final());
  if (match.kind == Kind::kPartial) return Next::kWait;
  if (match.kind == Kind::kFound) {
    Take(match.length);
    return Leave();
  }
  if (family_->family.lines && IsNameByte(c)) {
    at_ = At::kName;
    return Next::kGoOn;
  }
  return Leave();
}

ToolParser::Next PythonCalls::StepObject() {
  Skip(object_.Push(rest()));
  if (object_.state() == CallObject::State::kOpen) return Next::kGoOn;
  if (object_.state() == CallObject::State::kBad && call_.pending()) return NoCall();
  EndCall(true);
  BeginCall();
  keys_ = 0;
  at_ = At::kAfterCall;
  return Next::kGoOn;
}

ToolParser::Next PythonCalls::StepEnd() {
  std::string_view text = rest();
  size_t space = SpaceAhead();
  if (space == text.size() && space <= kMaxSpace && !final() && !family_->family.ends.empty()) {
    return Next::kWait;
  }
  MarkerSet::Match match = family_->ends.At(text.substr(space), final());
  if (match.kind == Kind::kPartial && space <= kMaxSpace) return Next::kWait;
  if (match.kind == Kind::kFound) Take(space + match.length);
  return Leave();
}

ToolParser::Next PythonCalls::Leave() {
  LeaveCalls();
  at_ = At::kText;
  return Next::kGoOn;
}

ToolParser::Next PythonCalls::NoCall() {
  // What stands between two calls and is none of them.
  RejectCall();
  at_ = At::kText;
  // The bracket that began it was looked at.
  if (bare_ && !rest().empty() && rest()[0] == '[' && !brackets_) PassText(1);
  return Next::kGoOn;
}

void PythonCalls::AtEnd() {
  const At at = std::exchange(at_, At::kText);
  if (call_.idle()) return;
  if (at == At::kAfterCall || at == At::kEnd || (at == At::kName && called())) {
    Leave();
    return;
  }
  out_.clear();
  if (at == At::kValue) value_.Cut(&out_);
  call_.Arguments(out_);
  if (at == At::kObject) object_.Cut();
  EndCall(false);
}

}  // namespace portico::parser
