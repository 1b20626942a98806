// Splits what a model says to itself from what it says to the user, where markers stand around the former.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "parser/core/marker_set.h"

namespace portico::parser {

struct ReasoningFamily {
  std::vector<std::string> starts = {};
  std::vector<std::string> ends = {};
  bool suffixed = false;  // tags may have a suffix (MarkerSet)
  bool inside = false;    // an answer begins inside, and its start marker is missing
  std::vector<std::string> calls =
      {};  // markers of calls, which end it too and are part of what follows
  bool calls_at_line_start = false;       // only where a line begins
  bool calls_inside = false;              // calls stand within, and it goes on behind them
  bool again = false;                     // it may come more than once
  bool drop_stray_ends = false;           // an end without a start is no text
  std::vector<std::string> dropped = {};  // framing of the answer
  std::string before_content = {};        // put before the answer, which is not split
};

// One stream. The results are the same wherever it was cut; every byte is reasoning, content or a marker.
class ReasoningSplitter {
 public:
  struct Compiled {
    explicit Compiled(ReasoningFamily family);
    ReasoningFamily family;
    MarkerSet outside;  // starts, ends, dropped
    MarkerSet after;    // ends, dropped: where it does not come again
    MarkerSet begins;   // starts
    MarkerSet inside;   // ends, calls
  };

  // Takes a piece of one of the two. An end of reasoning is told by an empty piece of it.
  struct Target {
    virtual ~Target() = default;
    virtual void OnReasoning(std::string_view text) = 0;
    virtual void OnReasoningEnd() = 0;
    virtual void OnContent(std::string_view text) = 0;
  };

  // `target` outlives this.
  ReasoningSplitter(std::shared_ptr<const Compiled> family, bool inside, Target* target);

  void Feed(std::string_view text);
  void Finish();

  bool inside() const { return at_ == At::kInside; }
  // Nothing is held, and content goes through unread.
  bool passes() const { return passes_ && waiting_.empty(); }

 private:
  enum class At { kOutside, kInside, kAfter };

  bool Step();  // false: needs more text
  bool StepInside();
  bool StepOutside();
  void Reason(std::string_view text);
  void Leave();

  std::shared_ptr<const Compiled> family_;
  Target* const target_;
  At at_;
  // Inside, and only white space so far: a start marker repeats the prompt's. Behind one of the answer's own it is a part
  // of the reasoning, but where it may come again.
  bool fresh_;
  bool passes_ = false;
  bool final_ = false;
  char last_ = '\n';  // of the reasoning
  std::string_view rest_;
  std::string waiting_;
};

}  // namespace portico::parser
