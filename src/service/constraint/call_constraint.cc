#include "service/constraint/call_constraint.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "grammar/schema/document.h"
#include "grammar/schema/keywords.h"
#include "service/constraint/call_format.h"
#include "service/constraint/call_names.h"
#include "service/constraint/tag_budget.h"
#include "service/constraint/tag_format.h"
#include "service/output/output_plan.h"
#include "text/json_writer.h"

namespace portico {
namespace {

using Mode = ToolChoice::Mode;

// The first strict tool that may be called, as a field; empty: there is none.
std::string StrictField(const ChatRequest& request) {
  const std::vector<std::string>& allowed = request.tool_choice.allowed;
  for (size_t i = 0; i < request.tools.as_array().size(); ++i) {
    const Json* function = request.tools.as_array()[i].Find("function");
    if (function == nullptr || !function->GetBool("strict", false)) continue;
    if (allowed.empty() ||
        std::find(allowed.begin(), allowed.end(), function->GetString("name")) != allowed.end()) {
      return fmt::format("tools[{}].function.strict", i);
    }
  }
  return {};
}

struct Wish {
  std::string field;
  std::string strict_field;
  bool must_call = false;
  bool one_call = false;
};

// What the request wants of calls.
Wish WishOf(const ChatRequest& request) {
  Wish wish;
  const ToolChoice& choice = request.tool_choice;
  wish.must_call = choice.mode == Mode::kRequired;
  wish.one_call = !request.parallel_tool_calls || !choice.name.empty();
  wish.strict_field = StrictField(request);
  if (wish.must_call) {
    wish.field = "tool_choice";
  } else if (wish.one_call) {
    wish.field = "parallel_tool_calls";
  } else {
    wish.field = wish.strict_field;
  }
  return wish;
}

Status CannotEnforce(const std::string& field, std::string_view why) {
  return InvalidArgument(field, fmt::format("{} cannot be enforced: {}", field, why));
}

// Other servers have limits of their own.
constexpr size_t kMaxRemoteTagBytes = size_t{2} << 20;

// How many bytes the calls may have, each written once. `in_text`: text may stand in front of them.
size_t CallBytes(const ServingModel& model, const parser::CallForm& form, size_t tools,
                 bool one_call, bool in_text) {
  const bool remote = model.engine->info().can.compiles_grammars;
  const size_t bytes = remote ? kMaxRemoteTagBytes : MaxTagBytes();
  if (one_call) return bytes;
  // Where each begins with its name, all stand behind each of them.
  if (in_text && form.bare) return bytes / (tools + 1);
  return in_text && form.section.empty() ? bytes : bytes / 2;
}

Status TooLong(const std::string& field) {
  return CannotEnforce(field,
                       "the schemas of the tools are too long in the form of this model's calls");
}

constexpr const char* kHarmonyTokens[] = {"<|start|>", "<|channel|>", "<|message|>",  "<|end|>",
                                          "<|call|>",  "<|return|>",  "<|constrain|>"};

// Harmony's markers with calls of its own.
bool IsBeam(const ServingModel& model) {
  return model.output.tools != nullptr && model.output.tools->name == "beam" &&
         std::all_of(std::begin(kHarmonyTokens), std::end(kHarmonyTokens), [&](const char* text) {
           return model.tokenizer->TokenToId(text).has_value();
         });
}

// Harmony: analysis as often as the model likes, then the answer on the channel final, or a call.
StatusOr<Json> HarmonyTag(const ServingModel& model, const Json& tools, const Wish& wish,
                          const Constraint* answer) {
  const TagWriter tags(*model.tokenizer, model.output.markers);
  JsonArray ends;
  for (const char* const text : kHarmonyTokens) {
    const std::optional<TokenId> token = model.tokenizer->TokenToId(text);
    if (!token) {
      return CannotEnforce(answer == nullptr ? wish.field : answer->field,
                           fmt::format("the vocabulary has no {}", text));
    }
    ends.push_back(Json(static_cast<int64_t>(*token)));
  }
  const Json any = TagObject("any_tokens", {{"exclude_tokens", Json(std::move(ends))}});
  const auto message = [&](std::string_view head, const Json& body, std::string_view end) {
    JsonArray parts = tags.Literal(head);
    parts.push_back(body);
    for (Json& part : tags.Literal(end)) parts.push_back(std::move(part));
    return TagSequence(std::move(parts));
  };
  JsonArray ways;
  if (!wish.must_call) {
    Json body = any;
    if (answer != nullptr) {
      PORTICO_ASSIGN_OR_RETURN(body, TagOfConstraint(*answer));
    }
    ways.push_back(message("<|channel|>final<|message|>", body, ""));
    if (answer != nullptr) {
      ways.push_back(message("<|channel|>final <|constrain|>json<|message|>", body, ""));
    }
  }
  // One call: its end stops the model.
  parser::CallForm form;
  if (IsBeam(model)) {
    form = *model.output.form;
  } else {
    form.json_name = false;
    form.before_name = form.begins = "<|channel|>commentary to=functions.";
    form.after_name = " <|constrain|>json<|message|>";
  }
  if (tools.is_array()) {
    const parser::ToolFamily& family =
        IsBeam(model) ? *model.output.tools : *parser::FindToolFamily("gpt-oss");
    PORTICO_RETURN_IF_ERROR(CheckCallNames(family, form, tools));
    const CallFormat calls(model, form, tools,
                           CallBytes(model, form, tools.as_array().size(), /*one_call=*/true,
                                     /*in_text=*/false));
    if (calls.too_long()) return TooLong(answer == nullptr ? wish.field : answer->field);
    if (!calls.unwritable().empty()) return CannotEnforce(wish.strict_field, calls.unwritable());
    ways.push_back(calls.Only(true));
  }
  const Json analysis = message("<|channel|>analysis<|message|>", any, "<|end|><|start|>assistant");
  const Json preamble =
      message("<|channel|>commentary<|message|>", any, "<|end|><|start|>assistant");
  // Beam has no preambles.
  return TagSequence({TagStar(IsBeam(model) ? analysis : TagChoice({analysis, preamble})),
                      TagChoice(std::move(ways))});
}

bool TakesConstraints(const ServingModel& model) {
  const EngineCapabilities& can = model.engine->info().can;
  return can.compiles_grammars || (can.grammars && model.grammar_model != nullptr);
}

// What is no schema could not be told from one that says nothing. Tools that the model may call as it likes are the
// template's affair, as in vLLM.
Status CheckSchemas(const ChatRequest& request) {
  const std::vector<std::string>& allowed = request.tool_choice.allowed;
  for (size_t i = 0; i < request.tools.as_array().size(); ++i) {
    const Json* const function = request.tools.as_array()[i].Find("function");
    const Json* const parameters = function == nullptr ? nullptr : function->Find("parameters");
    if (parameters == nullptr || !parameters->is_object()) continue;
    if (!allowed.empty() &&
        std::find(allowed.begin(), allowed.end(), function->GetString("name")) == allowed.end()) {
      continue;
    }
    const grammar::SchemaDocument document(*parameters);
    const Status good = grammar::CheckWellFormed(document, document.root());
    if (good.ok()) continue;
    const std::string field = fmt::format("tools[{}].function.parameters", i);
    return InvalidArgument(field, fmt::format("{}: {}", field, MessageOf(good)));
  }
  return OkStatus();
}

// The request's constraint on calls, and on the answer beside them; null: calls are the model's own affair.
StatusOr<Json> CallTag(const ServingModel& model, const ChatRequest& request,
                       const Constraint* answer, std::string* field) {
  if (!request.tools.is_array() || request.tool_choice.mode == Mode::kNone) return Json();
  const Json tools = AllowedTools(request.tools, request.tool_choice);
  const Wish wish = WishOf(request);
  *field = wish.field;
  if (wish.must_call && answer != nullptr) {
    return InvalidArgument(
        answer->field,
        fmt::format("{} and tool_choice cannot both constrain the answer", answer->field));
  }
  if (wish.field.empty() && answer == nullptr) return Json();
  if (!wish.must_call && model.output.tools == nullptr) return Json();  // no call is read
  if (!wish.field.empty() && !TakesConstraints(model)) {
    return CannotEnforce(wish.field, "this model's engine takes no constraints");
  }
  if (!wish.field.empty()) PORTICO_RETURN_IF_ERROR(CheckSchemas(request));
  if (model.output.harmony() || IsBeam(model)) return HarmonyTag(model, tools, wish, answer);
  const parser::CallForm* form = model.output.form.get();
  if (form == nullptr) {
    if (wish.field.empty()) return Json();  // the answer's form leaves no room for calls
    form = &parser::JsonListForm();
  }
  if (model.output.tools != nullptr) {
    PORTICO_RETURN_IF_ERROR(CheckCallNames(*model.output.tools, *form, tools));
  }
  const bool in_text = answer == nullptr && !wish.must_call;
  const CallFormat calls(model, *form, tools,
                         CallBytes(model, *form, tools.as_array().size(), wish.one_call, in_text));
  if (calls.too_long()) return TooLong(wish.field.empty() ? answer->field : wish.field);
  if (!calls.unwritable().empty()) return CannotEnforce(wish.strict_field, calls.unwritable());
  if (wish.must_call) return calls.Only(wish.one_call);
  if (answer == nullptr) return calls.Within(wish.one_call);
  PORTICO_ASSIGN_OR_RETURN(Json format, TagOfConstraint(*answer));
  return TagChoice({std::move(format), calls.Only(wish.one_call)});
}

}  // namespace

bool CallsAsJsonList(const ModelOutputFormat& format, const ChatRequest& request) {
  if (format.form != nullptr || format.harmony() || !request.tools.is_array()) return false;
  const Wish wish = WishOf(request);
  return wish.must_call || (format.tools != nullptr && !wish.field.empty());
}

StatusOr<std::shared_ptr<const Constraint>> ChatConstraint(
    const ServingModel& model, const ChatRequest& request, ReasoningStart reasoning,
    std::shared_ptr<const Constraint> answer) {
  std::string field;
  PORTICO_ASSIGN_OR_RETURN(Json tag, CallTag(model, request, answer.get(), &field));
  if (tag.is_null() && answer != nullptr && model.output.harmony()) {
    PORTICO_ASSIGN_OR_RETURN(tag, HarmonyTag(model, Json(), Wish{}, answer.get()));
  }
  if (!tag.is_null()) {
    auto tagged = std::make_shared<Constraint>();
    tagged->kind = ConstraintKind::kStructuralTag;
    tagged->text = TagObject("structural_tag", {{"format", std::move(tag)}}).Dump();
    tagged->field = answer == nullptr ? field : answer->field;
    tagged->compact = answer != nullptr && answer->compact;
    answer = std::move(tagged);
  }
  return BehindReasoning(model, reasoning, request.options.max_thinking_tokens, std::move(answer));
}

StatusOr<std::shared_ptr<const Constraint>> BehindReasoning(
    const ServingModel& model, ReasoningStart start, std::optional<int32_t> max_thinking_tokens,
    std::shared_ptr<const Constraint> constraint) {
  if (start == ReasoningStart::kNone) return constraint;  // there is none to be bounded
  if (constraint == nullptr && !max_thinking_tokens) return constraint;
  if (max_thinking_tokens && (model.engine->info().can.compiles_grammars ||
                              !model.engine->info().can.grammars || model.output.harmony())) {
    return CannotEnforce("max_thinking_tokens", "this model's engine cannot end its reasoning");
  }
  if (model.output.reasoning == nullptr) {
    return CannotEnforce("require_reasoning", "the server has no reasoning parser for this model");
  }
  if (model.output.harmony()) return constraint;  // the constraint has its channels
  auto bounded = std::make_shared<Constraint>();
  if (constraint == nullptr) {
    bounded->kind = ConstraintKind::kReasoning;
    bounded->field = "max_thinking_tokens";
  } else {
    *bounded = *constraint;
  }
  const parser::ReasoningFamily& family = model.output.reasoning->splitter->family;
  const auto token_of = [&](const std::vector<std::string>& markers) -> TokenId {
    for (const std::string& marker : markers) {
      if (auto id = model.tokenizer->TokenToId(marker)) return *id;
    }
    if (!family.suffixed) return -1;
    for (const TokenId id : model.output.markers) {
      const std::string bare = WithoutSuffix(model.tokenizer->IdToToken(id));
      if (std::find(markers.begin(), markers.end(), bare) != markers.end()) return id;
    }
    return -1;
  };
  const TokenId begin = token_of(family.starts);
  const TokenId end = token_of(family.ends);
  if (end < 0 && (start == ReasoningStart::kInside || constraint == nullptr)) {
    return CannotEnforce(
        bounded->field,
        "the answer begins with reasoning, whose end marker is not a token of this model");
  }
  // Reasoning that a constrained model cannot begin with a token does not begin.
  if (start == ReasoningStart::kMayBegin && (begin < 0 || end < 0)) return constraint;
  bounded->think_start = start == ReasoningStart::kInside ? -1 : begin;
  bounded->think_end = end;
  bounded->max_thinking_tokens = max_thinking_tokens.value_or(-1);
  return std::shared_ptr<const Constraint>(std::move(bounded));
}

}  // namespace portico
