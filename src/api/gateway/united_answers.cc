#include "api/gateway/united_answers.h"

#include <optional>
#include <string>

#include "text/json.h"

namespace portico::api {
namespace {

enum class UnitedAs : unsigned char {
  kEachSaysYes,   // an answer that does not say is a no
  kEachThatSays,  // only of answers that say; nothing if none does
  kSum,           // null if one does not say
  kWhatAllSay,    // null if they differ, or one does not say
};

struct UnitedField {
  std::string_view path;
  std::string_view name;
  UnitedAs as;
};

constexpr UnitedField kUnitedFields[] = {{"/is_paused", "is_paused", UnitedAs::kEachSaysYes},
                                         {"/is_sleeping", "is_sleeping", UnitedAs::kEachSaysYes},
                                         {"/get_world_size", "world_size", UnitedAs::kSum},
                                         {"/weight_info", "weight_version", UnitedAs::kWhatAllSay},
                                         {"/weight_checker", "match", UnitedAs::kEachThatSays}};

// World sizes beyond it are nonsense, and their sum must not overflow.
constexpr int64_t kMaxWorldSize = int64_t{1} << 32;

std::optional<Json> Said(std::string_view answer, std::string_view name) {
  StatusOr<Json> json = Json::Parse(answer);
  if (!json.ok() || !json->is_object()) return std::nullopt;
  const Json* said = json->Find(name);
  return said == nullptr ? std::nullopt : std::optional(*said);
}

Json SumOf(const std::vector<std::optional<Json>>& said) {
  int64_t sum = 0;
  for (const auto& one : said) {
    if (!one || !one->is_int() || one->as_int() < 0 || one->as_int() > kMaxWorldSize) return {};
    sum += one->as_int();
  }
  return sum;
}

Json WhatAllSay(const std::vector<std::optional<Json>>& said) {
  for (const auto& one : said) {
    if (!one || !(*one == *said.front())) return {};
  }
  return said.empty() ? Json() : *said.front();
}

// Nothing: the answer has no such field.
std::optional<Json> Unite(UnitedAs as, const std::vector<std::optional<Json>>& said) {
  if (as == UnitedAs::kSum) return SumOf(said);
  if (as == UnitedAs::kWhatAllSay) return WhatAllSay(said);
  bool all = true;
  bool any_says = false;
  for (const auto& one : said) {
    const bool says = one && one->is_bool();
    any_says = any_says || says;
    all = all && (says ? one->as_bool() : as == UnitedAs::kEachThatSays);
  }
  if (as == UnitedAs::kEachThatSays && !any_says) return std::nullopt;
  return Json(all);
}

}  // namespace

void WriteUnited(std::string_view path, const std::vector<std::string_view>& answers,
                 JsonWriter* writer) {
  for (const UnitedField& field : kUnitedFields) {
    if (field.path != path) continue;
    std::vector<std::optional<Json>> said;
    for (const std::string_view answer : answers) said.push_back(Said(answer, field.name));
    if (const auto united = Unite(field.as, said)) writer->Key(field.name).Raw(united->Dump());
  }
}

}  // namespace portico::api
