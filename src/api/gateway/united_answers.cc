#include "api/gateway/united_answers.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "base/counted.h"
#include "router/fleet/answer_field.h"
#include "text/json.h"

namespace portico::api {
namespace {

enum class UnitedAs : unsigned char {
  kEachSaysYes,   // an answer that does not say is a no
  kEachThatSays,  // only of answers that say; nothing if none does
  kSum,           // null if one does not say
  kWhatAllSay,    // null if they differ, or one does not say
  kEachInOrder,   // their lists in one; null if one has none
};

struct UnitedField {
  std::string_view path;
  std::string_view name;
  UnitedAs as;
};

constexpr UnitedField kUnitedFields[] = {{"/is_paused", "is_paused", UnitedAs::kEachSaysYes},
                                         {"/is_sleeping", "is_sleeping", UnitedAs::kEachSaysYes},
                                         {"/get_world_size", "world_size", UnitedAs::kSum},
                                         {"/load", "server_load", UnitedAs::kSum},
                                         {"/collective_rpc", "results", UnitedAs::kEachInOrder},
                                         {"/weight_info", "weight_version", UnitedAs::kWhatAllSay},
                                         {"/weight_checker", "match", UnitedAs::kEachThatSays}};

// Sizes and loads beyond it are nonsense, and their sum must not overflow.
constexpr int64_t kMaxPart = int64_t{1} << 32;

Json SumOf(const std::vector<std::optional<Json>>& said) {
  int64_t sum = 0;
  for (const auto& one : said) {
    if (!one || !one->is_int() || one->as_int() < 0 || one->as_int() > kMaxPart) return {};
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

Json EachInOrder(const std::vector<std::optional<Json>>& said) {
  JsonArray all;
  for (const auto& one : said) {
    if (!one || !one->is_array()) return {};
    all.insert(all.end(), one->as_array().begin(), one->as_array().end());
  }
  return all;
}

// Nothing: the answer has no such field.
std::optional<Json> Unite(UnitedAs as, const std::vector<std::optional<Json>>& said) {
  if (as == UnitedAs::kSum) return SumOf(said);
  if (as == UnitedAs::kWhatAllSay) return WhatAllSay(said);
  if (as == UnitedAs::kEachInOrder) return EachInOrder(said);
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
    for (const std::string_view answer : answers)
      said.push_back(router::FieldOfAnswer(answer, field.name));
    if (const auto united = Unite(field.as, said)) writer->Key(field.name).Raw(united->Dump());
  }
}

void WriteFlushed(int64_t done, int64_t all, JsonWriter* writer) {
  const bool whole = done == all;
  writer->Key("status").String(whole ? "success" : done > 0 ? "partial_success" : "error");
  writer->Key("message").String(
      whole ? fmt::format("Successfully flushed cache on all {}", Counted(all, "worker"))
            : fmt::format("Flushed cache on {} of {}", done, Counted(all, "worker")));
  writer->Key("workers_flushed").Int(done).Key("total_workers").Int(all);
}

}  // namespace portico::api
