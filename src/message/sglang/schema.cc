#include "message/sglang/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "message/sglang/encode.h"

namespace portico::sglang {
namespace {

Status Bad(std::string message) {
  return Error(StatusCode::kInvalidArgument,
               "the layout that SGLang printed cannot be used: " + std::move(message));
}

// A default as the manifest's JSON has it. False: code makes it.
bool DefaultOf(const Json& json, Value* value) {
  if (json.is_bool()) {
    *value = json.as_bool();
  } else if (json.is_int()) {
    *value = json.as_int();
  } else if (json.is_double()) {
    *value = json.as_double();
  } else if (json.is_string()) {
    *value = json.as_string();
  } else if (json.is_array() && json.as_array().empty()) {
    *value = List{};
  } else if (json.is_object()) {
    const std::string factory = json.GetString("$factory");
    if (factory == "dict") {
      *value = Map{};
    } else if (factory == "list" || factory == "set") {
      *value = List{};
    } else {
      return false;
    }
  } else if (!json.is_null()) {
    return false;
  }
  return true;
}

StatusOr<Field> ReadField(const Json& json, const StructLayout& layout) {
  Field field;
  field.name = json.GetString("name");
  field.type_text = json.GetString("type");
  field.required = json.GetBool("required", true);
  const auto wrong = [&](std::string_view what) {
    return Bad(fmt::format("{}.{}: {}", layout.name, field.name, what));
  };
  if (field.name.empty()) return wrong("a field without a name");
  const auto position = static_cast<int64_t>(layout.first() + layout.fields.size());
  if (layout.array_like && json.GetInt("index", -1) != position) {
    return wrong("fields are not in the order of their index");
  }
  auto type = Type::Parse(field.type_text);
  if (!type.ok()) return wrong(MessageOf(type.status()));
  field.type = *std::move(type);
  const Json* value = json.Find("default");
  if (!field.required && value != nullptr) {
    field.default_known = DefaultOf(*value, &field.default_value);
  }
  return field;
}

}  // namespace

const Field* StructLayout::Find(std::string_view field) const {
  const int at = IndexOf(field);
  return at < 0 ? nullptr : &fields[static_cast<size_t>(at)];
}

int StructLayout::IndexOf(std::string_view field) const {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == field) return static_cast<int>(i);
  }
  return -1;
}

const StructLayout* Schema::Find(std::string_view name) const {
  const auto it = structs_.find(name);
  return it == structs_.end() ? nullptr : &it->second;
}

bool Schema::IsMessage(std::string_view name) const {
  return std::binary_search(messages_.begin(), messages_.end(), name);
}

Status Schema::ReadBuffers(const Json& manifest) {
  const Json* encoding = manifest.Find("buffer_encoding");
  if (encoding == nullptr) return Bad("buffer_encoding is missing");
  constexpr std::string_view kNames[] = {"array", "tensor", "ndarray"};
  for (size_t i = 0; i < 3; ++i) {
    const std::string form = encoding->GetString(kNames[i]);
    if (form == "list") continue;
    if (form.size() != 5 || !form.starts_with("ext:") || form[4] < '0' || form[4] > '9') {
      return Bad(fmt::format("buffer_encoding.{} is `{}`", kNames[i], form));
    }
    extensions_[i] = form[4] - '0';
  }
  return OkStatus();
}

Status Schema::ReadStructs(const Json& manifest) {
  const Json* structs = manifest.Find("structs");
  const Json* enums = manifest.Find("enums");
  const Json* top = manifest.Find("top_level");
  if (structs == nullptr || !structs->is_object() || enums == nullptr || !enums->is_object() ||
      top == nullptr || !top->is_array()) {
    return Bad("structs, enums or top_level is missing");
  }
  for (const auto& [name, members] : enums->as_object()) {
    if (!members.is_object()) return Bad(fmt::format("the enum {} has no members", name));
    for (const auto& [member, json] : members.as_object()) {
      Value value;
      if (!DefaultOf(json, &value)) return Bad(fmt::format("{}.{} has no value", name, member));
      enums_[name].push_back(std::move(value));
    }
  }
  for (const auto& [name, json] : structs->as_object()) {
    StructLayout layout;
    layout.name = name;
    layout.tag = json.GetString("tag");
    layout.array_like = json.GetBool("array_like", true);
    layout.omit_defaults = json.GetBool("omit_defaults", false);
    if (!layout.array_like && !layout.tag.empty()) {
      return Bad(fmt::format("{} is a map with a tag", name));
    }
    const Json* fields = json.Find("fields");
    if (fields == nullptr || !fields->is_array()) return Bad(fmt::format("{} has no fields", name));
    layout.min_length = layout.first();
    for (const Json& each : fields->as_array()) {
      PORTICO_ASSIGN_OR_RETURN(Field field, ReadField(each, layout));
      layout.fields.push_back(std::move(field));
      if (layout.fields.back().required) layout.min_length = layout.first() + layout.fields.size();
    }
    structs_.emplace(name, std::move(layout));
  }
  for (const Json& name : top->as_array()) {
    if (!name.is_string()) return Bad("top_level holds something else than names");
    const StructLayout* layout = Find(name.as_string());
    if (layout == nullptr || layout->tag != layout->name) {
      return Bad(fmt::format("{} is a message without a layout or a tag", name.as_string()));
    }
    messages_.push_back(name.as_string());
  }
  std::sort(messages_.begin(), messages_.end());
  return OkStatus();
}

Status Schema::Bind(Type* type) {
  if (type->kind == Type::Kind::kStruct) {
    type->layout = Find(type->name);
    if (type->layout == nullptr) return Bad(fmt::format("there is no struct {}", type->name));
  }
  if (type->kind == Type::Kind::kEnum) {
    const auto it = enums_.find(type->name);
    if (it == enums_.end()) return Bad(fmt::format("there is no enum {}", type->name));
    type->values = it->second;
  }
  for (Type& part : type->parts) PORTICO_RETURN_IF_ERROR(Bind(&part));
  return OkStatus();
}

Status Schema::BindTypes() {
  for (auto& [name, layout] : structs_) {
    for (Field& field : layout.fields) PORTICO_RETURN_IF_ERROR(Bind(&field.type));
  }
  return OkStatus();
}

Status Schema::EncodeDefaults() {
  for (auto& [name, layout] : structs_) {
    for (Field& field : layout.fields) {
      if (field.required || !field.default_known) continue;
      const Status encoded =
          EncodeValue(*this, field.type, field.default_value, {}, &field.default_binary);
      if (!encoded.ok()) {
        return Bad(fmt::format("the default of {}.{} does not have its type {}", name, field.name,
                               field.type_text));
      }
    }
  }
  return OkStatus();
}

StatusOr<std::shared_ptr<const Schema>> Schema::Parse(const Json& manifest) {
  if (!manifest.is_object() || manifest.GetInt("manifest_version", 0) != 1) {
    return Bad("it is not a manifest of version 1");
  }
  auto schema = std::make_shared<Schema>();
  schema->version_ = manifest.GetString("sglang_version");
  PORTICO_RETURN_IF_ERROR(schema->ReadBuffers(manifest));
  PORTICO_RETURN_IF_ERROR(schema->ReadStructs(manifest));
  PORTICO_RETURN_IF_ERROR(schema->BindTypes());
  PORTICO_RETURN_IF_ERROR(schema->EncodeDefaults());
  return std::shared_ptr<const Schema>(std::move(schema));
}

}  // namespace portico::sglang
