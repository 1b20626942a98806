// Test helper: the engine on a tiny model of the reference data, whose greedy answers and logits
// transformers has computed in float32.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/llama/engine_for_test.h"
#include "engine/llama/import/files/safetensors.h"
#include "engine/llama/model/logits_for_test.h"

namespace portico::llama {

template <typename T>
std::vector<T> ReadTensorOf(const WeightFiles& file, const std::string& name) {
  const WeightTensor* tensor = file.Find(name);
  if (tensor == nullptr) return {};
  std::vector<T> values(tensor->bytes / sizeof(T));
  EXPECT_TRUE(file.FileOf(*tensor).ReadAt(tensor->offset, values.data(), tensor->bytes).ok());
  return values;
}

struct ReferenceCase {
  std::vector<TokenId> prompt;
  std::vector<TokenId> greedy;
  std::vector<float> logits;  // of all positions, or of the last
};

// An engine on one of those models.
class ReferenceEngine : public TestEngine {
 public:
  static bool Here() { return !SharedFolder().empty(); }

  void Load(const std::string& name) {
    const std::string folder = SharedFolder() + "/data/models/" + name;
    LoadModel(folder, "float32");
    ASSERT_NE(model_, nullptr);
    vocab_ = static_cast<size_t>(model_->info().vocab_size);
    context_ = model_->info().context_length;
    auto expected = WeightFiles::OpenFile(folder + "/expected.safetensors");
    ASSERT_TRUE(expected.ok()) << MessageOf(expected.status());
    for (int k = 0; k < 5; ++k) {
      const std::string prefix = "case" + std::to_string(k);
      ReferenceCase reference;
      reference.prompt = ReadTensorOf<TokenId>(*expected, prefix + ".input_ids");
      reference.greedy = ReadTensorOf<TokenId>(*expected, prefix + ".greedy");
      reference.logits = ReadTensorOf<float>(*expected, prefix + ".logits");
      if (reference.prompt.size() + reference.greedy.size() > static_cast<size_t>(context_))
        continue;
      cases_.push_back(std::move(reference));
    }
    ASSERT_FALSE(cases_.empty());
  }

  GenerateRequest Question(size_t k) {
    const ReferenceCase& c = cases_[k % cases_.size()];
    return Greedy(c.prompt, static_cast<int32_t>(std::max<size_t>(c.greedy.size(), 1)));
  }

  void ExpectReference(size_t k, const Answer& answer, const char* when) {
    const ReferenceCase& c = cases_[k % cases_.size()];
    if (c.greedy.empty()) return;
    EXPECT_EQ(answer.tokens, c.greedy) << when << ", case " << k % cases_.size();
    EXPECT_EQ(answer.terminals, 1);
    EXPECT_EQ(answer.last.finish, FinishReason::kLength);
  }

  std::vector<ReferenceCase> cases_;
  size_t vocab_ = 0;
  int32_t context_ = 0;
};

}  // namespace portico::llama
