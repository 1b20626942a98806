// Reads and checks the head of a GGUF file before libllama does: libllama is made for files that
// are whole and ends the process on some that are not.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

namespace portico::llama {

// A scalar of the metadata. Unsigned 64-bit values beyond int64 are kept as double.
using GgufValue = std::variant<int64_t, double, bool, std::string>;

struct GgufTensor {
  std::string name;
  int32_t type = 0;  // ggml_type
  uint64_t bytes = 0;
  int64_t columns = 0;  // the first dimension
  int64_t rows = 0;     // the second one; 1 where there is none
};

struct GgufInfo {
  std::map<std::string, GgufValue, std::less<>> metadata;  // without arrays
  // Integer arrays of at most 512 elements (one value a layer).
  std::map<std::string, std::vector<int64_t>, std::less<>> arrays;
  std::vector<GgufTensor> tensors;
  uint64_t weight_bytes = 0;

  std::string architecture() const;
  // Value of the architecture's own key: "llama." + key. Absent if it is missing or of another
  // type.
  std::optional<int64_t> Int(std::string_view key) const;
  std::optional<double> Float(std::string_view key) const;
  std::string Text(std::string_view full_key) const;
};

// Whether the first bytes of the file say GGUF.
bool LooksLikeGguf(const std::string& path);

// Errors (INVALID_ARGUMENT, naming file and fault): not a GGUF file, a version or byte order that
// libllama cannot read, counts, lengths, shapes or offsets that cannot be, tensors beyond the end
// of the file.
StatusOr<GgufInfo> ReadGguf(const std::string& path);

// All parts of a model: the file itself, or every "NAME-00001-of-0000N.gguf" beside it when it is
// the first of several. Tensors of all parts are in one table. Also INVALID_ARGUMENT for the values of the model's shape
// on which libllama would abort, and for those that its tensors contradict: it allocates by the former before it looks at
// the latter.
StatusOr<GgufInfo> ReadGgufModel(const std::string& path);

}  // namespace portico::llama
