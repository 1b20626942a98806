// A call as a JSON object: `{"name": …, "arguments": …}`, in any order, byte by byte.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "parser/core/call_writer.h"
#include "parser/core/marker_set.h"
#include "parser/json/literal_relay.h"

namespace portico::parser {

// Gives what it reads to a CallWriter, whose candidate has begun. Names: "name", "function"; arguments:
// "arguments", "parameters", "args". `{"function": {…}}` is read as what it holds. Arguments that are a JSON string are
// the object or list that it holds, and text behind that is content; without one they are the string. Other members are read
// over.
class CallObject {
 public:
  enum class State { kOpen, kDone, kBad };

  explicit CallObject(CallWriter* call) : call_(*call) {}

  struct Options {
    bool key_is_name = false;  // its only key is the name, and its value the arguments (Apertus)
    bool tool_name = false;    // "tool_name" is a key of names too (Cohere)
    bool python = false;       // words and escapes are Python's
    bool bare = false;         // in plain text: beside other members it needs arguments
  };

  // A new object.
  void Begin(Options options);
  void Begin() { Begin(Options{}); }
  // A new value that is the arguments alone, of a call whose name is known.
  void BeginArguments();

  // Reads what belongs to the object, and returns how much. Every byte that it counts has gone through
  // CallWriter::Raw(). kBad: the next byte belongs to no call; the candidate is still open.
  size_t Push(std::string_view text);
  // As Push(), up to one of `stops` outside of strings, which ends what is open once this is a call: kStop, and it stands
  // at `text`; kUnknown: more text must tell. `final`: nothing follows.
  enum class Reach { kGoOn, kStop, kUnknown };
  Reach PushUntil(const MarkerSet& stops, std::string_view text, bool final, size_t* used);
  // The text of the object ends here: closes the arguments.
  void Close();
  // The text was cut off here: passes on what the arguments hold. What had come to its name, and has bytes that belong to
  // neither, is no call.
  void Cut();
  // Text behind the arguments that is no part of the call: content, once it is a call, without the white space before it.
  void Stray(std::string_view text);

  State state() const { return state_; }
  // Not a byte but white space was read.
  bool untouched() const { return at_ == At::kStart || (alone_ && at_ == At::kValue); }
  // The arguments are whole.
  bool arguments_done() const { return arguments_done_; }
  // The arguments make no sense; only a marker ends them.
  bool broken() const { return at_ == At::kArguments && relay_.broken(); }
  bool in_string() const {
    return at_ == At::kKey || at_ == At::kName || relay_.in_string() || at_ == At::kTextArguments ||
           (at_ == At::kSkip && skip_.in_string());
  }

 private:
  enum class At {
    kStart,
    kKeyOrEnd,
    kKey,
    kColon,
    kValue,
    kName,
    kArguments,
    kTextArguments,
    kSkip,
    kNext,
  };

  // False: `c` does not belong here.
  bool PushByte(char c);
  bool PushKeyByte(char c);
  bool EndKey();
  bool BeginValue(char c);
  bool PushDecoded(char c);
  // What comes behind it is `rest`.
  bool EndEscape(std::string_view rest);
  bool Decoded(std::string_view text);
  bool DecodedJson(std::string_view text);
  // What ends the arguments, to `out_`.
  void CloseDecoded();
  bool EndDecoded();
  bool Relay(std::string_view text, size_t* used);
  bool EndObject();
  bool SetName();
  bool IsCutWithinOther() const;

  CallWriter& call_;
  State state_ = State::kOpen;
  At at_ = At::kStart;
  Options options_;
  bool alone_ = false;     // the arguments are all there is
  bool not_used_ = false;  // the byte that PushByte() looked at last
  bool arguments_done_ = false;
  bool other_keys_ = false;
  bool opened_ = false;  // the arguments' bracket was read, and nothing behind it
  bool plain_ = false;   // the arguments are a string
  int nesting_ = 0;      // of {"function": {…}}
  char quote_ = '"';
  std::string text_;  // a key or name so far, as written; arguments in quotes that may be null
  std::string key_;
  std::string escape_;  // of kTextArguments
  bool strayed_ = false;
  std::string stray_;  // Stray() of what is no call yet
  LiteralRelay relay_;
  LiteralRelay skip_;
  std::string out_;
};

}  // namespace portico::parser
