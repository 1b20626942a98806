// Families whose format is declared (response_template.h): a checkpoint's own, and those that are known beforehand.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "parser/declared/response_template.h"
#include "parser/reasoning/families.h"
#include "parser/tool/call_forms.h"
#include "parser/tool/families.h"

namespace portico::parser {

// The names of what a checkpoint itself declares (SGLang's, vLLM's), which FindToolFamily() and FindReasoning() do not know.
inline constexpr char kDeclaredName[] = "response_template";
inline bool IsDeclaredName(std::string_view name) { return name == kDeclaredName || name == "hf"; }

// DeclaredParser reads calls and reasoning of these together. Families called kDeclaredName, "beam" or "muse" are of these
// types, and no others.
struct DeclaredTools : ToolFamily {
  explicit DeclaredTools(std::string name, std::shared_ptr<const ResponseTemplate> format);
  std::shared_ptr<const ResponseTemplate> format;
};
struct DeclaredReasoning : ReasoningChoice {
  explicit DeclaredReasoning(std::string name, std::shared_ptr<const ResponseTemplate> format);
  std::shared_ptr<const ResponseTemplate> format;
};

// Null for a null or another family.
std::shared_ptr<const ResponseTemplate> DeclaredFormat(const ToolFamily* family);
std::shared_ptr<const ResponseTemplate> DeclaredFormat(const ReasoningChoice* choice);

// How declared calls are written: as JSON with name and arguments between plain texts. Nothing: they are something else.
std::optional<CallForm> DeclaredCallForm(const ResponseTemplate& format);

}  // namespace portico::parser
