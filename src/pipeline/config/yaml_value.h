// Values of a YAML file, strictly read.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "text/json.h"

namespace portico::pipeline {

// Throws YAML::Exception as YAML::Load() does, and for what that takes otherwise than it is meant: a second document, a
// quote that is not closed, text that is not UTF-8.
YAML::Node LoadOneDocument(const std::string& text);

// Reads members of mappings; absent ones leave `out` as it is. Errors name file and line.
class YamlFile {
 public:
  explicit YamlFile(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }

  // `value` is of the flag --PATH, not of the file.
  void NoteFlag(const YAML::Node& value, const std::string& path) {
    flags_.emplace_back(value, path);
  }

  // "pipeline.yaml:12: why", or "--say.factory.voice: why" at and within values of flags.
  Status Bad(const YAML::Node& at, std::string_view why) const;

  Status Read(const YAML::Node& map, const char* key, std::string* out) const;
  Status Read(const YAML::Node& map, const char* key, bool* out) const;
  Status Read(const YAML::Node& map, const char* key, double min, double max, double* out) const;
  // One name or a list of names.
  Status Read(const YAML::Node& map, const char* key, std::vector<std::string>* out) const;
  // Plain scalars become null, booleans and numbers where they are such; quoted ones stay text.
  // Bounded in depth and in values: aliases make much of little, and one may contain itself.
  StatusOr<Json> ToJson(const YAML::Node& node) const;

 private:
  StatusOr<Json> ToJson(const YAML::Node& node, int depth, int* left) const;

  std::string name_;
  std::vector<std::pair<YAML::Node, std::string>> flags_;
};

}  // namespace portico::pipeline
