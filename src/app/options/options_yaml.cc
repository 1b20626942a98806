// The file of --config: a YAML mapping from option names (with dashes or underscores) to values, and
// from `models` to a list of such mappings.
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <optional>
#include <set>

#include "app/options/options_table.h"
#include "pipeline/config/yaml_value.h"

namespace portico {
namespace {

constexpr std::string_view kModels = "models";
constexpr std::string_view kModelPath = "model-path";

Status BadAt(const std::string& file, const YAML::Mark& mark, const std::string& why) {
  return Error(StatusCode::kInvalidArgument, fmt::format("{}:{}: {}", file, mark.line + 1, why));
}

// A quoted value is text, whatever it looks like.
bool IsQuoted(const YAML::Node& value) { return value.Tag() == "!"; }

// The value's text, or what is wrong with its type.
StatusOr<std::string> ScalarText(const Option& option, const YAML::Node& value) {
  const auto bad = [](std::string why) {
    return Error(StatusCode::kInvalidArgument, std::move(why));
  };
  if (value.IsNull()) return bad("has no value");
  if (!value.IsScalar()) return bad("takes one value, not a list or a mapping");
  if (!option.is_text() && !option.bytes && IsQuoted(value)) {
    return bad(fmt::format("`{}` is text, not {}", value.Scalar(),
                           option.is_flag() ? "true or false" : "a number"));
  }
  return value.Scalar();
}

// The option that a key names.
StatusOr<const Option*> OptionOf(const YAML::Node& key, const std::string& file) {
  if (!key.IsScalar()) return BadAt(file, key.Mark(), "a key must be the name of an option");
  const std::string& name = key.Scalar();
  if (const Option* option = FindOption(name)) return option;
  const std::string_view nearest = NearestOption(name);
  return BadAt(file, key.Mark(),
               nearest.empty()
                   ? fmt::format("unknown key `{}`", name)
                   : fmt::format("unknown key `{}`; did you mean `{}`?", name, nearest));
}

Status ApplyEntry(const YAML::Node& key, const YAML::Node& value, const std::string& file,
                  std::set<std::string_view>* seen, ServeOptions* server, ModelOptions* model) {
  PORTICO_ASSIGN_OR_RETURN(const Option* option, OptionOf(key, file));
  const std::string& name = key.Scalar();
  if (!seen->insert(option->name).second) {
    return BadAt(file, key.Mark(), fmt::format("{}: is set twice", name));
  }
  if (!option->is_model() && server == nullptr) {
    return BadAt(
        file, key.Mark(),
        fmt::format("{}: is the server's, not a model's; it belongs outside `{}`", name, kModels));
  }
  Status status = OkStatus();
  if (const auto text = ScalarText(*option, value); text.ok()) {
    status = SetOption(*option, *text, server, model);
  } else {
    status = text.status();
  }
  if (status.ok()) return status;
  return BadAt(file, key.Mark(), fmt::format("{}: {}", name, MessageOf(status)));
}

// The list `models`: a mapping for each, on top of what is said of every model.
Status ApplyModels(const YAML::Node& list, const YAML::Mark& mark, const std::string& file,
                   OptionLayers* layers) {
  if (!list.IsSequence() || list.size() == 0) {
    return BadAt(file, mark, "models: takes a list of mappings such as `- model-path: a`");
  }
  for (const YAML::Node& entry : list) {
    if (!entry.IsMap()) {
      return BadAt(file, entry.Mark(), "models: expected a mapping such as `model-path: a`");
    }
    ModelOptions model = layers->every_model;
    std::set<std::string_view> seen;
    for (const auto& pair : entry) {
      PORTICO_RETURN_IF_ERROR(ApplyEntry(pair.first, pair.second, file, &seen, nullptr, &model));
    }
    if (!seen.contains(kModelPath)) {
      return BadAt(file, entry.Mark(), "models: each names its model-path");
    }
    layers->listed.push_back(std::move(model));
  }
  return OkStatus();
}

Status ApplyRoot(const YAML::Node& root, const std::string& file, OptionLayers* layers) {
  std::set<std::string_view> seen;
  std::optional<YAML::Mark> listed;
  YAML::Node models;
  for (const auto& entry : root) {
    if (entry.first.IsScalar() && entry.first.Scalar() == kModels) {
      if (listed) return BadAt(file, entry.first.Mark(), "models: is set twice");
      listed = entry.first.Mark();
      models.reset(entry.second);
      continue;
    }
    PORTICO_RETURN_IF_ERROR(
        ApplyEntry(entry.first, entry.second, file, &seen, &layers->server, &layers->every_model));
  }
  if (!listed) return OkStatus();
  if (seen.contains(kModelPath)) {
    return BadAt(file, *listed, "models: a model-path is also set outside of the list");
  }
  return ApplyModels(models, *listed, file, layers);
}

}  // namespace

Status ApplyOptionsYaml(const std::string& text, const std::string& file, OptionLayers* layers) {
  try {
    const YAML::Node root = pipeline::LoadOneDocument(text);
    if (root.IsNull()) return OkStatus();
    if (!root.IsMap()) {
      return BadAt(file, root.Mark(), "expected a mapping such as `port: 30000`");
    }
    return ApplyRoot(root, file, layers);
  } catch (const YAML::Exception& error) {
    return BadAt(file, error.mark, error.msg);
  }
}

}  // namespace portico
