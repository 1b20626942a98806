// Values of a YAML file, strictly read.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/json.h"

namespace portico::pipeline {

// Throws YAML::Exception as YAML::Load() does, and where a second document follows, which it would leave out.
YAML::Node LoadOneDocument(const std::string& text);

// Reads members of mappings; absent ones leave `out` as it is. Errors name file and line.
class YamlFile {
 public:
  explicit YamlFile(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }

  Status Bad(const YAML::Node& at, std::string_view why) const;

  Status Read(const YAML::Node& map, const char* key, std::string* out) const;
  Status Read(const YAML::Node& map, const char* key, bool* out) const;
  Status Read(const YAML::Node& map, const char* key, double min, double max, double* out) const;
  // One name or a list of names.
  Status Read(const YAML::Node& map, const char* key, std::vector<std::string>* out) const;
  // Plain scalars become null, booleans and numbers where they are such; quoted ones stay text.
  StatusOr<Json> ToJson(const YAML::Node& node) const;

 private:
  std::string name_;
};

}  // namespace portico::pipeline
