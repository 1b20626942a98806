#include "service/plan/rid_names.h"

#include <fmt/format.h>

#include <utility>

#include "absl/container/flat_hash_set.h"

namespace portico {

Status LengthError(std::string_view field, size_t entries, size_t prompts) {
  return InvalidArgument(field,
                         fmt::format("{} has {} entries for {} prompts; give one for each, or one "
                                     "for all that is not in a list",
                                     field, entries, prompts));
}

StatusOr<std::vector<std::string>> NamePrompts(const OneOrEach<std::string>& rid, size_t prompts,
                                               bool is_batch, std::string (*make_rid)()) {
  if (rid.is_list && !is_batch) {
    return InvalidArgument("rid", "rid must be a string for a single prompt");
  }
  PORTICO_RETURN_IF_ERROR(CheckLength(rid, prompts, "rid"));
  std::vector<std::string> names;
  names.reserve(prompts);
  absl::flat_hash_set<std::string> seen;
  for (size_t i = 0; i < prompts; ++i) {
    std::string name = rid.Of(i, "");
    if (name.empty()) {
      name = make_rid();
    } else if (is_batch && !rid.is_list) {
      name += fmt::format("_{}", i);
    }
    if (!seen.insert(name).second) {
      return Error(StatusCode::kAlreadyExists,
                   fmt::format("rid {} is given to two prompts of this request", name), "rid");
    }
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace portico
