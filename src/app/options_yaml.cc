// The file of --config: a YAML mapping from option names (with dashes or underscores) to values.
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <set>

#include "app/options_table.h"

namespace portico {
namespace {

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

Status ApplyEntry(const YAML::Node& key, const YAML::Node& value, const std::string& file,
                  std::set<std::string_view>* seen, ServeOptions* options) {
  if (!key.IsScalar()) return BadAt(file, key.Mark(), "a key must be the name of an option");
  const std::string& name = key.Scalar();
  const Option* option = FindOption(name);
  if (option == nullptr) {
    const std::string_view nearest = NearestOption(name);
    return BadAt(file, key.Mark(),
                 nearest.empty()
                     ? fmt::format("unknown key `{}`", name)
                     : fmt::format("unknown key `{}`; did you mean `{}`?", name, nearest));
  }
  if (!seen->insert(option->name).second) {
    return BadAt(file, key.Mark(), fmt::format("{}: is set twice", name));
  }
  Status status = OkStatus();
  if (const auto text = ScalarText(*option, value); text.ok()) {
    status = SetOption(*option, *text, options);
  } else {
    status = text.status();
  }
  if (status.ok()) return status;
  return BadAt(file, key.Mark(), fmt::format("{}: {}", name, MessageOf(status)));
}

}  // namespace

Status ApplyOptionsYaml(const std::string& text, const std::string& file, ServeOptions* options) {
  try {
    const YAML::Node root = YAML::Load(text);
    if (root.IsNull()) return OkStatus();
    if (!root.IsMap()) {
      return BadAt(file, root.Mark(), "expected a mapping such as `port: 30000`");
    }
    std::set<std::string_view> seen;
    for (const auto& entry : root) {
      PORTICO_RETURN_IF_ERROR(ApplyEntry(entry.first, entry.second, file, &seen, options));
    }
    return OkStatus();
  } catch (const YAML::Exception& error) {
    return BadAt(file, error.mark, error.msg);
  }
}

}  // namespace portico
