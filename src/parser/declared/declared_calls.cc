#include "parser/declared/declared_calls.h"

#include <algorithm>
#include <utility>

#include "text/json_writer.h"
#include "text/white_space.h"

namespace portico::parser {
namespace {

constexpr size_t kMaxHeld = 4096;  // of a tag's head, or of white space

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// CallObject knows these keys by itself.
bool IsPlainObject(const Region& region) {
  const auto is = [](const CallPart& part, std::initializer_list<std::string_view> names) {
    return part.in == CallPart::In::kMember &&
           std::find(names.begin(), names.end(), part.name) != names.end();
  };
  if (region.bare_keys || !region.quotes.empty()) return false;
  if (region.name.in == CallPart::In::kGroup) {
    return region.arguments.in == CallPart::In::kWhole && !region.each;
  }
  return is(region.name, {"name", "function"}) &&
         is(region.arguments, {"arguments", "parameters", "args"});
}

// The region's own JSON as JSON.
std::string ToJson(const Region& region, std::string_view text) {
  std::string out;
  bool key_may_follow = false;  // behind `{` or `,`
  while (!text.empty()) {
    const auto quote = std::find_if(region.quotes.begin(), region.quotes.end(),
                                    [&](const auto& pair) { return text.starts_with(pair.first); });
    if (quote != region.quotes.end()) {
      const std::string_view behind = text.substr(quote->first.size());
      const size_t end = std::min(behind.find(quote->second), behind.size());
      AppendJsonString(behind.substr(0, end), &out);
      text = behind.substr(std::min(end + quote->second.size(), behind.size()));
      key_may_follow = false;
      continue;
    }
    const char c = text.front();
    size_t bytes = 1;
    if (c == '"') {
      while (bytes < text.size() && text[bytes] != '"') bytes += text[bytes] == '\\' ? 2 : 1;
      bytes = std::min(bytes + 1, text.size());
      out.append(text.substr(0, bytes));
    } else if (region.bare_keys && key_may_follow && IsWordByte(c)) {
      while (bytes < text.size() && IsWordByte(text[bytes])) ++bytes;
      const bool is_key = bytes < text.size() && text[bytes] == ':';
      if (is_key) out.push_back('"');
      out.append(text.substr(0, bytes));
      if (is_key) out.push_back('"');
    } else {
      out.push_back(c);
    }
    if (c == '{' || c == ',') {
      key_may_follow = true;
    } else if (kWhiteSpace.find(c) == std::string_view::npos) {
      key_may_follow = false;
    }
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace

std::string DeclaredCalls::GroupOf(const Region& region, const CallPart& part,
                                   const Pattern::Match& match) const {
  if (part.in != CallPart::In::kGroup) return {};
  const std::vector<std::string>& groups = region.open->groups();
  const size_t at =
      static_cast<size_t>(std::find(groups.begin(), groups.end(), part.name) - groups.begin());
  return at < match.groups.size() ? std::string(match.groups[at]) : std::string();
}

void DeclaredCalls::Begin(const Region& region, std::string_view opener,
                          const Pattern::Match& match, std::string_view lead, bool take) {
  region_ = &region;
  named_ = region.name.in == CallPart::In::kGroup;
  busy_ = ended_ = text_ = started_ = false;
  held_.clear();
  space_.clear();
  spaces_ = 0;
  call_.Begin(lead);
  call_.Raw(opener);
  const std::string name(TrimWhiteSpace(GroupOf(region, region.name, match)));
  arguments_ = GroupOf(region, region.arguments, match);
  if (!take || (named_ && (name.empty() || !call_.SetName(name)))) call_.Reject();
  if (region.body == Region::Body::kTags || region.body == Region::Body::kLines) {
    way_ = region.body == Region::Body::kTags ? Way::kTags : Way::kLines;
    call_.Commit();
    writer_.Begin();
    return;
  }
  way_ = IsPlainObject(region) ? Way::kObject : Way::kBuffer;
  if (named_ && way_ == Way::kObject) {
    object_.BeginArguments();
    busy_ = true;
  }
}

void DeclaredCalls::Push(std::string_view text) {
  if (text.empty()) return;
  if (way_ == Way::kObject) return PushObject(text);
  const bool is_text = call_.is_text();
  call_.Raw(text);
  if (is_text) return;
  if (way_ == Way::kBuffer && held_.size() + text.size() > CallWriter::kMaxHeldBytes) {
    call_.Reject();
    return;
  }
  held_.append(text);
  if (way_ == Way::kTags) PushTags(false);
  if (way_ == Way::kLines) PushLines(false);
}

void DeclaredCalls::Stray(std::string_view text) {
  if (call_.is_text()) {
    call_.Raw(text);
  } else if (call_.idle() || call_.committed()) {
    call_.sink()->Content(text);
  } else {
    call_.Raw(text);
    call_.Reject();
  }
}

// One object, or a list of them.
void DeclaredCalls::PushObject(std::string_view text) {
  while (!text.empty()) {
    if (text_) return Stray(text);
    if (!busy_) {
      const char c = text.front();
      if (c == '{' && (region_->each || !ended_)) {
        if (call_.idle()) call_.Begin();
        object_.Begin();
        busy_ = true;
        ended_ = false;
        continue;
      }
      const bool frame =
          kWhiteSpace.find(c) != std::string_view::npos ||
          (region_->each && std::string_view("[],").find(c) != std::string_view::npos);
      if (!frame) {
        text_ = true;
        continue;
      }
      if (!call_.idle()) call_.Raw(text.substr(0, 1));
      text.remove_prefix(1);
      continue;
    }
    const size_t used = object_.Push(text);
    text.remove_prefix(used);
    if (object_.state() == CallObject::State::kBad) {
      if (call_.committed()) object_.Close();
      call_.Reject();
      if (call_.committed()) call_.End(true);
      busy_ = false;
      text_ = true;
    } else if (object_.state() == CallObject::State::kDone) {
      busy_ = false;
      ended_ = true;
      text_ = call_.is_text() && !region_->each;  // with all that is left of the region
      if (text_) continue;
      call_.Commit();
      call_.End(true);
    } else if (used == 0 && !object_.broken()) {
      return;
    }
  }
}

TypeSet DeclaredCalls::TypesOf(std::string_view key) const {
  const ValueTypes* arguments = call_.tools().Arguments(call_.name());
  const ValueTypes* found = arguments == nullptr ? nullptr : arguments->Find(key);
  const TypeSet types = found == nullptr ? 0 : found->types;
  return types == 0 && !region_->json_values ? kStringType : types;
}

void DeclaredCalls::BeginValue(std::string_view key) {
  writer_.BeginValue(key, TypesOf(key));
  busy_ = true;
  started_ = false;
  space_.clear();
  spaces_ = 0;
}

void DeclaredCalls::Value(std::string_view text) {
  if (!region_->strip) return writer_.Value(text);
  if (!started_) text.remove_prefix(std::min(text.find_first_not_of(kWhiteSpace), text.size()));
  if (text.empty()) return;
  started_ = true;
  const size_t end = text.find_last_not_of(kWhiteSpace) + 1;
  if (end > 0) {
    writer_.Value(std::exchange(space_, {}));
    writer_.Value(text.substr(0, end));
    spaces_ = 0;
  }
  space_.append(text.substr(end));
  spaces_ += text.size() - end;
  // So much belongs to the value, and what follows of it.
  if (spaces_ > kMaxHeld) writer_.Value(std::exchange(space_, {}));
}

void DeclaredCalls::PushTags(bool final) {
  std::string_view text = held_;
  while (!text.empty()) {
    const Pattern& pattern = busy_ ? *region_->tail : *region_->head;
    const Pattern::Match match = pattern.Find(text, final, 0, /*ahead=*/busy_);
    std::string_view before = text.substr(0, match.begin);
    if (busy_) {
      Value(before);
    } else {
      if (!started_)
        before.remove_prefix(std::min(before.find_first_not_of(kWhiteSpace), before.size()));
      started_ = started_ || !before.empty();
      if (!before.empty()) Stray(before);
    }
    text.remove_prefix(match.begin);
    if (match.kind == Pattern::Kind::kPartial && text.size() > kMaxHeld) {
      // What is so long is no tag.
      busy_ ? Value(text.substr(0, 1)) : Stray(text.substr(0, 1));
      started_ = true;
      text.remove_prefix(1);
      continue;
    }
    if (match.kind != Pattern::Kind::kFound) break;
    if (busy_) {
      writer_.EndValue();
      busy_ = started_ = false;
    } else {
      BeginValue(match.groups.front());
    }
    text.remove_prefix(match.length);
  }
  held_ = std::string(text);
}

void DeclaredCalls::Pair(std::string_view key, std::string_view value) {
  BeginValue(TrimWhiteSpace(key));
  writer_.Value(TrimWhiteSpace(value));
  writer_.EndValue();
  busy_ = false;
}

void DeclaredCalls::PushLines(bool final) {
  std::string_view text = held_;
  while (!text.empty()) {
    const size_t end = text.find(region_->line_end);
    if (end == std::string_view::npos && !final) break;
    const std::string_view line = text.substr(0, end);
    const size_t separator = line.find(region_->separator);
    if (separator != std::string_view::npos) {
      Pair(line.substr(0, separator), line.substr(separator + region_->separator.size()));
    } else if (!TrimWhiteSpace(line).empty()) {
      Stray(line);
    }
    text.remove_prefix(end == std::string_view::npos ? text.size()
                                                     : end + region_->line_end.size());
  }
  held_ = std::string(text);
}

// One call of a value that was read whole. False: it is none.
bool DeclaredCalls::OneCall(const Json& value) {
  const auto part = [&](const CallPart& of) -> const Json* {
    return of.in == CallPart::In::kWhole ? &value : value.Find(of.name);
  };
  const Json* arguments = part(region_->arguments);
  std::string json = arguments_;
  if (region_->arguments.in != CallPart::In::kGroup) {
    if (arguments == nullptr) return false;
    json = arguments->is_string() ? arguments->as_string() : arguments->Dump();
  }
  if (!IsJson(json)) return false;
  if (call_.idle()) {
    call_.Begin();
    call_.Raw(value.Dump());
  }
  if (!named_) {
    const Json* name = part(region_->name);
    if (name == nullptr || !name->is_string() || !call_.SetName(name->as_string())) return false;
  }
  call_.Commit();
  call_.Arguments(json);
  call_.End(true);
  return true;
}

void DeclaredCalls::EndBuffered(bool complete) {
  const std::string json = ToJson(*region_, TrimWhiteSpace(held_));
  StatusOr<Json> value = Json::Parse(json);
  if (complete && value.ok()) {
    const bool list = region_->each && value->is_array();
    const JsonArray one = list ? value->as_array() : JsonArray{*value};
    bool any = false;
    for (const Json& element : one) {
      const bool call = OneCall(element);
      any = any || call;
      if (!call && any) {
        call_.Reject();
        call_.End(false);
      }
    }
    if (any) {
      ended_ = true;
      return;
    }
  }
  if (!call_.pending() || !call_.has_name()) return call_.Reject();
  // It is a call, whatever its arguments are.
  call_.Doubt();
  LiteralRelay relay;
  std::string out;
  for (size_t at = 0; at < json.size();) {
    const size_t used = relay.Push(std::string_view(json).substr(at), &out);
    if (used == 0) break;
    at += used;
  }
  complete ? relay.Close(&out) : relay.Cut(&out);
  call_.Commit();
  call_.Arguments(out);
}

// The text ended within a value.
void DeclaredCalls::Cut() {
  if (way_ == Way::kTags && busy_) writer_.CutValue();
  const size_t separator = held_.find(region_->separator);
  if (way_ != Way::kLines || separator == std::string::npos) return;
  const std::string_view line = held_;
  BeginValue(TrimWhiteSpace(line.substr(0, separator)));
  writer_.Value(TrimWhiteSpace(line.substr(separator + region_->separator.size())));
  writer_.CutValue();
}

void DeclaredCalls::End(bool complete, std::string_view closer) {
  if (way_ == Way::kObject) {
    if (busy_ && complete && !object_.arguments_done() && call_.committed()) object_.Close();
    if (busy_ && !complete) object_.Cut();
    if (busy_ && call_.pending() && !named_) call_.Reject();
  } else if (call_.pending() || call_.committed()) {
    if (way_ == Way::kBuffer) EndBuffered(complete);
    if (way_ == Way::kTags) PushTags(true);
    if (way_ == Way::kLines) PushLines(complete);
    if (!complete) Cut();
    if (way_ != Way::kBuffer && complete) {
      if (busy_) writer_.EndValue();
      writer_.End();
    }
  }
  if (call_.pending() && !call_.has_name()) call_.Reject();
  if (call_.idle()) return;
  if (!region_->each) call_.Raw(closer);
  call_.End(complete);
}

}  // namespace portico::parser
