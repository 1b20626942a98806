#include "parser/declared/declared_parser.h"

#include <algorithm>
#include <utility>

#include "text/white_space.h"

namespace portico::parser {
namespace {

constexpr size_t kMaxSpace = 256;
// Expressions see so much at once, so that none of them takes long at every byte.
constexpr size_t kSlice = 4096;

using Kind = Pattern::Kind;

constexpr char kBeam[] = R"json({
  "start_anchor_pattern": "<\\|start\\|>assistant",
  "fields": {
    "thinking": {"open": "<|channel|>analysis<|message|>",
                 "close": ["<|end|><|start|>assistant", "<|end|>"]},
    "content": {"open": "<|channel|>final<|message|>", "close": ["<|return|>", "<|end|>", "<|call|>"]},
    "tool_calls": {
      "open_pattern":
        " to=(?P<name>[^\\s<]+)(?: |)<\\|channel\\|>analysis(?: <\\|constrain\\|>xml)?<\\|message\\|>",
      "close": ["<|end|><|start|>assistant", "<|end|>", "<|call|>"],
      "repeats": true,
      "content": "xml-inline",
      "content_args": {
        "tag_pattern": "<rfl:parameter name=\"(?P<key>[^\"]+)\">\\n?(?P<value>.*?)\\n?(?:</rfl:parameter>|(?=<rfl:parameter name=\"))",
        "value_parser": {"name": "text", "args": {"strip": false}}},
      "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}}}
})json";

// All that a model writes has a header that says to whom. Behind one to a tool stand calls; answers need none.
constexpr char kMuse[] = R"json({
  "start_anchor_pattern":
    "(?:<\\|start\\|>assistant)?(?: to=[A-Za-z0-9_.-]+)?<\\|message\\|>|</?atem:function_calls>|<\\|eo[mt]\\|>",
  "fields": {
    "thinking": {"open": [" to=self<|message|>", "<|start|>assistant to=self<|message|>"], "close": "<|eom|>"},
    "content": {},
    "tool_calls": {
      "open_pattern": "<atem:invoke name=\"(?P<name>[^\"<>\\n]+)\">",
      "close": "</atem:invoke>",
      "repeats": true,
      "content": "xml-inline",
      "content_args": {
        "tag_pattern": "<atem:parameter name=\"(?P<key>[^\"<>]+)\"[^<>]*>(?P<value>.*?)</atem:parameter>",
        "value_parser": {"name": "json", "args": {"strip": false}}},
      "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}}}
})json";

std::shared_ptr<const ResponseTemplate> Loaded(const char* text) {
  return ResponseTemplate::Load(Json::Parse(text).value()).value();
}

}  // namespace

std::shared_ptr<const ResponseTemplate> BeamTemplate() {
  static const auto kTemplate = Loaded(kBeam);
  return kTemplate;
}

std::shared_ptr<const ResponseTemplate> MuseTemplate() {
  static const auto kTemplate = Loaded(kMuse);
  return kTemplate;
}

DeclaredParser::DeclaredParser(std::shared_ptr<const ResponseTemplate> format, Options options,
                               const ToolSet& tools, Sink* sink)
    : format_(std::move(format)),
      options_(options),
      sink_(sink),
      call_(tools, sink),
      calls_(&call_) {
  if (options_.inside) region_ = format_->Find(Region::Kind::kReasoning);
}

void DeclaredParser::Feed(std::string_view text) {
  while (!text.empty()) {
    std::string joined = std::move(waiting_);
    waiting_.clear();
    joined.append(text.substr(0, kSlice));
    text.remove_prefix(std::min(kSlice, text.size()));
    rest_ = joined;
    while (!rest_.empty() && Step()) {
    }
    waiting_.assign(rest_);
    rest_ = {};
  }
}

void DeclaredParser::Finish() {
  final_ = true;
  const std::string left = std::move(waiting_);
  waiting_.clear();
  rest_ = left;
  while (!rest_.empty() && Step()) {
  }
  rest_ = {};
  if (region_ != nullptr) Close(false, {});
  if (!space_.empty() && call_.calls() == 0) sink_->Content(std::exchange(space_, {}));
}

bool DeclaredParser::Step() { return region_ == nullptr ? StepOutside() : StepInside(); }

bool DeclaredParser::Verbatim(const Region& region) const {
  return region.kind == Region::Kind::kReasoning && !options_.reasoning;
}

bool DeclaredParser::StepOutside() {
  const Region* opened = nullptr;
  Pattern::Match best;
  best.begin = rest_.size();
  size_t hold = rest_.size();
  const auto look = [&](const Pattern& pattern, const Region* region) {
    Pattern::Match match = pattern.Find(rest_, final_);
    if (match.kind == Kind::kPartial) hold = std::min(hold, match.begin);
    if (match.kind != Kind::kFound || match.begin > best.begin ||
        (match.begin == best.begin && match.length <= best.length)) {
      return;
    }
    best = std::move(match);
    opened = region;
  };
  for (const Region& region : format_->regions) {
    if (region.open) look(*region.open, &region);
  }
  look(format_->anchor, nullptr);
  if (best.kind != Kind::kFound || hold <= best.begin) {
    Outside(rest_.substr(0, hold));
    rest_.remove_prefix(hold);
    if (rest_.empty()) return false;
    if (rest_.size() <= kMaxHeld) return false;
    Outside(rest_.substr(0, 1));  // no delimiter is so long
    rest_.remove_prefix(1);
    return true;
  }
  Outside(rest_.substr(0, best.begin));
  const std::string opener(rest_.substr(best.begin, best.length));
  if (opened != nullptr) {
    region_ = opened;
    skip_ = 0;
    if (opened->kind == Region::Kind::kCalls) {
      calls_.Begin(*opened, opener, best, std::exchange(space_, {}), options_.calls);
    } else if (Verbatim(*opened)) {
      Outside(opener);
    } else {
      space_.clear();
    }
  }
  rest_.remove_prefix(best.begin + best.length);
  return true;
}

void DeclaredParser::Outside(std::string_view text) {
  if (text.empty()) return;
  if (format_->outside >= 0 &&
      format_->regions[static_cast<size_t>(format_->outside)].kind == Region::Kind::kReasoning &&
      options_.reasoning) {
    return sink_->Reasoning(text);
  }
  if (between_) {
    const size_t space = std::min(text.find_first_not_of(kWhiteSpace), text.size());
    if (space == text.size() && space_.size() + space <= kMaxSpace) {
      space_.append(text);
      return;
    }
    between_ = false;
    if (!space_.empty()) sink_->Content(std::exchange(space_, {}));
  }
  sink_->Content(text);
}

bool DeclaredParser::StepInside() {
  Pattern::Match match;
  match.begin = rest_.size();
  if (region_->close && skip_ < rest_.size()) match = region_->close->Find(rest_, final_, skip_);
  Inside(rest_.substr(0, match.begin));
  rest_.remove_prefix(match.begin);
  skip_ = 0;
  if (match.kind == Kind::kAbsent) return !rest_.empty();
  if (region_->kind == Region::Kind::kCalls && calls_.in_string()) {
    Inside(rest_.substr(0, 1));
    rest_.remove_prefix(1);
    return true;
  }
  if (match.kind == Kind::kPartial) {
    if (rest_.size() <= kMaxHeld) return false;
    skip_ = 1;
    return true;
  }
  Close(true, rest_.substr(0, match.length));
  rest_.remove_prefix(match.length);
  return true;
}

void DeclaredParser::Inside(std::string_view text) {
  if (text.empty()) return;
  if (region_->kind == Region::Kind::kCalls) return calls_.Push(text);
  if (region_->kind == Region::Kind::kReasoning && options_.reasoning)
    return sink_->Reasoning(text);
  between_ = false;
  sink_->Content(text);
}

void DeclaredParser::Close(bool complete, std::string_view closer) {
  if (region_->kind == Region::Kind::kCalls) {
    calls_.End(complete, closer);
    between_ = !call_.ended_as_text();
  } else if (Verbatim(*region_) && !closer.empty()) {
    sink_->Content(closer);
  } else {
    between_ = true;
  }
  region_ = nullptr;
}

}  // namespace portico::parser
