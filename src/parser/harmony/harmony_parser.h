// Harmony, the format of gpt-oss: messages with a header that says who speaks to whom on which channel.
#pragma once

#include <string>
#include <string_view>

#include "parser/core/call_writer.h"
#include "parser/core/marker_set.h"
#include "parser/core/sink.h"
#include "parser/json/call_object.h"

namespace portico::parser {

// The special tokens, in the order of HarmonyMarkers().
enum class HarmonyToken { kStart, kChannel, kConstrain, kMessage, kEnd, kCall, kReturn };
const MarkerSet& HarmonyMarkers();

// One stream, as text, or as text with the special tokens told apart; both give one result, but for text that spells a
// special token, which is text where they are told apart. Never fails:
// stray words in a header belong to its message's text, a body without a header is content, a message that does not end ends with the
// text, and a header that never becomes one is content.
//
// `functions.NAME` is a call on any channel; other recipients are tools that the model believes in, and what it says
// to them is reasoning. Channel analysis is reasoning; commentary without a recipient, final and others are content.
class HarmonyParser {
 public:
  struct Options {
    bool calls = true;            // false: what is said to functions is content, verbatim
    bool reasoning = true;        // false: what analysis says is content, verbatim
    bool begins_in_body = false;  // the prompt ended within a message's body, on `channel`
    std::string channel = {};
  };

  // All outlive this.
  HarmonyParser(const ToolSet& tools, Options options, Sink* sink);

  // Text in which special tokens may stand written out.
  void Feed(std::string_view text);
  // A special token; text before it has been fed.
  void FeedToken(HarmonyToken token);
  // Text without special tokens in it.
  void FeedPlain(std::string_view text);
  void Finish();

  int calls() const { return call_.calls(); }
  int rejected() const { return call_.rejected() + repaired_; }
  bool in_reasoning() const { return at_ == At::kBody && kind_ == Kind::kReasoning; }

 private:
  enum class At { kOutside, kHeader, kBody };
  enum class Kind { kContent, kReasoning, kCall };

  void BeginBody();
  void CallBody(std::string_view text);
  void EndMessage(bool complete);
  void Body(std::string_view text);
  void HeaderIsText();
  bool MayBeHeader() const;
  Kind KindOf(std::string_view recipient, std::string_view channel) const;

  CallWriter call_;
  Options options_;
  Sink* const sink_;
  At at_ = At::kOutside;
  Kind kind_ = Kind::kContent;
  bool verbatim_ = false;  // the message is content with its markers
  bool begun_ = false;     // a message's body or header was seen
  std::string raw_;        // of the header
  std::string header_;     // with markers as single bytes below 8
  std::string waiting_;
  CallObject object_;  // the arguments
  int repaired_ = 0;
};

}  // namespace portico::parser
