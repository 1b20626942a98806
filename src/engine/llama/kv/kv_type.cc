#include "engine/llama/kv/kv_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>

namespace portico::llama {
namespace {

struct KvTypeName {
  std::string_view name;
  ggml_type type;
};

// That libllama writes to its cells and attention/cell_attention.h reads. SGLang calls one of them by two names.
constexpr KvTypeName kKvTypes[] = {
    {"float32", GGML_TYPE_F32}, {"float16", GGML_TYPE_F16}, {"bfloat16", GGML_TYPE_BF16},
    {"bf16", GGML_TYPE_BF16},   {"q8_0", GGML_TYPE_Q8_0},   {"q5_1", GGML_TYPE_Q5_1},
    {"q5_0", GGML_TYPE_Q5_0},   {"q4_1", GGML_TYPE_Q4_1},   {"q4_0", GGML_TYPE_Q4_0},
};

}  // namespace

StatusOr<std::optional<ggml_type>> ParseKvType(std::string_view name) {
  if (name == "auto") return std::optional<ggml_type>();
  const auto* found = std::find_if(std::begin(kKvTypes), std::end(kKvTypes),
                                   [&](const KvTypeName& known) { return known.name == name; });
  if (found != std::end(kKvTypes)) return std::optional(found->type);
  std::string names = "auto";
  for (const KvTypeName& known : kKvTypes) names += fmt::format(", {}", known.name);
  return InvalidArgument(
      "kv_cache_dtype",
      fmt::format("`{:.64}` is not a type of the KV cache; there are {}", name, names));
}

}  // namespace portico::llama
