// One choice's output while it is read: what parsers make of it goes into deltas.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "message/text_delta.h"
#include "parser/core/marker_set.h"
#include "parser/core/sink.h"
#include "parser/output_parser.h"
#include "service/output/output_plan.h"

namespace portico {

// An id as the family writes it, for a call whose text had none: the call of `number`, counted over the conversation.
std::string NewCallId(parser::CallIds ids, std::string_view name, int32_t number);

class ParsedOutput final : private parser::Sink {
 public:
  explicit ParsedOutput(std::shared_ptr<const OutputPlan> plan);

  // Feed() would append `text` to the delta's text, and do nothing else: it need not be called.
  bool IsPlain(std::string_view text) const {
    if (plain_ == nullptr) return false;
    return (only_tags_ && text.find('<') == std::string_view::npos) ||
           plain_->Find(text, false).kind == parser::MarkerSet::Kind::kAbsent;
  }
  // Text of the next tokens goes to `delta`, as text, reasoning and calls.
  void Feed(std::string_view text, TextDelta* delta);
  // The same of one token, whose own text is `spelled` if it is special: what spells a marker may be none.
  void FeedToken(TokenId token, std::string_view text, std::string_view spelled, TextDelta* delta);
  // The output has ended.
  void Finish(TextDelta* delta);

  // The token is one of reasoning, if the next one is. After a call of Feed().
  bool in_reasoning() { return plain_ == nullptr && Parser().in_reasoning(); }
  // There are calls, and the last of them is whole.
  bool ends_in_calls() const { return calls_ > 0 && last_complete_; }
  // A special token, which clients need not see, has to reach the parser.
  bool IsMarker(TokenId token) const { return plan_->markers->contains(token); }
  // FeedToken() tells more than Feed().
  bool marked_by_tokens() const { return plan_->marked_by_tokens; }
  int rejected() const { return parser_ == nullptr ? 0 : parser_->rejected(); }

 private:
  void Content(std::string_view text) override;
  void Reasoning(std::string_view text) override;
  void BeginCall(std::string_view name, std::string_view id) override;
  void Arguments(std::string_view json) override;
  void EndCall(bool complete) override;
  void ReleaseReasoning();
  ToolCallPiece& Piece();
  // Made for the first text that is not plain. It may give something at once, to delta_.
  parser::OutputParser& Parser();

  std::shared_ptr<const OutputPlan> plan_;
  // What the parser, which has been fed nothing, would look for; null: there is one, or all text is for it.
  const parser::MarkerSet* plain_;
  bool only_tags_ = false;  // all that it would look for begins with "<"
  std::unique_ptr<parser::OutputParser> parser_;
  TextDelta* delta_ = nullptr;
  std::string held_reasoning_;  // where it does not stream
  int32_t calls_ = 0;
  bool last_complete_ = false;
};

}  // namespace portico
