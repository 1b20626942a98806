// SGLang's answers to /encode and /classify, and the meta_info that HTTP and gRPC share. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/pooling/pooled_values.h"
#include "service/pooling/pooling_run.h"

namespace portico::api::sglang {

// Of one text.
struct PoolingMeta {
  std::string_view id;
  int32_t prompt_tokens = 0;
  double e2e_seconds = 0;
  std::string_view weight_version;
};

// Keys, and values as JSON texts.
std::vector<std::pair<std::string_view, std::string>> PoolingMetaEntries(const PoolingMeta& meta);
void AppendPoolingMeta(const PoolingMeta& meta, std::string* out);

// {"17":0.5,"4":0.25}
void AppendSparseVector(const SparseVector& vector, std::string* out);

// {"embedding":…,"meta_info":…}, in a list for a list. `form`: of vectors; absent: raw logits. Each text has a rid.
std::string PooledBody(const std::optional<VectorForm>& form, bool is_list,
                       std::string_view weight_version, PoolingResult result);

}  // namespace portico::api::sglang
