#include "parser/tool/tool_parser.h"

#include <algorithm>

#include "text/white_space.h"

namespace portico::parser {
namespace {

constexpr size_t kMaxHeldSpace = 256;

}  // namespace

void ToolParser::Feed(std::string_view text) {
  std::string joined;
  if (waiting_.empty()) {
    rest_ = text;
  } else {
    joined.swap(waiting_);
    joined.append(text);
    rest_ = joined;
  }
  while (!rest_.empty() && Step() == Next::kGoOn) {
  }
  waiting_.assign(rest_);
  rest_ = {};
}

void ToolParser::Finish() {
  final_ = true;
  std::string left;
  left.swap(waiting_);
  rest_ = left;
  while (!rest_.empty() && Step() == Next::kGoOn) {
  }
  AtEnd();
  if (call_.calls() == 0 && !space_.empty()) call_.sink()->Content(space_);
  space_.clear();
  rest_ = {};
}

void ToolParser::Flush() {
  Finish();
  final_ = false;
  between_ = true;
  at_rest_ = true;
}

void ToolParser::Take(size_t bytes) {
  call_.Raw(rest_.substr(0, bytes));
  rest_.remove_prefix(bytes);
}

size_t ToolParser::SpaceAhead() const {
  return std::min(rest_.find_first_not_of(kWhiteSpace), rest_.size());
}

void ToolParser::Emit(std::string_view text) {
  if (text.empty()) return;
  if (between_) {
    size_t space = std::min(text.find_first_not_of(kWhiteSpace), text.size());
    if (space == text.size() && space_.size() + space <= kMaxHeldSpace) {
      space_.append(text);
      return;
    }
    between_ = false;
    if (!space_.empty()) call_.sink()->Content(space_);
    space_.clear();
  }
  call_.sink()->Content(text);
}

bool ToolParser::FindStart(Next* next, size_t* start) {
  *next = Next::kGoOn;
  at_rest_ = true;
  MarkerSet::Match match = markers_.Find(rest_, final_);
  Emit(rest_.substr(0, match.begin));
  rest_.remove_prefix(match.begin);
  if (match.kind == MarkerSet::Kind::kAbsent) return false;
  if (match.kind == MarkerSet::Kind::kPartial) {
    *next = Next::kWait;
    return false;
  }
  if (match.marker >= starts_) {
    rest_.remove_prefix(match.length);
    return false;
  }
  *start = match.marker;
  at_rest_ = false;
  return true;
}

void ToolParser::PassText(size_t bytes) {
  Emit(rest_.substr(0, bytes));
  rest_.remove_prefix(bytes);
}

void ToolParser::BeginCall() {
  call_.Begin(space_);
  space_.clear();
}

void ToolParser::EndCall(bool complete) {
  call_.End(complete);
  between_ = !call_.ended_as_text();
}

void ToolParser::RejectCall() {
  call_.Reject();
  EndCall(false);
}

void ToolParser::BeginCalls() {
  BeginCall();
  calls_before_ = calls();
}

void ToolParser::LeaveCalls(bool complete) {
  if (call_.pending() && called()) {
    DropCall();
  } else if (!call_.idle()) {
    EndCall(complete);
  }
}

void ToolParser::DropCall() {
  call_.Drop();
  between_ = true;
}

}  // namespace portico::parser
