#include "service/output/parsed_output.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "parser/declared/families.h"

namespace portico {
namespace {

std::string RandomText(std::string_view alphabet, size_t length) {
  static thread_local std::mt19937_64 random = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  std::string text(length, '0');
  std::uniform_int_distribution<size_t> letter(0, alphabet.size() - 1);
  for (char& c : text) c = alphabet[letter(random)];
  return text;
}

// What a parser that has been fed nothing looks for, where it gives all other text as content and is then as before; null: it
// does not. The format's.
const parser::MarkerSet* MarkersAtStart(const parser::OutputFormat& format) {
  const parser::ReasoningChoice* reasoning = format.reasoning;
  // White space in front of a first call is held.
  if (format.tools != nullptr || reasoning == nullptr || reasoning->splitter == nullptr ||
      reasoning->harmony || parser::DeclaredFormat(reasoning) != nullptr || format.in_reasoning) {
    return nullptr;
  }
  const parser::ReasoningSplitter::Compiled& splitter = *reasoning->splitter;
  return splitter.family.before_content.empty() ? &splitter.outside : nullptr;
}

bool HasOnlyTags(const parser::ReasoningFamily& family) {
  const auto are_tags = [](const std::vector<std::string>& markers) {
    return std::all_of(markers.begin(), markers.end(),
                       [](const std::string& m) { return m.empty() || m.front() == '<'; });
  };
  return are_tags(family.starts) && are_tags(family.ends) && are_tags(family.dropped);
}

}  // namespace

std::string NewCallId(parser::CallIds ids, std::string_view name, int32_t number) {
  switch (ids) {
    case parser::CallIds::kRandom:
      break;
    case parser::CallIds::kNineCharacters:
      return RandomText("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 9);
    case parser::CallIds::kFunctionsCounter:
      return "functions." + std::string(name) + ":" + std::to_string(number);
    case parser::CallIds::kNameCounter:
      return std::string(name) + ":" + std::to_string(number);
  }
  return "call_" + RandomText("0123456789abcdef", 24);
}

ParsedOutput::ParsedOutput(std::shared_ptr<const OutputPlan> plan)
    : plan_(std::move(plan)), plain_(MarkersAtStart(plan_->format)) {
  if (plain_ != nullptr) only_tags_ = HasOnlyTags(plan_->format.reasoning->splitter->family);
}

parser::OutputParser& ParsedOutput::Parser() {
  if (parser_ == nullptr) {
    plain_ = nullptr;
    parser_ = parser::OutputParser::Make(plan_->format, plan_->tools, this);
  }
  return *parser_;
}

void ParsedOutput::Feed(std::string_view text, TextDelta* delta) {
  delta_ = delta;
  if (text.empty()) return;
  Parser().Feed(text);
}

void ParsedOutput::FeedToken(TokenId token, std::string_view text, std::string_view spelled,
                             TextDelta* delta) {
  delta_ = delta;
  const bool marker = IsMarker(token) && text.ends_with(spelled);
  // What was held back of a character that did not get complete comes in front.
  if (marker) text.remove_suffix(spelled.size());
  if (!text.empty()) Parser().FeedPlain(text);
  if (marker) Parser().FeedMarker(spelled);
}

void ParsedOutput::Finish(TextDelta* delta) {
  delta_ = delta;
  // Of plain text nothing is held.
  if (plain_ == nullptr) Parser().Finish();
  ReleaseReasoning();
}

void ParsedOutput::Content(std::string_view text) {
  ReleaseReasoning();
  delta_->text.append(text);
}

void ParsedOutput::Reasoning(std::string_view text) {
  (plan_->stream_reasoning ? delta_->reasoning : held_reasoning_).append(text);
}

void ParsedOutput::ReleaseReasoning() {
  if (held_reasoning_.empty()) return;
  delta_->reasoning.append(held_reasoning_);
  held_reasoning_.clear();
}

void ParsedOutput::BeginCall(std::string_view name, std::string_view id) {
  ReleaseReasoning();
  ToolCallPiece piece;
  piece.index = calls_++;
  piece.id =
      id.empty() ? NewCallId(plan_->ids, name, plan_->calls_before + calls_ - 1) : std::string(id);
  piece.name = name;
  piece.text_before = delta_->text.size();
  delta_->calls.push_back(std::move(piece));
  last_complete_ = false;
}

ToolCallPiece& ParsedOutput::Piece() {
  const int32_t index = calls_ - 1;
  if (delta_->calls.empty() || delta_->calls.back().index != index) {
    ToolCallPiece piece;
    piece.index = index;
    piece.text_before = delta_->text.size();
    delta_->calls.push_back(std::move(piece));
  }
  return delta_->calls.back();
}

void ParsedOutput::Arguments(std::string_view json) { Piece().arguments.append(json); }

void ParsedOutput::EndCall(bool complete) {
  ToolCallPiece& piece = Piece();
  piece.ends = true;
  piece.complete = complete;
  last_complete_ = complete;
}

}  // namespace portico
