#include "parser/json/value_writer.h"

#include <algorithm>

#include "text/json.h"
#include "text/json_writer.h"
#include "text/white_space.h"

namespace portico::parser {
namespace {

void PushAll(std::string_view text, LiteralRelay* relay, std::string* out) {
  size_t used = relay->Push(text, out);
  if (used < text.size() && !relay->done()) relay->Push(text.substr(used), out);
}

// Whether `text`, whose first byte is no white space, may still become a word of JSON or Python or a number.
bool CouldBeScalar(std::string_view text) {
  constexpr size_t kLongest = 512;
  size_t end = text.find_last_not_of(kWhiteSpace) + 1;
  std::string_view word = text.substr(0, end);
  if (text.size() > kLongest) return false;
  const bool ended = end < text.size();
  for (std::string_view literal :
       {"true", "True", "TRUE", "false", "False", "FALSE", "null", "None", "Null", "NULL"}) {
    if (ended ? literal == word : literal.starts_with(word)) return true;
  }
  return word.find_first_not_of("-+.0123456789eE") == std::string_view::npos;
}

}  // namespace

void AppendStringPart(std::string_view text, std::string* out) {
  size_t i = 0;
  while (i < text.size()) {
    size_t run = i;
    while (run < text.size() && static_cast<unsigned char>(text[run]) >= 0x20 && text[run] != '"' &&
           text[run] != '\\') {
      ++run;
    }
    out->append(text.substr(i, run - i));
    if (run < text.size()) AppendJsonEscaped(text.substr(run, 1), out);
    i = run + 1;
  }
}

void ValueWriter::Begin(TypeSet types) {
  types_ = types;
  held_.clear();
  strayed_ = false;
  stray_.clear();
  mode_ = Mode::kUndecided;
  probe_ = LiteralRelay();
  probe_out_.clear();
}

void ValueWriter::Push(std::string_view text, std::string* out) {
  if (mode_ == Mode::kUndecided) {
    // A few bytes tell most texts, so they are looked at one by one where they could be anything.
    if (types_ == kStringType) {
      ToString(out);
    } else {
      held_.append(text);
      if (types_ == 0) PushAll(text, &probe_, &probe_out_);
      probe_out_.clear();
      return Decide(out);
    }
  }
  if (mode_ == Mode::kString) {
    AppendStringPart(text, out);
  } else {
    Relay(text, out);
  }
}

void ValueWriter::Relay(std::string_view text, std::string* out) {
  while (!text.empty() && !relay_.done()) text.remove_prefix(relay_.Push(text, out));
  if (!strayed_) text.remove_prefix(std::min(text.find_first_not_of(kWhiteSpace), text.size()));
  strayed_ = strayed_ || !text.empty();
  stray_.append(text);
}

void ValueWriter::Decide(std::string* out) {
  std::string_view text = held_;
  size_t begin = text.find_first_not_of(kWhiteSpace);
  if (held_.size() > kMaxHeldBytes) return ToString(out);
  if (begin == std::string_view::npos) return;
  char c = text[begin];
  const bool container = c == '{' || c == '[';
  if (types_ != 0) {
    const TypeSet containers = types_ & (kObjectType | kArrayType);
    if (container && containers != 0 && (types_ & kStringType) == 0) {
      mode_ = Mode::kRelay;
      relay_ = LiteralRelay();
      Relay(text.substr(begin), out);
      held_.clear();
      return;
    }
    if (container && containers != 0) return;  // or a string: told at the end
  } else if (container || c == '"') {
    // JSON, as long as it stays JSON.
    if (probe_.broken()) ToString(out);
    return;
  }
  if (!CouldBeScalar(text.substr(begin))) ToString(out);
}

void ValueWriter::ToString(std::string* out) {
  mode_ = Mode::kString;
  out->push_back('"');
  AppendStringPart(held_, out);
  held_.clear();
}

bool ValueWriter::ToScalar(std::string_view word, std::string* out) const {
  const bool any = types_ == 0;
  if (word == "null" || word == "None" || word == "Null" || word == "NULL") {
    if (!any && (types_ & kNullType) == 0 && (types_ & kStringType) != 0) return false;
    if (any && word != "null" && word != "None") return false;
    out->append("null");
    return true;
  }
  const bool truth = word == "true" || word == "True" || word == "TRUE";
  if (truth || word == "false" || word == "False" || word == "FALSE") {
    if (!any && (types_ & kBooleanType) == 0) return false;
    out->append(truth ? "true" : "false");
    return true;
  }
  if (!any && (types_ & (kIntegerType | kNumberType)) == 0) return false;
  if (word.empty() || word.find_first_not_of("-+.0123456789eE") != std::string_view::npos) {
    return false;
  }
  if (!IsJson(word)) return false;
  out->append(word);
  return true;
}

void ValueWriter::End(std::string* out) {
  if (mode_ == Mode::kRelay) return relay_.Close(out);
  if (mode_ == Mode::kUndecided) {
    std::string_view word = TrimWhiteSpace(held_);
    if (ToScalar(word, out)) return;
    const bool container = word.starts_with('{') || word.starts_with('[');
    if (!word.empty() &&
        (types_ == 0 || (container && (types_ & (kObjectType | kArrayType)) != 0)) &&
        (container || word[0] == '"') && IsJson(word)) {
      out->append(word);
      return;
    }
    ToString(out);
  }
  out->push_back('"');
}

void ValueWriter::Cut(std::string* out) {
  if (mode_ == Mode::kRelay) return relay_.Cut(out);
  const std::string_view word = TrimWhiteSpace(held_);
  if (mode_ == Mode::kString || word.empty() || ToScalar(word, out)) return;
  LiteralRelay relay;
  std::string json;
  const size_t used = relay.Push(word, &json);
  relay.Cut(&json);
  const bool container = word[0] == '{' || word[0] == '[';
  const bool fits = (types_ & kStringType) == 0 || container;
  // What no schema gives a type is JSON only as it stands.
  if (used == word.size() && fits && (types_ != 0 || json == word)) {
    out->append(json);
  } else {
    ToString(out);
  }
}

}  // namespace portico::parser
