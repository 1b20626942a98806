#include "parser/tool/brace_calls.h"

#include <algorithm>
#include <utility>

#include "parser/json/literal_relay.h"
#include "text/json_writer.h"
#include "text/white_space.h"

namespace portico::parser {
namespace {

constexpr size_t kMaxBare = 4096;
constexpr size_t kMaxDepth = 100'000;
constexpr std::string_view kCall = "call:";

using Kind = MarkerSet::Kind;

std::vector<std::string> TextMarkers(const BraceFamily& family) {
  std::vector<std::string> markers = {family.start};
  if (family.bare_first) markers.emplace_back(kCall);
  markers.insert(markers.end(), family.dropped.begin(), family.dropped.end());
  return markers;
}

}  // namespace

BraceCalls::Compiled::Compiled(BraceFamily from)
    : family(std::move(from)),
      text(TextMarkers(family)),
      inside({family.end, family.quote, family.start}),
      quote({family.quote}) {}

BraceCalls::BraceCalls(std::shared_ptr<const Compiled> family, const ToolSet& tools, Sink* sink)
    : ToolParser(family->text, family->family.bare_first ? 2 : 1, tools, sink),
      family_(std::move(family)) {}

ToolParser::Next BraceCalls::Step() {
  if (at_ != At::kText && at_ != At::kQuoted && at_ != At::kBare) {
    if (size_t space = SpaceAhead(); space > 0) {
      Take(space);
      return Next::kGoOn;
    }
  }
  switch (at_) {
    case At::kText:
      return StepText();
    case At::kName:
      return StepName();
    case At::kKey:
      return StepKey();
    case At::kValue:
      return StepValue();
    case At::kQuoted:
      return StepQuoted();
    case At::kBare:
      return StepBare();
    case At::kNext:
      return StepNext();
    case At::kAfter:
      return StepAfter();
  }
  return Next::kWait;
}

ToolParser::Next BraceCalls::StepText() {
  Next next;
  size_t start = 0;
  if (!FindStart(&next, &start)) return next;
  if (start == 1 && !between()) {
    PassText(kCall.size());
    return Next::kGoOn;
  }
  BeginCalls();
  if (start == 0) Take(family_->family.start.size());
  at_ = At::kName;
  return Next::kGoOn;
}

ToolParser::Next BraceCalls::StepName() {
  if (rest()[0] == ':') {  // `<|tool_call>:call:`
    Take(1);
    return Next::kGoOn;
  }
  const std::string_view text = rest().substr(0, kMaxName + 1);
  size_t brace = text.find('{');
  std::string_view name = text.substr(0, brace);
  if (name.find_first_of("<>\n\"") != std::string_view::npos || name.size() > kMaxName) {
    return NoCall();
  }
  if (brace == std::string_view::npos) return final() ? NoCall() : Next::kWait;
  if (!name.starts_with(kCall)) return NoCall();
  std::string known(TrimWhiteSpace(name.substr(kCall.size())));
  if (known.empty()) return NoCall();
  Take(brace + 1);
  if (!call_.is_text() && call_.SetName(known)) call_.Commit();
  Write("{");
  open_ = "{";
  first_ = true;
  at_ = At::kKey;
  return Next::kGoOn;
}

void BraceCalls::WriteString(std::string_view text) {
  out_.clear();
  AppendJsonString(text, &out_);
  Write(out_);
}

// Nothing of what is there ends what is read: it is not looked through again.
ToolParser::Next BraceCalls::WaitForMore() {
  looked_ = rest().size();
  return Next::kWait;
}

// In an object, before a key or its end.
ToolParser::Next BraceCalls::StepKey() {
  std::string_view text = rest();
  if (text[0] == '}') return Shut();
  if (text[0] == ',') {
    Take(1);
    return Next::kGoOn;
  }
  MarkerSet::Match match = family_->inside.At(text, final());
  if (match.kind == Kind::kPartial) return Next::kWait;
  if (match.kind == Kind::kFound && match.marker != 1) {
    at_ = At::kNext;
    return Next::kGoOn;
  }
  size_t skip = match.kind == Kind::kFound ? match.length : 0;  // a key in quotes
  // No key is longer, and looking farther for each key would not be linear.
  text = text.substr(0, kMaxName + kMaxBare + 1);
  const bool cut = text.size() < rest().size();
  const size_t looked = std::exchange(looked_, 0);
  MarkerSet::Match quote;
  if (skip > 0) {
    const size_t overlap = std::min(looked, family_->family.quote.size());
    quote = family_->quote.Find(text, final() || cut, std::max(skip, looked - overlap));
    // A colon before it may be the key's.
    if (quote.kind != Kind::kFound && !final() && !cut) return WaitForMore();
  }
  size_t colon =
      text.find_first_of(skip > 0 ? ":" : ":,}",
                         skip > 0 ? std::min(skip, text.size()) : std::min(looked, text.size()));
  if (skip > 0 && quote.kind == Kind::kFound) {
    colon = text.find_first_of(":,}", quote.begin + quote.length);
  }
  if (colon == std::string_view::npos && text.size() <= kMaxName + kMaxBare && !final()) {
    if (skip == 0) return WaitForMore();
    looked_ = quote.begin;
    return Next::kWait;
  }
  size_t end = std::min(colon, text.size());
  if (!first_) Write(", ");
  first_ = false;
  size_t key_end = end;
  if (skip > 0 && quote.kind == Kind::kFound) {
    key_end = quote.begin;
    const size_t behind = quote.begin + quote.length;
    call_.Stray(TrimWhiteSpace(text.substr(behind, end - behind)));
  }
  key_ = TrimWhiteSpace(text.substr(skip, key_end - skip));
  if (key_.size() > 1 && key_.front() == '"' && key_.back() == '"') {
    key_ = key_.substr(1, key_.size() - 2);
  }
  WriteString(key_);
  Write(": ");
  if (end == text.size() || text[end] != ':') {  // a key alone
    Write("null");
    Take(end);
    at_ = At::kNext;
    return Next::kGoOn;
  }
  Take(end + 1);
  at_ = At::kValue;
  return Next::kGoOn;
}

ToolParser::Next BraceCalls::StepValue() {
  std::string_view text = rest();
  const bool in_list = open_.back() == '[';
  if (in_list && text[0] == ']') return Shut();
  if (in_list && text[0] == ',') {
    Take(1);
    return Next::kGoOn;
  }
  MarkerSet::Match match = family_->inside.At(text, final());
  if (match.kind == Kind::kPartial) return Next::kWait;
  if (match.kind == Kind::kFound && match.marker != 1) {
    if (!in_list) Write("null");
    at_ = At::kNext;
    return Next::kGoOn;
  }
  if (in_list) {
    if (!first_) Write(", ");
    first_ = false;
  }
  if (match.kind == Kind::kFound) {
    Take(match.length);
    TypeSet types = kStringType;
    if (family_->family.typed) {
      const ValueTypes* arguments = call_.tools().Arguments(call_.name());
      const ValueTypes* found =
          arguments == nullptr || open_.size() > 1 ? nullptr : arguments->Find(key_);
      types = found == nullptr ? 0 : found->types;
    }
    value_.Begin(types);
    at_ = At::kQuoted;
    return Next::kGoOn;
  }
  if ((text[0] == '{' || text[0] == '[') && open_.size() < kMaxDepth) {
    open_.push_back(text[0]);
    Write(text.substr(0, 1));
    first_ = true;
    at_ = text[0] == '{' ? At::kKey : At::kValue;
    Take(1);
    return Next::kGoOn;
  }
  at_ = At::kBare;
  return Next::kGoOn;
}

ToolParser::Next BraceCalls::StepQuoted() {
  MarkerSet::Match match = family_->quote.Find(rest(), final());
  out_.clear();
  if (match.begin > 0) {
    value_.Push(rest().substr(0, match.begin), &out_);
    call_.Stray(value_.TakeStray());
    Write(out_);
    Take(match.begin);
    return Next::kGoOn;
  }
  if (match.kind == Kind::kPartial) return Next::kWait;
  value_.End(&out_);
  Write(out_);
  Take(match.length);
  at_ = At::kNext;
  return Next::kGoOn;
}

// A number or a word.
ToolParser::Next BraceCalls::StepBare() {
  std::string_view text = rest();
  size_t end = text.find_first_of(",}]<", std::exchange(looked_, 0));
  if (end == std::string_view::npos) {
    if (text.size() <= kMaxBare && !final()) return WaitForMore();
    end = std::min(text.size(), kMaxBare);
  }
  if (end == 0) end = 1;
  value_.Begin(0);
  out_.clear();
  value_.Push(TrimWhiteSpace(text.substr(0, end)), &out_);
  if (final() && end == text.size()) {
    value_.Cut(&out_);
  } else {
    value_.End(&out_);
  }
  Write(out_);
  Take(end);
  at_ = At::kNext;
  return Next::kGoOn;
}

ToolParser::Next BraceCalls::Shut() {
  Write(open_.back() == '{' ? "}" : "]");
  open_.pop_back();
  first_ = false;
  Take(1);
  if (!open_.empty()) {
    at_ = At::kNext;
    return Next::kGoOn;
  }
  EndCall(true);
  BeginCall();
  at_ = At::kAfter;
  return Next::kGoOn;
}

// Behind a value.
ToolParser::Next BraceCalls::StepNext() {
  std::string_view text = rest();
  char c = text[0];
  if (c == (open_.back() == '{' ? '}' : ']')) return Shut();
  if (c == ',') {
    Take(1);
    at_ = open_.back() == '{' ? At::kKey : At::kValue;
    return Next::kGoOn;
  }
  MarkerSet::Match match = family_->inside.At(text, final());
  if (match.kind == Kind::kPartial) return Next::kWait;
  if (match.kind == Kind::kFound && match.marker != 1) {
    CloseAll();
    EndCall(true);
    BeginCall();
    at_ = At::kAfter;
    return Next::kGoOn;
  }
  if (match.kind == Kind::kFound) {  // a quote without a comma before it
    at_ = open_.back() == '{' ? At::kKey : At::kValue;
    return Next::kGoOn;
  }
  // Text that is no part of a value.
  call_.Stray(text.substr(0, 1));
  Take(1);
  return Next::kGoOn;
}

void BraceCalls::CloseAll() {
  call_.Doubt();
  while (!open_.empty()) {
    Write(open_.back() == '{' ? "}" : "]");
    open_.pop_back();
  }
}

// Behind a call: its end marker, or another call without one between.
ToolParser::Next BraceCalls::StepAfter() {
  std::string_view text = rest();
  MarkerSet::Match match = family_->inside.At(text, final());
  if (match.kind == Kind::kPartial) return Next::kWait;
  if (match.kind == Kind::kFound && match.marker == 0) {
    Take(match.length);
    return Leave();
  }
  if (text.size() < kCall.size() && kCall.starts_with(text) && !final()) return Next::kWait;
  if (text.starts_with(kCall)) {
    at_ = At::kName;
    return Next::kGoOn;
  }
  return Leave();
}

ToolParser::Next BraceCalls::Leave() {
  LeaveCalls();
  at_ = At::kText;
  return Next::kGoOn;
}

ToolParser::Next BraceCalls::NoCall() {
  RejectCall();
  at_ = At::kText;
  return Next::kGoOn;
}

void BraceCalls::AtEnd() {
  const At at = std::exchange(at_, At::kText);
  if (call_.idle()) return;
  if (at == At::kAfter) {
    Leave();
    return;
  }
  out_.clear();
  if (at == At::kQuoted) value_.Cut(&out_);
  Write(out_);
  EndCall(false);
}

}  // namespace portico::parser
