#include "parser/declared/families.h"

#include <utility>

#include "parser/declared/declared_parser.h"
#include "text/json_writer.h"

namespace portico::parser {
namespace {

// Calls alone, for a model whose reasoning another family reads.
class DeclaredToolParser final : public ToolParser {
 public:
  DeclaredToolParser(std::shared_ptr<const ResponseTemplate> format, const ToolSet& tools,
                     Sink* sink)
      : ToolParser(NoMarkers(), 0, tools, sink),
        parser_(std::move(format), {.calls = true, .reasoning = false, .inside = false}, tools,
                sink) {}

 private:
  static const MarkerSet& NoMarkers() {
    static const MarkerSet* const kNone = new MarkerSet;
    return *kNone;
  }

  Next Step() override {
    parser_.Feed(rest());
    Skip(rest().size());
    return Next::kGoOn;
  }
  void AtEnd() override { parser_.Finish(); }

  DeclaredParser parser_;
};

bool IsDeclared(std::string_view name) {
  return name == kDeclaredName || name == "beam" || name == "muse";
}

}  // namespace

DeclaredTools::DeclaredTools(std::string of, std::shared_ptr<const ResponseTemplate> declared)
    : format(std::move(declared)) {
  name = std::move(of);
  markers = format->markers;
  frames = true;
  make = [shared = format](const ToolSet& tools, Sink* sink) {
    return std::make_unique<DeclaredToolParser>(shared, tools, sink);
  };
}

DeclaredReasoning::DeclaredReasoning(std::string of,
                                     std::shared_ptr<const ResponseTemplate> declared)
    : format(std::move(declared)) {
  name = std::move(of);
  markers = format->markers;
  ReasoningFamily family;
  if (const Region* region = format->Find(Region::Kind::kReasoning)) {
    family.starts = region->opens;
    family.ends = region->closes;
  }
  splitter = std::make_shared<const ReasoningSplitter::Compiled>(std::move(family));
}

std::shared_ptr<const ResponseTemplate> DeclaredFormat(const ToolFamily* family) {
  if (family == nullptr || !IsDeclared(family->name)) return nullptr;
  return static_cast<const DeclaredTools*>(family)->format;
}

std::shared_ptr<const ResponseTemplate> DeclaredFormat(const ReasoningChoice* choice) {
  if (choice == nullptr || !IsDeclared(choice->name)) return nullptr;
  return static_cast<const DeclaredReasoning*>(choice)->format;
}

std::optional<CallForm> DeclaredCallForm(const ResponseTemplate& format) {
  const Region* const calls = format.Find(Region::Kind::kCalls);
  const auto is_member = [](const CallPart& part) { return part.in == CallPart::In::kMember; };
  if (calls == nullptr || calls->body != Region::Body::kJson || calls->opens.empty() ||
      calls->closes.empty() || !calls->quotes.empty() || calls->bare_keys ||
      !is_member(calls->name) || !is_member(calls->arguments)) {
    return std::nullopt;
  }
  const auto key = [](const CallPart& part) {
    std::string quoted;
    AppendJsonString(part.name, &quoted);
    return quoted;
  };
  CallForm form;
  form.before_name = "{" + key(calls->name) + ": \"";
  form.after_name = "\", " + key(calls->arguments) + ": ";
  form.end = "}";
  const std::string& open = calls->opens.front();
  const std::string& close = calls->closes.front();
  form.begins = open;
  if (calls->each) {
    form.section = open + "[";
    form.separator = ", ";
    form.section_end = "]" + close;
  } else {
    form.before_name = open + form.before_name;
    form.end += close;
  }
  return form;
}

}  // namespace portico::parser
