// Calls as tags in tags, each value a tag named by its key: MiniMax-M3's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parser/json/value_writer.h"
#include "parser/tool/tool_parser.h"

namespace portico::parser {

// Every tag has this before it: `]<]minimax[>[<invoke name="f">`, `]<]minimax[>[<key>value]<]minimax[>[</key>`.
struct NestedFamily {
  std::string mark = "]<]minimax[>[";
};

class NestedCalls final : public ToolParser {
 public:
  struct Compiled {
    explicit Compiled(NestedFamily family);
    NestedFamily family;
    MarkerSet text;
    MarkerSet mark;
  };

  NestedCalls(std::shared_ptr<const Compiled> family, const ToolSet& tools, Sink* sink);

 private:
  enum class At { kText, kSection, kBody, kValue };
  enum class Shape { kUnknown, kScalar, kObject, kArray };

  // A key whose value is read.
  struct Level {
    std::string tag;
    const ValueTypes* types = nullptr;
    Shape shape = Shape::kUnknown;
    int members = 0;
  };

  Next Step() override;
  void AtEnd() override;
  Next StepText();
  Next StepSection();
  Next StepInside();
  void OpenTag(const std::string& tag);
  void CloseTag(const std::string& tag);
  void CloseLevel();
  void BeginText(Level* level);
  void BeginTags(Level* level, std::string_view tag);
  void Stray(std::string_view text);
  // Reads a tag behind the mark: true if it is whole. `bytes` counts the mark and the tag.
  bool ReadTag(std::string* tag, size_t* bytes, bool* wait) const;
  void EndInvoke(bool complete);
  Next Leave();
  Next NoCall();

  std::shared_ptr<const Compiled> family_;
  ValueWriter value_;
  At at_ = At::kText;
  int members_ = 0;
  bool stray_ = false;  // within text that is no part of the call
  std::vector<Level> levels_;
  std::string out_;
};

}  // namespace portico::parser
