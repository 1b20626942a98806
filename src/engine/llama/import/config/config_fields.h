// Typed reads of config.json: an absent or null field keeps the default, a field of another type or
// out of range is an error that names it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/json.h"

namespace portico::llama {

// A view of one JSON object of the file `path`, both outliving it; `prefix` names the object within
// the file ("rope_scaling.") in messages. The first error sticks and later reads do nothing.
class ConfigFields {
 public:
  ConfigFields(const Json& object, const std::string& path, std::string prefix = {})
      : object_(object), path_(path), prefix_(std::move(prefix)) {}

  void Int(std::string_view name, int64_t* value, int64_t min = 1, int64_t max = 1 << 30);
  void Number(std::string_view name, double* value);  // finite and above zero
  void Bool(std::string_view name, bool* value);
  void Text(std::string_view name, std::string* value);

  // The member, unless it is absent or null.
  const Json* Find(std::string_view name) const;
  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  Status Bad(std::string_view name, const std::string& fault) const;
  const Status& status() const { return status_; }
  const Json& object() const { return object_; }
  const std::string& path() const { return path_; }

 private:
  const Json& object_;
  const std::string& path_;
  std::string prefix_;
  Status status_;
};

// A JSON object. INVALID_ARGUMENT names the file for anything else.
StatusOr<Json> ParseConfigJson(const std::string& text, const std::string& path);

}  // namespace portico::llama
