#include "parser/json/call_object.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/hex_digit.h"
#include "parser/json/value_writer.h"
#include "text/json.h"
#include "text/json_writer.h"
#include "text/white_space.h"

namespace portico::parser {
namespace {

constexpr size_t kMaxKeyBytes = 1024;
constexpr size_t kMaxLookBytes = 512;  // longer than all markers

bool IsNameKey(std::string_view key, bool tool_name) {
  return key == "name" || key == "function" || (tool_name && key == "tool_name");
}

bool IsArgumentsKey(std::string_view key) {
  return key == "arguments" || key == "parameters" || key == "args";
}

// Of a call's object, beside name and arguments.
bool IsFrameKey(std::string_view key) {
  return key == "type" || key == "id" || key == "tool_call_id";
}

bool IsOwnKey(std::string_view key) {
  return IsNameKey(key, true) || IsArgumentsKey(key) || IsFrameKey(key);
}

// Whether an escape of four digits is the first of two that are one character.
bool BeginsPair(std::string_view escape) {
  return (escape[2] == 'd' || escape[2] == 'D') &&
         std::string_view("89abAB").find(escape[3]) != std::string_view::npos;
}

// What a JSON or Python string between quotes says.
bool Unquote(std::string_view text, char quote, std::string* out) {
  LiteralRelay relay;
  std::string json;
  std::string quoted = std::string(1, quote) + std::string(text) + std::string(1, quote);
  relay.Push(quoted, &json);
  StatusOr<Json> value = Json::Parse(json);
  if (!value.ok() || !value->is_string()) return false;
  *out = value->as_string();
  return true;
}

}  // namespace

void CallObject::Begin(Options options) {
  options_ = options;
  state_ = State::kOpen;
  at_ = At::kStart;
  alone_ = false;
  not_used_ = false;
  arguments_done_ = false;
  other_keys_ = false;
  opened_ = false;
  plain_ = false;
  nesting_ = 0;
  text_.clear();
  key_.clear();
  escape_.clear();
  strayed_ = false;
  stray_.clear();
  relay_ = LiteralRelay(LiteralRelay::Options{options.python});
}

void CallObject::BeginArguments() {
  Begin();
  alone_ = true;
  at_ = At::kValue;
  key_ = "arguments";
}

size_t CallObject::Push(std::string_view text) {
  size_t i = 0;
  const bool was_broken = broken();
  while (i < text.size() && state_ == State::kOpen) {
    // Once it is a call, arguments go through in runs.
    if (at_ == At::kArguments && !call_.pending()) {
      size_t used = 0;
      Relay(text.substr(i), &used);
      call_.Raw(text.substr(i, used));
      i += used;
      if (relay_.broken()) break;
      continue;
    }
    if (!PushByte(text[i])) {
      state_ = State::kBad;
      break;
    }
    if (state_ == State::kDone && not_used_) break;  // the byte behind a value that is done
    call_.Raw(text.substr(i, 1));
    ++i;
    if (!stray_.empty() && call_.committed()) call_.Stray(std::exchange(stray_, {}));
    if (broken() && !was_broken) break;  // the caller looks for what ends a broken value
  }
  return i;
}

CallObject::Reach CallObject::PushUntil(const MarkerSet& stops, std::string_view text, bool final,
                                        size_t* used) {
  *used = 0;
  // Objects may be many and small: looking farther for each would not be linear.
  final = final && text.size() <= kMaxLookBytes;
  text = text.substr(0, kMaxLookBytes);
  const MarkerSet::Match match = stops.Find(text, final);
  const bool here = match.begin == 0 && match.kind != MarkerSet::Kind::kAbsent;
  if (here && !call_.pending() && (broken() || !in_string())) {
    return match.kind == MarkerSet::Kind::kFound ? Reach::kStop : Reach::kUnknown;
  }
  *used = Push(text.substr(0, here ? std::max<size_t>(match.length, 1) : match.begin));
  return Reach::kGoOn;
}

void CallObject::Close() {
  if (at_ == At::kArguments || at_ == At::kTextArguments) call_.Doubt();
  if (at_ == At::kTextArguments && !escape_.empty()) EndEscape({});
  out_.clear();
  if (at_ == At::kArguments) relay_.Close(&out_);
  if (at_ == At::kTextArguments) CloseDecoded();
  call_.Arguments(out_);
  state_ = State::kDone;
}

bool CallObject::IsCutWithinOther() const {
  if (other_keys_) return true;
  if (at_ == At::kKey) {
    static constexpr std::string_view kOwn[] = {"name",      "tool_name",  "function",
                                                "arguments", "parameters", "args",
                                                "type",      "id",         "tool_call_id"};
    return std::none_of(std::begin(kOwn), std::end(kOwn),
                        [this](std::string_view key) { return key.starts_with(text_); });
  }
  return (at_ == At::kColon || at_ == At::kValue) && !alone_ && !IsOwnKey(key_);
}

void CallObject::Cut() {
  if (call_.pending() && IsCutWithinOther()) return call_.Reject();
  if (at_ != At::kArguments && at_ != At::kTextArguments) return;
  out_.clear();
  relay_.Cut(&out_);
  if (plain_) out_ = escape_;  // JSON so far
  if (at_ == At::kTextArguments && !plain_ && !TrimWhiteSpace(text_).empty()) out_ = text_;
  if (!call_.Arguments(out_) && !plain_) call_.Reject();
}

bool CallObject::Relay(std::string_view text, size_t* used) {
  out_.clear();
  *used = relay_.Push(text, &out_);
  if (!call_.Arguments(out_)) return false;
  if (relay_.done()) {
    if (relay_.guessed()) call_.Doubt();
    arguments_done_ = true;
    at_ = At::kNext;
    if (alone_) state_ = State::kDone;
  }
  return true;
}

bool CallObject::PushByte(char c) {
  switch (at_) {
    case At::kKey:
    case At::kName:
      return PushKeyByte(c);
    case At::kTextArguments:
      return PushDecoded(c);
    case At::kArguments: {
      // What no object begins with makes this no call, where it is none yet.
      if (opened_ && !IsWhiteSpace(c)) {
        opened_ = false;
        if (std::string_view("\"'}").find(c) == std::string_view::npos) return false;
      }
      if (call_.pending() && c == '{' && relay_.empty()) opened_ = true;
      size_t used = 0;
      if (!Relay(std::string_view(&c, 1), &used)) return false;
      not_used_ = used == 0 && state_ == State::kDone;
      return used == 1 || not_used_ || PushByte(c);
    }
    case At::kSkip: {
      out_.clear();
      size_t used = skip_.Push(std::string_view(&c, 1), &out_);
      if (skip_.broken()) return false;
      if (skip_.done()) at_ = At::kNext;
      return used == 1 || PushByte(c);
    }
    default:
      break;
  }
  if (IsWhiteSpace(c)) return true;
  switch (at_) {
    case At::kStart:
      at_ = At::kKeyOrEnd;
      return c == '{';
    case At::kKeyOrEnd:
      if (c == '}') return EndObject();
      if (c == '{' && !options_.bare && nesting_ == 0 && key_.empty()) {  // `{{"name": …}}`
        ++nesting_;
        return true;
      }
      if (c != '"' && c != '\'') return false;
      quote_ = c;
      text_.clear();
      at_ = At::kKey;
      return true;
    case At::kColon:
      at_ = At::kValue;
      return c == ':';
    case At::kValue:
      return BeginValue(c);
    case At::kNext:
      if (c == '}') return EndObject();
      at_ = At::kKeyOrEnd;
      return c == ',';
    default:
      return false;
  }
}

bool CallObject::PushKeyByte(char c) {
  const bool escaped = !escape_.empty();
  escape_.clear();
  if (c == quote_ && !escaped) return at_ == At::kKey ? EndKey() : SetName();
  if (c == '\\' && !escaped) escape_ = "\\";
  text_.push_back(c);
  return text_.size() <= kMaxKeyBytes;
}

bool CallObject::EndKey() {
  if (!Unquote(text_, quote_, &key_)) return false;
  at_ = At::kColon;
  if (!options_.key_is_name || call_.has_name() || call_.is_text()) return true;
  if (key_.empty()) return false;
  call_.SetName(key_);
  key_ = "arguments";
  return true;
}

bool CallObject::SetName() {
  std::string name;
  if (!Unquote(text_, quote_, &name) || name.empty()) return false;
  at_ = At::kNext;
  call_.SetName(name);
  // Arguments that waited for the name decide now.
  if ((arguments_done_ || plain_) && !call_.is_text()) call_.Commit();
  return true;
}

bool CallObject::BeginValue(char c) {
  if (IsArgumentsKey(key_) && !arguments_done_) {
    relay_ = LiteralRelay(LiteralRelay::Options{options_.python});
    opened_ = false;
    if (c == '"') {
      text_.clear();
      at_ = At::kTextArguments;
      return true;
    }
    at_ = At::kArguments;
    return PushByte(c);
  }
  if (IsNameKey(key_, options_.tool_name) && !call_.has_name()) {
    if (c == '"' || c == '\'') {
      quote_ = c;
      text_.clear();
      at_ = At::kName;
      return true;
    }
    if (c == '{' && key_ == "function" && nesting_ == 0) {
      ++nesting_;
      at_ = At::kKeyOrEnd;
      return true;
    }
    return false;
  }
  other_keys_ = other_keys_ || options_.bare || !IsFrameKey(key_);
  // The first member is no call's: this is some other object.
  skip_ = LiteralRelay();
  at_ = At::kSkip;
  return PushByte(c);
}

// A byte of arguments that are written as a JSON string.
bool CallObject::PushDecoded(char c) {
  if (!escape_.empty()) {
    const bool half = escape_.size() >= 6 && BeginsPair(escape_);
    if (half && escape_.size() == 6 && c != '\\') return EndEscape({}) && PushDecoded(c);
    if (half && escape_.size() == 7 && c != 'u') {
      escape_.pop_back();
      return EndEscape("\\") && PushDecoded(c);
    }
    const bool digit = escape_[1] == 'u' && escape_.size() != 6 && escape_.size() != 7;
    if (digit && HexDigit(c) < 0) return EndEscape({}) && PushDecoded(c);  // it is no escape
    escape_.push_back(c);
    const size_t want = escape_[1] != 'u' ? 2 : escape_.size() < 6 || !BeginsPair(escape_) ? 6 : 12;
    return escape_.size() < want || EndEscape({});
  }
  if (c == '\\') {
    escape_ = "\\";
    return true;
  }
  if (c == '"') return EndDecoded();
  return Decoded(std::string_view(&c, 1));
}

bool CallObject::EndEscape(std::string_view rest) {
  std::string decoded;
  if (!Unquote(escape_, '"', &decoded)) decoded = escape_;  // a backslash alone
  escape_ = rest;
  return Decoded(decoded);
}

// Text that begins as an object or a list is the arguments; other text is a string, but for `null` and nothing.
bool CallObject::Decoded(std::string_view text) {
  if (!plain_ && relay_.empty()) {
    text_.append(text);
    if (text.find_first_not_of(kWhiteSpace) == std::string_view::npos) return true;
    const std::string_view word = TrimWhiteSpace(text_);
    if (std::string_view("null").starts_with(word)) return true;
    plain_ = word[0] != '{' && word[0] != '[';
    const std::string all = std::exchange(text_, {});
    if (!plain_) return DecodedJson(all);
    out_ = "\"";
    AppendStringPart(all, &out_);
  } else if (!plain_) {
    return DecodedJson(text);
  } else {
    out_.clear();
    AppendStringPart(text, &out_);
  }
  call_.Arguments(out_);
  if (call_.has_name()) call_.Commit();
  return true;
}

bool CallObject::DecodedJson(std::string_view text) {
  out_.clear();
  size_t used = 0;
  while (used < text.size() && !relay_.done()) used += relay_.Push(text.substr(used), &out_);
  const bool good = call_.Arguments(out_);
  Stray(text.substr(used));
  return good;
}

void CallObject::CloseDecoded() {
  out_.clear();
  const std::string_view word = TrimWhiteSpace(text_);
  if (plain_) {
    out_ = "\"";
  } else if (relay_.empty() && !word.empty() && word != "null") {
    AppendJsonString(text_, &out_);
  } else {
    relay_.Close(&out_);
  }
}

bool CallObject::EndDecoded() {
  CloseDecoded();
  if (relay_.guessed()) call_.Doubt();
  const bool good = call_.Arguments(out_) || plain_ || relay_.empty();
  arguments_done_ = good;
  at_ = At::kNext;
  if (alone_) state_ = State::kDone;
  if (good && call_.has_name()) call_.Commit();
  return good;
}

void CallObject::Stray(std::string_view text) {
  if (!strayed_) text.remove_prefix(std::min(text.find_first_not_of(kWhiteSpace), text.size()));
  if (text.empty()) return;
  strayed_ = true;
  if (call_.committed()) {
    call_.sink()->Content(text);
  } else if (call_.pending()) {
    stray_.append(text);
  }
}

bool CallObject::EndObject() {
  if (nesting_ > 0) {
    --nesting_;
    at_ = At::kNext;
    return true;
  }
  if (call_.pending()) {
    if (!call_.has_name() || (!arguments_done_ && other_keys_)) return false;
    call_.Commit();
  }
  state_ = State::kDone;
  return true;
}

}  // namespace portico::parser
