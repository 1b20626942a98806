#include "pipeline/config/yaml_value.h"

#include <fmt/format.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "text/utf8.h"

namespace portico::pipeline {
namespace {

constexpr int kMaxValues = 100000;
constexpr int kMaxDepthOfValues = 64;

// Whether `at` is `value` or within it, as far as values may go: an alias may contain itself.
bool HoldsNode(const YAML::Node& value, const YAML::Node& at, int depth, int* left) {
  if (depth > kMaxDepthOfValues || --*left < 0) return false;
  if (value.is(at)) return true;
  if (!value.IsSequence() && !value.IsMap()) return false;
  for (const auto& entry : value) {
    if (value.IsMap() && entry.first.is(at)) return true;
    if (HoldsNode(value.IsMap() ? entry.second : entry, at, depth + 1, left)) return true;
  }
  return false;
}

// yaml-cpp drops the bytes of a text that it takes for UTF-16 or UTF-32 wrongly.
void ThrowUnlessUtf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && text[at] != '\0') {
    const size_t length = Utf8SequenceLength(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  if (at == text.size()) return;
  YAML::Mark mark;
  mark.line = static_cast<int>(std::count(text.begin(), text.begin() + at, '\n'));
  throw YAML::ParserException(mark, "the text is not UTF-8");
}

}  // namespace

YAML::Node LoadOneDocument(const std::string& text) {
  ThrowUnlessUtf8(text);
  // Where a line ends the text, yaml-cpp lets that close a quote; without it, it throws.
  YAML::LoadAll(text.substr(0, text.find_last_not_of(" \t\r\n") + 1));
  const std::vector<YAML::Node> documents = YAML::LoadAll(text);
  for (size_t i = 1; i < documents.size(); ++i) {
    if (documents[i].IsNull()) continue;
    throw YAML::ParserException(documents[i].Mark(), "a second document begins here");
  }
  return documents.empty() ? YAML::Node() : documents.front();
}

Status YamlFile::Bad(const YAML::Node& at, std::string_view why) const {
  for (auto flag = flags_.rbegin(); flag != flags_.rend(); ++flag) {  // the innermost is the last
    const auto& [value, path] = *flag;
    int left = kMaxValues;
    if (!HoldsNode(value, at, 0, &left)) continue;
    return Error(StatusCode::kInvalidArgument, fmt::format("--{}: {}", path, why));
  }
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
  int left = kMaxValues;
  return ToJson(node, 0, &left);
}

StatusOr<Json> YamlFile::ToJson(const YAML::Node& node, int depth, int* left) const {
  if (depth > kMaxDepthOfValues) {
    return Bad(node, fmt::format("values are nested more than {} deep", kMaxDepthOfValues));
  }
  if (--*left < 0) return Bad(node, fmt::format("there are more than {} values", kMaxValues));
  if (node.IsNull()) return Json();
  if (node.IsSequence()) {
    JsonArray array;
    for (const YAML::Node& item : node) {
      PORTICO_ASSIGN_OR_RETURN(Json value, ToJson(item, depth + 1, left));
      array.push_back(std::move(value));
    }
    return Json(std::move(array));
  }
  if (node.IsMap()) {
    JsonObject object;
    for (const auto& entry : node) {
      PORTICO_ASSIGN_OR_RETURN(Json value, ToJson(entry.second, depth + 1, left));
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
