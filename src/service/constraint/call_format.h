// The calls of a request's tools in the form that a model writes them in, as parts of a structural tag.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "parser/core/tool_set.h"
#include "parser/tool/call_forms.h"
#include "service/constraint/member_arguments.h"
#include "service/constraint/tag_budget.h"
#include "service/constraint/tag_format.h"
#include "service/serving_model.h"
#include "text/json.h"

namespace portico {

class CallFormat {
 public:
  // `model` and `form` outlive this. `bytes`: that all calls together may have, each written once.
  CallFormat(const ServingModel& model, const parser::CallForm& form, const Json& tools,
             size_t bytes);

  // They have more, and nothing else of this is of any use.
  bool too_long() const { return rest_.spent(); }

  // Why the schema of a strict tool cannot be enforced; empty: they all can.
  const std::string& unwritable() const { return unwritable_; }

  // One call or several, with nothing else.
  Json Only(bool one) const;
  // Text in which calls may come.
  Json Within(bool one) const;

 private:
  struct Parts {
    std::string head;     // up to the counter, or to the arguments
    JsonArray arguments;  // parts one behind the other
  };

  Json WithinByName(bool one) const;
  Parts Call(const Json& tool);
  JsonArray Calls(bool one, std::string_view seen) const;
  void AddMore(bool one, JsonArray* parts) const;
  Json AnyCall(std::string_view seen) const;
  JsonArray Rest(const Parts& call, std::string_view seen) const;

  TagWriter tags_;
  const parser::CallForm& form_;
  const parser::ToolSet types_;
  std::vector<std::string> excludes_;  // of texts in arguments
  int left_ = kMaxMemberParts;
  TagBudget budget_;  // of arguments that need more than one part
  TagBudget rest_;    // of all else
  std::vector<Parts> calls_;
  std::string unwritable_;
};

}  // namespace portico
