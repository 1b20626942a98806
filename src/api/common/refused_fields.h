// Fields of OpenAI's and SGLang's requests that are not supported yet. They are refused when set
// to something other than their default (serve-contract: never ignored).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/common/field_reader.h"
#include "base/status.h"

namespace portico::api {

struct RefusedField {
  std::string_view name;
  // JSON texts of the values that mean "not used", separated by spaces; "*" for every value. Null
  // always does.
  std::string_view defaults;
  // A batch may have a list of such values, or lists of them, one for each prompt.
  bool per_prompt = false;
  // The field that does the same here; empty if there is none.
  std::string_view instead = "";
  // Where there is no such field: what to do, if more than to leave it out.
  std::string_view advice = "";
};
inline constexpr bool kPerPrompt = true;

// Whether `name` is in `fields`, which are sorted by name; then `status` says whether its value is
// a default.
bool IsRefusedField(std::span<const RefusedField> fields, std::string_view name, Element value,
                    Status* status);

// The same, of the fields that no API honours yet.
bool IsRefusedField(std::string_view name, Element value, Status* status);

// The same for a field that its API does not read: notes one of nobody as unknown.
Status RefuseOrNote(std::string_view name, Element value, std::vector<std::string>* unknown_fields);

}  // namespace portico::api
