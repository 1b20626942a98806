// Reads answers in the format that a checkpoint declares (response_template.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "parser/declared/declared_calls.h"
#include "parser/declared/response_template.h"
#include "parser/output_parser.h"

namespace portico::parser {

// A delimiter is found where it is complete, the first and longest of those that may stand there. Text outside of all
// regions is content where no field takes it; white space between regions is framing. A delimiter of more than kMaxHeld
// bytes is none.
class DeclaredParser final : public OutputParser {
 public:
  static constexpr size_t kMaxHeld = 4096;

  struct Options {
    bool calls = true;      // false: they are content, verbatim
    bool reasoning = true;  // false: it is content, verbatim
    bool inside = false;    // the text begins in the region of reasoning
  };

  // `tools` and `sink` outlive this.
  DeclaredParser(std::shared_ptr<const ResponseTemplate> format, Options options,
                 const ToolSet& tools, Sink* sink);

  void Feed(std::string_view text) override;
  void Finish() override;
  int rejected() const override { return call_.rejected(); }
  bool in_reasoning() const override {
    return region_ != nullptr && region_->kind == Region::Kind::kReasoning;
  }

 private:
  // False: more text is needed.
  bool Step();
  bool StepOutside();
  bool StepInside();
  void Outside(std::string_view text);
  void Inside(std::string_view text);
  void Close(bool complete, std::string_view closer);
  bool Verbatim(const Region& region) const;

  std::shared_ptr<const ResponseTemplate> format_;
  const Options options_;
  Sink* const sink_;
  CallWriter call_;
  DeclaredCalls calls_;
  const Region* region_ = nullptr;  // null: outside
  std::string_view rest_;
  size_t skip_ = 0;  // of rest_: a delimiter there is a part of a string
  bool final_ = false;
  bool between_ = true;  // no text came since the last region
  std::string space_;    // that came there
  std::string waiting_;
};

// Beam's (SGLang's built-in template for it).
std::shared_ptr<const ResponseTemplate> BeamTemplate();
// Muse's.
std::shared_ptr<const ResponseTemplate> MuseTemplate();

}  // namespace portico::parser
