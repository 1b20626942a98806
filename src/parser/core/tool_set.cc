#include "parser/core/tool_set.h"

#include <utility>

namespace portico::parser {
namespace {

constexpr int kMaxDepth = 8;  // of schemas; deeper values are told by their own look
// Of all tools together: references make many of few.
constexpr int kMaxSchemas = 50'000;

TypeSet TypeOfName(std::string_view name) {
  if (name == "string" || name == "str" || name == "text" || name == "varchar" || name == "char" ||
      name == "enum") {
    return kStringType;
  }
  if (name.starts_with("int") || name.starts_with("uint") || name == "long" || name == "short") {
    return kIntegerType;
  }
  if (name == "number" || name.starts_with("float") || name.starts_with("num") ||
      name == "double") {
    return kNumberType;
  }
  if (name.starts_with("bool") || name == "binary") return kBooleanType;
  if (name == "null" || name == "none" || name == "None") return kNullType;
  if (name == "object" || name.starts_with("dict")) return kObjectType;
  if (name == "array" || name.starts_with("list") || name == "tuple") return kArrayType;
  return 0;
}

TypeSet TypeOfValue(const Json& value) {
  if (value.is_string()) return kStringType;
  if (value.is_int() || value.is_big_int()) return kIntegerType;
  if (value.is_number()) return kNumberType;
  if (value.is_bool()) return kBooleanType;
  if (value.is_object()) return kObjectType;
  if (value.is_array()) return kArrayType;
  return kNullType;
}

// What models write before a tool's name that is none of the client's; other words there are part of the name.
bool IsNamespace(std::string_view name) {
  return name == "functions" || name == "function" || name == "tools" || name == "tool" ||
         name == "default_api";
}

const Json* Referred(const Json& root, std::string_view ref) {
  if (!ref.starts_with("#/")) return nullptr;
  const Json* at = &root;
  ref.remove_prefix(2);
  while (at != nullptr) {
    size_t slash = ref.find('/');
    at = at->Find(ref.substr(0, slash));
    if (slash == std::string_view::npos) break;
    ref.remove_prefix(slash + 1);
  }
  return at;
}

void Collect(const Json& root, const Json& schema, int depth, int* left, ValueTypes* out) {
  if (depth > kMaxDepth || !schema.is_object() || --*left < 0) return;
  if (const Json* type = schema.Find("type")) {
    if (type->is_string()) out->types |= TypeOfName(type->as_string());
    if (type->is_array()) {
      for (const Json& one : type->as_array()) {
        if (one.is_string()) out->types |= TypeOfName(one.as_string());
      }
    }
  } else if (const Json* values = schema.Find("enum"); values != nullptr && values->is_array()) {
    for (const Json& value : values->as_array()) out->types |= TypeOfValue(value);
  } else if (const Json* value = schema.Find("const")) {
    out->types |= TypeOfValue(*value);
  }
  if (schema.GetBool("nullable", false)) out->types |= kNullType;
  if (const Json* ref = schema.Find("$ref"); ref != nullptr && ref->is_string()) {
    if (const Json* target = Referred(root, ref->as_string())) {
      Collect(root, *target, depth + 1, left, out);
    }
  }
  for (std::string_view key : {"anyOf", "oneOf", "allOf"}) {
    const Json* branches = schema.Find(key);
    if (branches == nullptr || !branches->is_array()) continue;
    for (const Json& branch : branches->as_array()) Collect(root, branch, depth + 1, left, out);
  }
  if (const Json* properties = schema.Find("properties");
      properties != nullptr && properties->is_object()) {
    for (const auto& [name, value] : properties->as_object()) {
      Collect(root, value, depth + 1, left, &out->properties[name]);
    }
    if (out->types == 0) out->types = kObjectType;
  }
  if (const Json* items = schema.Find("items")) {
    // Under a name that no property can have in the formats that ask for it.
    Collect(root, *items, depth + 1, left, &out->properties["[]"]);
    if (out->types == 0) out->types = kArrayType;
  }
}

}  // namespace

ToolSet::ToolSet(const Json& tools, bool forward_unknown) : any_(forward_unknown) {
  if (!tools.is_array()) {
    any_ = true;
    names_known_ = forward_unknown;
    return;
  }
  int left = kMaxSchemas;
  for (const Json& tool : tools.as_array()) {
    const Json* function = tool.Find("function");
    if (function == nullptr) function = &tool;
    std::string name = function->GetString("name");
    if (name.empty()) continue;
    ValueTypes types;
    if (const Json* parameters = function->Find("parameters")) {
      Collect(*parameters, *parameters, 0, &left, &types);
    }
    tools_[name] = std::move(types);
  }
}

std::string_view ToolSet::Resolve(std::string_view name) const {
  if (tools_.empty() || tools_.contains(name)) return name;
  for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    const std::string_view tail = name.substr(dot + 1);
    const std::string_view space = name.substr(0, dot);
    if (tools_.contains(tail) && (space == tail || IsNamespace(space))) return tail;
  }
  return name;
}

std::string_view ToolSet::Only() const {
  return tools_.size() == 1 ? std::string_view(tools_.begin()->first) : std::string_view();
}

const ValueTypes* ToolSet::Arguments(std::string_view name) const {
  auto found = tools_.find(name);
  return found == tools_.end() ? nullptr : &found->second;
}

std::string_view ToolSet::WithKeys(const Json& arguments) const {
  std::string_view best;
  size_t best_count = 0;
  if (!arguments.is_object()) return best;
  for (const auto& [name, types] : tools_) {
    size_t count = 0;
    for (const auto& [key, value] : arguments.as_object()) count += types.properties.contains(key);
    if (count > best_count || (count == best_count && count > 0 && name < best)) {
      best = name;
      best_count = count;
    }
  }
  return best;
}

}  // namespace portico::parser
