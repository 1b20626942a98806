#include "service/constraint/call_constraint.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "service/constraint/call_names.h"
#include "service/constraint/python_arguments.h"
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

bool AllowsObjects(const Json& schema) {
  const Json* const type = schema.Find("type");
  if (type == nullptr) return true;
  if (!type->is_array()) return *type == Json("object");
  const JsonArray& types = type->as_array();
  return std::find(types.begin(), types.end(), Json("object")) != types.end();
}

class CallFormat {
 public:
  // `form` outlives this.
  CallFormat(const ServingModel& model, const parser::CallForm& form, const Json& tools)
      : tags_(*model.tokenizer, model.output.markers), form_(form) {
    for (const Json& tool : tools.as_array()) calls_.push_back(Call(tool));
  }

  // Why the schema of a strict tool cannot be enforced; empty: they all can.
  const std::string& unwritable() const { return unwritable_; }

  // One call or several, with nothing else.
  Json Only(bool one) const { return TagSequence(Calls(one, {})); }

  // Text in which calls may come.
  Json Within(bool one) const {
    if (form_.bare) return WithinByName(one);
    const Json begin = tags_.Literal(form_.begins).front();
    const std::string seen = tags_.TextOf(begin);
    JsonArray rest;
    if (form_.section.empty()) {
      rest.push_back(AnyCall(seen));
    } else {
      rest = Calls(one, seen);
    }
    const bool token = begin.GetString("type") == "token";
    Json trigger = token ? *begin.Find("token") : Json(seen);
    JsonArray rule = {std::move(trigger), TagSequence(std::move(rest))};
    return TagObject(token ? "token_dispatch" : "dispatch",
                     {{"rules", Json(JsonArray{Json(std::move(rule))})}, {"loop", Json(!one)}});
  }

 private:
  struct Parts {
    std::string head;     // up to the counter, or to the arguments
    JsonArray arguments;  // parts one behind the other
  };

  // What stands in front of a name can be text: only all of a call's head begins one.
  Json WithinByName(bool one) const {
    JsonArray rules;
    for (const Parts& call : calls_) {
      JsonArray rest = Rest(call, call.head);
      AddMore(one, &rest);
      JsonArray rule = {Json(form_.section + call.head), TagSequence(std::move(rest))};
      rules.push_back(Json(std::move(rule)));
    }
    return TagObject("dispatch", {{"rules", Json(std::move(rules))}, {"loop", Json(!one)}});
  }

  Parts Call(const Json& tool) {
    const Json* found = tool.Find("function");
    const Json& function = found == nullptr ? tool : *found;
    std::string name = function.GetString("name");
    std::string quoted_name;
    AppendJsonString(name, &quoted_name);
    if (form_.json_name) name = quoted_name.substr(1, quoted_name.size() - 2);
    const bool strict = function.GetBool("strict", false);
    Json schema = Json(JsonObject{});
    const Json* parameters = function.Find("parameters");
    if (parameters != nullptr && parameters->is_object()) schema = *parameters;
    // Nothing but an object is a call's arguments, whatever else the schema allows.
    if (strict && !AllowsObjects(schema)) {
      unwritable_ = fmt::format("the parameters of {} are not of the type object", quoted_name);
    }
    schema.Set("type", Json("object"));
    // Other properties than those that a tool declares would help nobody, and objects that take any compile slowly.
    const auto part = [&](Json of, std::string_view style) {
      return TagObject("json_schema",
                       {{"json_schema", std::move(of)},
                        {"style", Json(style)},
                        {"closed", Json(true)},
                        {"loose", Json(!strict)},
                        {"label", Json(fmt::format("parameters of {}", quoted_name))}});
    };
    Parts parts = {form_.before_name + name + form_.after_name, {}};
    if (form_.style == parser::kPythonStyle) {
      const auto value = [&](Json of) { return part(std::move(of), "json"); };
      std::optional<Json> arguments = PythonArguments(schema, value);
      if (!arguments) {
        if (strict) {
          unwritable_ =
              fmt::format("the parameters of {} cannot be keyword arguments", quoted_name);
        }
        arguments = AnyPythonArguments(value);
      }
      if (!arguments->is_null()) parts.arguments.push_back(*std::move(arguments));
    } else {
      parts.arguments.push_back(part(std::move(schema), form_.style));
    }
    return parts;
  }

  // The same in pieces, without the text that has been seen of the section's beginning.
  JsonArray Calls(bool one, std::string_view seen) const {
    JsonArray parts = tags_.Literal(std::string_view(form_.section).substr(seen.size()));
    parts.push_back(AnyCall({}));
    AddMore(one, &parts);
    return parts;
  }

  // What follows the first call.
  void AddMore(bool one, JsonArray* parts) const {
    if (!one) {
      JsonArray more = tags_.Literal(form_.separator);
      more.push_back(AnyCall({}));
      parts->push_back(TagObject("star", {{"content", TagSequence(std::move(more))}}));
    }
    for (Json& part : tags_.Literal(form_.section_end)) parts->push_back(std::move(part));
  }

  // One of the calls, without the text that has been seen of its beginning.
  Json AnyCall(std::string_view seen) const {
    JsonArray ways;
    for (const Parts& call : calls_) ways.push_back(TagSequence(Rest(call, seen)));
    return TagChoice(std::move(ways));
  }

