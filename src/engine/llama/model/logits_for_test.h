// Test helper: the logits of a prompt, computed with the context that LlamaModel recommends.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/source_dir_for_test.h"
#include "engine/llama/model/model.h"

namespace portico::llama {

// The folder of reference data that lies beside a checkout, or "" where there is none.
inline std::string SharedFolder() {
  const char* shared = std::getenv("PORTICO_SHARED");
  std::filesystem::path path = shared != nullptr
                                   ? std::filesystem::path(shared)
                                   : std::filesystem::path(SourceDir()).parent_path() / "shared";
  return std::filesystem::is_directory(path) ? path.string() : std::string();
}

// Row t holds the logits after tokens[0..t].
inline std::vector<std::vector<float>> PromptLogits(const LlamaModel& model,
                                                    std::vector<llama_token> tokens) {
  llama_context_params params = model.ContextParams();
  params.n_ctx = params.n_batch = params.n_ubatch = static_cast<uint32_t>(tokens.size());
  params.n_threads = params.n_threads_batch = 2;
  std::unique_ptr<llama_context, decltype(&llama_free)> context(
      llama_init_from_model(model.get(), params), llama_free);
  if (context == nullptr) {
    ADD_FAILURE() << "no context";
    return {};
  }
  llama_batch batch = llama_batch_init(static_cast<int32_t>(tokens.size()), 0, 1);
  batch.n_tokens = static_cast<int32_t>(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    batch.token[i] = tokens[i];
    batch.pos[i] = static_cast<llama_pos>(i);
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = 1;
  }
  EXPECT_EQ(llama_decode(context.get(), batch), 0);
  llama_batch_free(batch);
  std::vector<std::vector<float>> rows;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const float* row = llama_get_logits_ith(context.get(), static_cast<int32_t>(i));
    rows.emplace_back(row, row + model.info().vocab_size);
  }
  return rows;
}

// The largest absolute difference; infinity where the sizes differ or a value is not a number.
inline float MaxDifference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  float most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    float difference = std::fabs(a[i] - b[i]);
    if (!(difference <= most)) most = std::isnan(difference) ? INFINITY : difference;
  }
  return most;
}

}  // namespace portico::llama
