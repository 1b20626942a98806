#include "parser/output_parser.h"

#include <optional>

#include "parser/declared/declared_parser.h"
#include "parser/declared/families.h"
#include "parser/harmony/harmony_parser.h"

namespace portico::parser {
namespace {

// Reasoning in front of calls.
class SplitOutput final : public OutputParser, private ReasoningSplitter::Target, private Sink {
 public:
  SplitOutput(const OutputFormat& format, const ToolSet& tools, Sink* sink) : sink_(sink) {
    if (format.tools != nullptr) {
      calls_inside_ = format.tools->inside_reasoning;
      tools_ = format.tools->make(tools, this);
    }
    if (format.reasoning != nullptr) {
      splitter_.emplace(format.reasoning->splitter, format.in_reasoning,
                        static_cast<ReasoningSplitter::Target*>(this));
    }
  }

  void Feed(std::string_view text) override {
    if (splitter_) {
      splitter_->Feed(text);
    } else {
      OnContent(text);
    }
  }

  void Finish() override {
    if (splitter_) splitter_->Finish();
    if (tools_) tools_->Finish();
  }

  int rejected() const override { return tools_ ? tools_->rejected() : 0; }
  bool in_reasoning() const override { return splitter_ && splitter_->inside(); }

 private:
  void OnReasoning(std::string_view text) override {
    if (!calls_inside_ || !tools_) return sink_->Reasoning(text);
    if (!tools_reason_) tools_->Flush();
    tools_reason_ = true;
    tools_->Feed(text);
  }
  void OnReasoningEnd() override {
    if (tools_reason_) tools_->Flush();
    tools_reason_ = false;
  }
  void OnContent(std::string_view text) override {
    if (tools_) {
      tools_->Feed(text);
    } else if (!text.empty()) {
      sink_->Content(text);
    }
  }

  void Content(std::string_view text) override {
    if (tools_reason_) return sink_->Reasoning(text);
    sink_->Content(text);
  }
  void Reasoning(std::string_view text) override { sink_->Reasoning(text); }
  void BeginCall(std::string_view name, std::string_view id) override {
    sink_->BeginCall(name, id);
  }
  void Arguments(std::string_view json) override { sink_->Arguments(json); }
  void EndCall(bool complete) override { sink_->EndCall(complete); }

  Sink* const sink_;
  bool calls_inside_ = false;
  bool tools_reason_ = false;  // what the tool parser calls content is reasoning
  std::unique_ptr<ToolParser> tools_;
  std::optional<ReasoningSplitter> splitter_;
};

// Reasoning as a checkpoint declares it; what it calls content may be calls of another format.
class DeclaredOutput final : public OutputParser, private Sink {
 public:
  DeclaredOutput(const OutputFormat& format, const ToolSet& tools, Sink* sink)
      : sink_(sink),
        parser_(DeclaredFormat(format.reasoning),
                {.calls = false, .reasoning = true, .inside = format.in_reasoning}, tools, this),
        tools_(format.tools->make(tools, sink)) {}

  void Feed(std::string_view text) override { parser_.Feed(text); }
  void Finish() override {
    parser_.Finish();
    tools_->Finish();
  }
  int rejected() const override { return tools_->rejected(); }
  bool in_reasoning() const override { return parser_.in_reasoning(); }

 private:
  void Content(std::string_view text) override { tools_->Feed(text); }
  void Reasoning(std::string_view text) override { sink_->Reasoning(text); }
  void BeginCall(std::string_view, std::string_view) override {}
  void Arguments(std::string_view) override {}
  void EndCall(bool) override {}

  Sink* const sink_;
  DeclaredParser parser_;
  std::unique_ptr<ToolParser> tools_;
};

class HarmonyOutput final : public OutputParser {
 public:
  HarmonyOutput(const OutputFormat& format, const ToolSet& tools, Sink* sink)
      : parser_(tools,
                {.calls = format.tools != nullptr,
                 .reasoning = format.reasoning != nullptr,
                 .begins_in_body = false,
                 .channel = {}},
                sink) {}

  void Feed(std::string_view text) override { parser_.Feed(text); }
  void Finish() override { parser_.Finish(); }
  void FeedMarker(std::string_view text) override {
    const MarkerSet::Match match = HarmonyMarkers().At(text, /*final=*/true);
    if (match.kind != MarkerSet::Kind::kFound || match.length != text.size()) return Feed(text);
    parser_.FeedToken(static_cast<HarmonyToken>(match.marker));
  }
  void FeedPlain(std::string_view text) override { parser_.FeedPlain(text); }
  int rejected() const override { return parser_.rejected(); }
  bool in_reasoning() const override { return parser_.in_reasoning(); }

 private:
  HarmonyParser parser_;
};

}  // namespace

std::unique_ptr<OutputParser> OutputParser::Make(const OutputFormat& format, const ToolSet& tools,
                                                 Sink* sink) {
  const bool harmony = (format.tools != nullptr && format.tools->harmony) ||
                       (format.reasoning != nullptr && format.reasoning->harmony);
  if (harmony) return std::make_unique<HarmonyOutput>(format, tools, sink);
  auto calls = DeclaredFormat(format.tools);
  auto reasoning = DeclaredFormat(format.reasoning);
  if (reasoning != nullptr && format.tools != nullptr && calls == nullptr) {
    return std::make_unique<DeclaredOutput>(format, tools, sink);
  }
  if (reasoning != nullptr || (calls != nullptr && format.reasoning == nullptr)) {
    const DeclaredParser::Options options = {.calls = calls != nullptr,
                                             .reasoning = reasoning != nullptr,
                                             .inside = format.in_reasoning};
    return std::make_unique<DeclaredParser>(calls != nullptr ? calls : reasoning, options, tools,
                                            sink);
  }
  return std::make_unique<SplitOutput>(format, tools, sink);
}

}  // namespace portico::parser
