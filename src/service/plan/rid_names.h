// Names for the prompts of one request. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "message/native_generate.h"

namespace portico {

// INVALID_ARGUMENT naming `field` unless there is one value, or one a prompt.
template <typename T>
Status CheckLength(const OneOrEach<T>& value, size_t prompts, std::string_view field);
Status LengthError(std::string_view field, size_t entries, size_t prompts);

// One name a prompt, as SGLang gives them: the client's own; NAME_0, NAME_1 … of one name for a batch; new ones of
// `make_rid` where there is none. ALREADY_EXISTS for a name twice; INVALID_ARGUMENT (field "rid") for a list of
// the wrong length, or without a batch.
StatusOr<std::vector<std::string>> NamePrompts(const OneOrEach<std::string>& rid, size_t prompts,
                                               bool is_batch, std::string (*make_rid)());

template <typename T>
Status CheckLength(const OneOrEach<T>& value, size_t prompts, std::string_view field) {
  if (!value.is_list || value.values.size() == prompts) return absl::OkStatus();
  return LengthError(field, value.values.size(), prompts);
}

}  // namespace portico
