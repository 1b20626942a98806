// What all parsers of tool calls share: the text in front of calls, the bytes that wait, the candidate call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "parser/core/call_writer.h"
#include "parser/core/marker_set.h"
#include "parser/core/sink.h"
#include "parser/core/tool_set.h"

namespace portico::parser {

// One stream of text. Feed it as it comes and Finish() it; the sink gets the same calls and the same text wherever the
// stream was cut. Never fails: what is no call is content. Time is linear in the text, memory is bounded by
// CallWriter::kMaxHeldBytes and what a value's nesting takes. Not for two threads at once.
class ToolParser {
 public:
  static constexpr size_t kMaxName = 256;  // bytes
  // What stands farther away ends no name. Looking no farther keeps a thousand openers linear.
  static constexpr size_t kNameWindow = 2 * kMaxName;
  static constexpr size_t kMaxSpace = 64;  // between a call and its end marker

  virtual ~ToolParser() = default;
  ToolParser(const ToolParser&) = delete;
  ToolParser& operator=(const ToolParser&) = delete;

  void Feed(std::string_view text);
  void Finish();
  // The text ends here, and another begins.
  void Flush();

  int calls() const { return call_.calls(); }
  // Text that looked like a call and was none, so far.
  int rejected() const { return call_.rejected(); }
  // Plain text goes through at once: no call is open and no byte waits.
  bool at_rest() const { return at_rest_ && waiting_.empty(); }

 protected:
  enum class Next { kGoOn, kWait };

  // `markers`: the first `starts` of them are where a call may begin; the others are no part of the text. All outlive
  // this.
  ToolParser(const MarkerSet& markers, size_t starts, const ToolSet& tools, Sink* sink)
      : call_(tools, sink), markers_(markers), starts_(starts) {}

  // One step: looks at rest(), takes what it can. kGoOn after any change of state, kWait where more text is needed;
  // never kWait if final(), unless nothing is left.
  virtual Next Step() = 0;
  // The text has ended, and what was left was taken.
  virtual void AtEnd() = 0;

  std::string_view rest() const { return rest_; }
  bool final() const { return final_; }
  // The next bytes belong to the candidate, if there is one.
  void Take(size_t bytes);
  // The next bytes are markers or white space between them that belong to no candidate.
  void Skip(size_t bytes) { rest_.remove_prefix(bytes); }

  // Step() in text: passes on what is text. When a start stands at rest(), returns true and leaves it there.
  // White space between calls, and in front of the first where nothing else is there, is no text.
  bool FindStart(Next* next, size_t* start);
  // No text came since the last call, or since the beginning.
  bool between() const { return between_; }
  // The next bytes are text.
  void PassText(size_t bytes);
  // A candidate begins at rest(), ends, or was nothing but markers.
  void BeginCall();
  void EndCall(bool complete);
  void DropCall();
  // The candidate was no call: its bytes are text.
  void RejectCall();
  // As BeginCall(), where several calls may follow one another.
  void BeginCalls();
  // Whether one of them has come.
  bool called() const { return calls() > calls_before_; }
  // They are over. A candidate behind a call was nothing but markers; any other ends.
  void LeaveCalls(bool complete = true);
  // Bytes of white space in front of rest().
  size_t SpaceAhead() const;

  CallWriter call_;

 private:
  void Emit(std::string_view text);

  const MarkerSet& markers_;
  const size_t starts_;
  std::string_view rest_;
  bool final_ = false;
  int calls_before_ = 0;  // BeginCalls()
  bool between_ = true;   // only white space since the last call, or since the beginning
  bool at_rest_ = true;   // in text
  std::string space_;     // held while between_
  std::string waiting_;   // bytes that the last Feed() left
};

}  // namespace portico::parser
