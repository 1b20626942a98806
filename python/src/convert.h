// Between Python's values and ours. All of it needs the GIL.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/json.h"
#include "tokenizer/token_id.h"

namespace portico::python {

namespace nb = nanobind;

// A text this long is worth letting other Python threads run meanwhile.
constexpr size_t kReleaseBytes = 1024;

// The exception for a status: its sentence as a ValueError, or what fits its code better.
[[noreturn]] void Raise(const Status& status);

inline void Check(const Status& status) {
  if (!status.ok()) [[unlikely]]
    Raise(status);
}
template <typename T>
T Take(StatusOr<T> value) {
  if (!value.ok()) [[unlikely]]
    Raise(value.status());
  return *std::move(value);
}

// The UTF-8 of a str, valid as long as the str. TypeError for anything else, naming `what`; UnicodeEncodeError for
// lone surrogates.
std::string_view TextOf(nb::handle text, const char* what);
nb::object ToStr(std::string_view text);

// None, bool, int, float, str, list, tuple and dict with str keys; TypeError for the rest.
Json JsonOf(nb::handle value);

nb::list ToList(std::span<const TokenId> ids);
// A NumPy array (int32) that owns the ids.
nb::object ToNumpy(std::vector<TokenId> ids);
// From an int, or what counts as one; OverflowError for one that no id of 32 bits can be. An id that no token can have
// becomes -1.
TokenId IdOf(nb::handle id);
// The same of a list, a tuple, an array of integers, anything that yields ints, or an int alone.
std::vector<TokenId> IdsOf(nb::handle ids);

// Runs `work` without the GIL where `bytes` make that worth it.
template <typename Work>
void Unlocked(size_t bytes, Work work) {
  if (bytes < kReleaseBytes) {
    work();
    return;
  }
  nb::gil_scoped_release release;
  work();
}

}  // namespace portico::python