  // A call without the text that has been seen of it; not empty, as forms have an end.
  JsonArray Rest(const Parts& call, std::string_view seen) const {
    JsonArray parts = tags_.Literal(std::string_view(call.head).substr(seen.size()));
    if (!form_.counter_end.empty()) {
      parts.push_back(TagObject("regex", {{"pattern", Json("[0-9]{1,4}")}}));
      for (Json& part : tags_.Literal(form_.counter_end)) parts.push_back(std::move(part));
    }
    parts.insert(parts.end(), call.arguments.begin(), call.arguments.end());
    for (Json& part : tags_.Literal(form_.end)) parts.push_back(std::move(part));
    return parts;
  }

  TagWriter tags_;
  const parser::CallForm& form_;
  std::vector<Parts> calls_;
  std::string unwritable_;
};

Status CannotEnforce(const std::string& field, std::string_view why) {
  return InvalidArgument(field, fmt::format("{} cannot be enforced: {}", field, why));
}

// Harmony: analysis as often as the model likes, then the answer on the channel final, or a call.
StatusOr<Json> HarmonyTag(const ServingModel& model, const Json& tools, const Wish& wish,
                          const Constraint* answer) {
  const TagWriter tags(*model.tokenizer, model.output.markers);
  JsonArray ends;
  for (const char* text : {"<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>",
                           "<|return|>", "<|constrain|>"}) {
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
  form.json_name = false;
  form.before_name = form.begins = "<|channel|>commentary to=functions.";
  form.after_name = " <|constrain|>json<|message|>";
  if (tools.is_array()) {
    PORTICO_RETURN_IF_ERROR(CheckCallNames(*parser::FindToolFamily("gpt-oss"), form, tools));
    const CallFormat calls(model, form, tools);
    if (!calls.unwritable().empty()) return CannotEnforce(wish.strict_field, calls.unwritable());
    ways.push_back(calls.Only(true));
  }
  const Json analysis = message("<|channel|>analysis<|message|>", any, "<|end|><|start|>assistant");
  const Json preamble =
      message("<|channel|>commentary<|message|>", any, "<|end|><|start|>assistant");
  return TagSequence({TagObject("star", {{"content", TagChoice({analysis, preamble})}}),
                      TagChoice(std::move(ways))});
}

bool TakesConstraints(const ServingModel& model) {
  const EngineCapabilities& can = model.engine->info().can;
  return can.compiles_grammars || (can.grammars && model.grammar_model != nullptr);
}

// No server takes longer grammars (--grammar-text-bytes).
constexpr size_t kMaxTagBytes = size_t{16} << 20;
constexpr size_t kLeastCallBytes = 100;  // of a call in a tag, without its name and schema

// Whether calls written in this form may be that short. It may repeat their schemas, so that the tools of a short request
// make a constraint of any length. `alone`: the calls are all that the constraint says.
bool FitsInTag(const parser::CallForm& form, const Json& tools, const Wish& wish, bool alone) {
  size_t bytes = 0;
  for (const Json& tool : tools.as_array()) {
    const Json* const found = tool.Find("function");
    const Json& function = found == nullptr ? tool : *found;
    const size_t around = kLeastCallBytes + function.GetString("name").size();
    bytes += around;
    if (const Json* const parameters = function.Find("parameters")) {
      bytes += form.style == parser::kPythonStyle ? PythonArgumentsBytes(*parameters, around)
                                                  : parameters->Dump().size();
    }
    if (bytes > kMaxTagBytes) return false;
  }
  // In text, where each begins with its name, all stand behind each of them.
  const bool in_text = alone && !wish.must_call;
  if (!in_text || !form.bare || wish.one_call) return true;
  return bytes * tools.as_array().size() <= kMaxTagBytes;
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
  if (model.output.harmony()) return HarmonyTag(model, tools, wish, answer);
  const parser::CallForm* form = model.output.form;
  if (form == nullptr) {
    if (wish.must_call) {
      form = &parser::JsonListForm();
    } else if (wish.field.empty()) {
      return Json();  // the answer's form leaves no room for calls
    } else {
      return CannotEnforce(wish.field,
                           "this model writes calls in a form that no grammar here describes");
    }
  }
  if (model.output.tools != nullptr) {
    PORTICO_RETURN_IF_ERROR(CheckCallNames(*model.output.tools, *form, tools));
  }
  if (!FitsInTag(*form, tools, wish, /*alone=*/answer == nullptr)) {
    return CannotEnforce(wish.field.empty() ? answer->field : wish.field,
                         "the schemas of the tools are too long in the form of this model's calls");
  }
  const CallFormat calls(model, *form, tools);
  if (!calls.unwritable().empty()) return CannotEnforce(wish.strict_field, calls.unwritable());
  if (wish.must_call) return calls.Only(wish.one_call);
  if (answer == nullptr) return calls.Within(wish.one_call);
  PORTICO_ASSIGN_OR_RETURN(Json format, TagOfConstraint(*answer));
  return TagChoice({std::move(format), calls.Only(wish.one_call)});
}

}  // namespace

bool CallsAsJsonList(const ModelOutputFormat& format, const ChatRequest& request) {
  return request.tool_choice.mode == Mode::kRequired && format.form == nullptr && !format.harmony();
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
    return CannotEnforce(bounded->field,
                         "the answer begins with reasoning, whose end is no token of this model");
  }
  // Reasoning that a constrained model cannot begin with a token does not begin.
  if (start == ReasoningStart::kMayBegin && (begin < 0 || end < 0)) return constraint;
  bounded->think_start = start == ReasoningStart::kInside ? -1 : begin;
  bounded->think_end = end;
  bounded->max_thinking_tokens = max_thinking_tokens.value_or(-1);
  return std::shared_ptr<const Constraint>(std::move(bounded));
}

}  // namespace portico
