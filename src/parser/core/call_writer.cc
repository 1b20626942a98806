#include "parser/core/call_writer.h"

#include "text/white_space.h"

namespace portico::parser {
namespace {

enum class Start { kUnknown, kArguments, kOther };

// Whether `json` begins as an object with members, or an empty one, does.
Start StartOf(std::string_view json) {
  size_t at = json.find_first_not_of(kWhiteSpace);
  if (at == std::string_view::npos) return Start::kUnknown;
  if (json.substr(at) == "null") return Start::kArguments;
  if (json[at] != '{' && json[at] != '[') return Start::kOther;
  const bool list = json[at] == '[';
  at = json.find_first_not_of(kWhiteSpace, at + 1);
  if (at == std::string_view::npos) return Start::kUnknown;
  if (list && json[at] == '{') return Start::kArguments;
  return json[at] == '"' || json[at] == '}' || json[at] == ']' ? Start::kArguments : Start::kOther;
}

}  // namespace

void CallWriter::Begin(std::string_view lead) {
  state_ = State::kPending;
  raw_ = lead;
  name_.clear();
  id_.clear();
  held_.clear();
  any_arguments_ = false;
  begun_ = false;
}

bool CallWriter::Raw(std::string_view bytes) {
  if (bytes.empty()) return true;
  if (state_ == State::kText) {
    sink_->Content(bytes);
  } else if (state_ == State::kPending) {
    raw_.append(bytes);
    if (raw_.size() > kMaxHeldBytes) {
      Reject();
      return false;
    }
  }
  return true;
}

bool CallWriter::SetName(std::string_view name, std::string_view id) {
  if (state_ != State::kPending) return state_ == State::kCommitted;
  std::string_view known = tools_.Resolve(name);
  if (known.empty() || !tools_.Takes(known)) {
    Reject();
    return false;
  }
  name_ = known;
  id_ = id;
  return true;
}

bool CallWriter::Arguments(std::string_view json) {
  if (json.empty() || state_ == State::kText) return true;
  if (state_ == State::kCommitted) {
    if (!any_arguments_ && json == "null") json = "{}";
    any_arguments_ = true;
    sink_->Arguments(json);
    return true;
  }
  held_.append(json);
  // What is held must not be looked through each time: more white space tells nothing, and models write it without end.
  if (!begun_) {
    if (json.find_first_not_of(kWhiteSpace) == std::string_view::npos) return true;
    const Start start = StartOf(held_);
    if (start == Start::kOther) return false;
    begun_ = start == Start::kArguments;
    if (begun_ && TrimWhiteSpace(held_) == "null") held_ = "{}";
  }
  if (begun_ && has_name()) Commit();
  return true;
}

void CallWriter::Stray(std::string_view text) {
  if (state_ == State::kCommitted && !text.empty()) sink_->Content(text);
}

void CallWriter::Commit() {
  if (state_ != State::kPending) return;
  state_ = State::kCommitted;
  raw_.clear();
  ++calls_;
  sink_->BeginCall(name_, id_);
  if (!held_.empty()) {
    any_arguments_ = true;
    sink_->Arguments(held_);
    held_.clear();
  }
}

void CallWriter::Reject() {
  if (state_ != State::kPending) return;
  state_ = State::kText;
  ++rejected_;
  if (!raw_.empty()) sink_->Content(raw_);
  raw_.clear();
  held_.clear();
}

void CallWriter::Drop() {
  if (state_ == State::kPending) state_ = State::kIdle;
}

void CallWriter::End(bool complete) {
  if (state_ == State::kPending) {
    if (has_name()) {
      Commit();
    } else {
      Reject();
    }
  }
  if (state_ == State::kCommitted) {
    if (!any_arguments_ && complete) sink_->Arguments("{}");
    sink_->EndCall(complete);
  }
  ended_as_text_ = state_ == State::kText;
  state_ = State::kIdle;
}

}  // namespace portico::parser
