#include "pipeline/yaml_value.h"

#include <fmt/format.h>

#include "absl/strings/numbers.h"

namespace portico::pipeline {

YAML::Node LoadOneDocument(const std::string& text) {
  const std::vector<YAML::Node> documents = YAML::LoadAll(text);
  for (size_t i = 1; i < documents.size(); ++i) {
    if (documents[i].IsNull()) continue;
    throw YAML::ParserException(documents[i].Mark(), "a second document begins here");
  }
  return documents.empty() ? YAML::Node() : documents.front();
}

Status YamlFile::Bad(const YAML::Node& at, std::string_view why) const {
  return Error(StatusCode::kInvalidArgument,
               fmt::format("{}:{}: {}", name_, at.Mark().line + 1, why));
}

Status YamlFile::Read(const YAML::Node& map, const char* key, std::string* out) const {
  const YAML::Node value = map[key];
  if (!value || value.IsNull()) return OkStatus();
  if (!value.IsScalar()) return Bad(value, fmt::format("`{}` must be a text", key));
  *out = value.Scalar();
  return OkStatus();
}

Status YamlFile::Read(const YAML::Node& map, const char* key, bool* out) const {
  const YAML::Node value = map[key];
  if (!value || value.IsNull()) return OkStatus();
  if (!value.IsScalar() || (value.Scalar() != "true" && value.Scalar() != "false")) {
    return Bad(value, fmt::format("`{}` must be true or false", key));
  }
  *out = value.Scalar() == "true";
  return OkStatus();
}

Status YamlFile::Read(const YAML::Node& map, const char* key, double min, double max,
                      double* out) const {
  const YAML::Node value = map[key];
  if (!value || value.IsNull()) return OkStatus();
  double number = 0;
  if (!value.IsScalar() || !absl::SimpleAtod(value.Scalar(), &number) ||
      !(number >= min && number <= max)) {
    return Bad(value, fmt::format("`{}` must be a number in {}..{}", key, min, max));
  }
  *out = number;
  return OkStatus();
}

Status YamlFile::Read(const YAML::Node& map, const char* key, std::vector<std::string>* out) const {
  const YAML::Node value = map[key];
  if (!value || value.IsNull()) return OkStatus();
  if (value.IsScalar()) {
    out->push_back(value.Scalar());
    return OkStatus();
  }
  if (!value.IsSequence()) return Bad(value, fmt::format("`{}` must be a name or a list", key));
  for (const YAML::Node& item : value) {
    if (!item.IsScalar()) return Bad(item, fmt::format("`{}` must list names", key));
    out->push_back(item.Scalar());
  }
  return OkStatus();
}

StatusOr<Json> YamlFile::ToJson(const YAML::Node& node) const {
  if (node.IsNull()) return Json();
  if (node.IsSequence()) {
    JsonArray array;
    for (const YAML::Node& item : node) {
      PORTICO_ASSIGN_OR_RETURN(Json value, ToJson(item));
      array.push_back(std::move(value));
    }
    return Json(std::move(array));
  }
  if (node.IsMap()) {
    JsonObject object;
    for (const auto& entry : node) {
      PORTICO_ASSIGN_OR_RETURN(Json value, ToJson(entry.second));
      object.emplace_back(entry.first.Scalar(), std::move(value));
    }
    return Json(std::move(object));
  }
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return Json(text);
  if (text == "true") return Json(true);
  if (text == "false") return Json(false);
  int64_t integer = 0;
  if (absl::SimpleAtoi(text, &integer)) return Json(integer);
  double number = 0;
  if (absl::SimpleAtod(text, &number)) return Json(number);
  return Json(text);
}

}  // namespace portico::pipeline
