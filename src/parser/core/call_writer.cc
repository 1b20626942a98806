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

void HeldCall::Add(Piece::Kind kind, std::string_view text) {
  if (pieces_.empty() || pieces_.back().kind != kind) {
    pieces_.push_back({.kind = kind, .text = std::string(text)});
  } else {
    pieces_.back().text.append(text);
  }
}

void HeldCall::BeginCall(std::string_view name, std::string_view id) {
  pieces_.push_back({.kind = Piece::kBegin, .text = std::string(name), .id = std::string(id)});
}

void HeldCall::EndCall(bool complete) {
  pieces_.push_back({.kind = complete ? Piece::kEnd : Piece::kCutEnd, .text = {}});
}

void HeldCall::PassOn(Sink* sink) {
  for (const Piece& piece : pieces_) {
    switch (piece.kind) {
      case Piece::kContent:
        sink->Content(piece.text);
        break;
      case Piece::kReasoning:
        sink->Reasoning(piece.text);
        break;
      case Piece::kBegin:
        sink->BeginCall(piece.text, piece.id);
        break;
      case Piece::kArguments:
        sink->Arguments(piece.text);
        break;
      case Piece::kEnd:
      case Piece::kCutEnd:
        sink->EndCall(piece.kind == Piece::kEnd);
        break;
    }
  }
  pieces_.clear();
}

void CallWriter::Begin(std::string_view lead) {
  state_ = State::kPending;
  raw_ = lead;
  name_.clear();
  id_.clear();
  held_.clear();
  any_arguments_ = false;
  begun_ = false;
  doubtful_ = false;
}

// Bytes of a candidate, of text, or of a call that waits.
bool CallWriter::Keep(std::string_view bytes) {
  if (state_ == State::kText) {
    sink_->Content(bytes);
  } else if (state_ == State::kPending) {
    raw_.append(bytes);
    if (raw_.size() > kMaxHeldBytes) {
      Reject();
      return false;
    }
  } else if (waits_) {
    raw_.append(bytes);
    if (raw_.size() > kMaxHeldBytes) Settle(true);
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
    sink()->Arguments(json);
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
  if (state_ == State::kCommitted && !text.empty()) sink()->Content(text);
}

void CallWriter::Commit() {
  if (state_ != State::kPending) return;
  state_ = State::kCommitted;
  waits_ = !tools_.names_known();
  if (!waits_) raw_.clear();
  ++calls_;
  sink()->BeginCall(name_, id_);
  if (!held_.empty()) {
    any_arguments_ = true;
    sink()->Arguments(held_);
    held_.clear();
  }
}

// A call that waited is one, or is text.
void CallWriter::Settle(bool is_call) {
  waits_ = false;
  if (is_call) {
    later_.PassOn(sink_);
  } else {
    later_.Clear();
    --calls_;
    ++rejected_;
    state_ = State::kText;
    sink_->Content(raw_);
  }
  raw_.clear();
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
    if (!any_arguments_ && complete) sink()->Arguments("{}");
    sink()->EndCall(complete);
    if (waits_) Settle(complete && !doubtful_);
  }
  ended_as_text_ = state_ == State::kText;
  state_ = State::kIdle;
}

}  // namespace portico::parser
