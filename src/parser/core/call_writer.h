// Decides when text that looks like a tool call is one.
//
// The rule: a candidate is held, byte for byte, until its name is complete and known and its arguments have begun as
// arguments do. From then on it is a call, and what follows of it are arguments. Before that it can still turn out to be
// text, and then it is text, unchanged; a call of a tool that nobody offered is text to its end.
//
// Where no name is known (ToolSet::names_known()) a name makes no call. There the whole call is held: it is one if the
// model finished it with whole arguments, and text otherwise. One that is too long to be held is a call.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "parser/core/sink.h"
#include "parser/core/tool_set.h"

namespace portico::parser {

// What a call gave to its sink, kept for later.
class HeldCall final : public Sink {
 public:
  void Content(std::string_view text) override { Add(Piece::kContent, text); }
  void Reasoning(std::string_view text) override { Add(Piece::kReasoning, text); }
  void BeginCall(std::string_view name, std::string_view id) override;
  void Arguments(std::string_view json) override { Add(Piece::kArguments, json); }
  void EndCall(bool complete) override;
  // Gives all of it to `sink`, and keeps nothing.
  void PassOn(Sink* sink);
  void Clear() { pieces_.clear(); }

 private:
  struct Piece {
    enum Kind { kContent, kReasoning, kBegin, kArguments, kEnd, kCutEnd };
    Kind kind;
    std::string text;
    std::string id = {};
  };
  // More of the last piece, where it is of that kind.
  void Add(Piece::Kind kind, std::string_view text);

  std::vector<Piece> pieces_;
};

class CallWriter {
 public:
  // Of a candidate that is no call yet, and of arguments before a name; beyond that it is text. Of a call that waits for
  // its end; beyond that it is a call.
  static constexpr size_t kMaxHeldBytes = size_t{1} << 20;

  // Both outlive this.
  CallWriter(const ToolSet& tools, Sink* sink) : tools_(tools), sink_(sink) {}

  // A candidate begins. Requires idle(). `lead`: white space in front of it, which is text if it is text.
  void Begin(std::string_view lead = {});
  // Bytes of the candidate as the model wrote them. Every byte of a candidate goes through here, arguments too.
  // False: too much is held, and the candidate became text.
  bool Raw(std::string_view bytes) {
    if (bytes.empty() || (state_ == State::kCommitted && !waits_)) return true;
    return Keep(bytes);
  }

  // The candidate's name. `id` as Sink::BeginCall() has it. False: nobody offers this tool, and the candidate is text
  // to its end.
  bool SetName(std::string_view name, std::string_view id = {});
  // Arguments, JSON, a word in one piece; `null` is an empty object. Held while there is no name, and while they are too
  // short to be told from other text. False: what came cannot begin arguments, so this candidate is no call; the caller
  // rejects it.
  bool Arguments(std::string_view json);
  // Text of a call that is no part of it: content. Of a candidate it stays with its bytes.
  void Stray(std::string_view text);
  // It is a call from here on, whatever its arguments are.
  void Commit();
  // Its arguments are not whole or have words that are no JSON, or its end marker is missing. Where names are known this
  // changes nothing.
  void Doubt() { doubtful_ = true; }
  // The candidate is text.
  void Reject();
  // The candidate is markers, and they are dropped.
  void Drop();
  // The candidate has ended. Of a call without arguments they are `{}`.
  void End(bool complete);

  bool idle() const { return state_ == State::kIdle; }
  bool pending() const { return state_ == State::kPending; }
  bool committed() const { return state_ == State::kCommitted; }
  bool is_text() const { return state_ == State::kText; }
  // How the last candidate ended.
  bool ended_as_text() const { return ended_as_text_; }
  bool has_name() const { return !name_.empty(); }
  const std::string& name() const { return name_; }
  // Calls so far.
  int calls() const { return calls_; }
  // Candidates that became text so far.
  int rejected() const { return rejected_; }
  const ToolSet& tools() const { return tools_; }
  // Where content goes, also that of a call which is still held.
  Sink* sink() { return waits_ ? &later_ : sink_; }

 private:
  enum class State { kIdle, kPending, kCommitted, kText };

  bool Keep(std::string_view bytes);
  void Settle(bool is_call);

  const ToolSet& tools_;
  Sink* const sink_;
  State state_ = State::kIdle;
  bool any_arguments_ = false;
  bool begun_ = false;  // what is held begins as arguments do
  bool ended_as_text_ = false;
  bool waits_ = false;  // kCommitted, and held to its end
  bool doubtful_ = false;
  HeldCall later_;  // waits_
  std::string raw_;
  std::string name_;
  std::string id_;
  std::string held_;  // arguments
  int calls_ = 0;
  int rejected_ = 0;
};

}  // namespace portico::parser
