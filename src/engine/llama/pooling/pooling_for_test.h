// Test helpers: a sink that collects the outputs of texts, and an engine on a model that pools.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "engine/llama/import/temp_folder_for_test.h"
#include "engine/llama/llama_engine.h"

namespace portico::llama {

class CollectingPoolingSink : public PoolingSink {
 public:
  void Deliver(std::vector<PoolingOutput> batch) override {
    const MutexLock lock(&mutex_);
    for (PoolingOutput& output : batch) {
      order_.push_back(output.stream);
      outputs_[output.stream].push_back(std::move(output));
    }
    changed_.NotifyAll();
  }

  void WaitFor(size_t count) {
    const MutexLock lock(&mutex_);
    while (order_.size() < count) changed_.Wait(&mutex_);
  }
  // The one output of a text; fails the test if it had another number of them.
  PoolingOutput of(StreamId stream) {
    const MutexLock lock(&mutex_);
    std::vector<PoolingOutput>& outputs = outputs_[stream];
    EXPECT_EQ(outputs.size(), 1u);
    return outputs.empty() ? PoolingOutput() : outputs.front();
  }
  // Streams in the order in which their outputs came.
  std::vector<StreamId> order() {
    const MutexLock lock(&mutex_);
    return order_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::map<StreamId, std::vector<PoolingOutput>> outputs_ ABSL_GUARDED_BY(mutex_);
  std::vector<StreamId> order_ ABSL_GUARDED_BY(mutex_);
};

inline PoolingRequest PoolingText(std::vector<TokenId> tokens, std::vector<uint8_t> types = {}) {
  PoolingRequest request;
  request.stream = NextStreamId();
  request.tokens = std::make_shared<const std::vector<TokenId>>(std::move(tokens));
  request.token_types = std::move(types);
  return request;
}

inline StatusOr<std::unique_ptr<LlamaEngine>> LoadPoolingEngine(
    const ModelOptions& model, const LlamaEngineOptions& options = {}) {
  PORTICO_ASSIGN_OR_RETURN(auto loaded, LlamaModel::Load(model, nullptr));
  return NewLlamaEngine(std::move(loaded), options);
}

// One request with these texts; their values in the same order.
inline std::vector<std::vector<float>> PoolAll(Engine* engine, std::vector<PoolingRequest> texts) {
  CollectingPoolingSink sink;
  std::vector<StreamId> streams;
  for (const PoolingRequest& text : texts) streams.push_back(text.stream);
  const Status status = engine->SubmitPooling(std::move(texts), &sink);
  EXPECT_TRUE(status.ok()) << MessageOf(status);
  if (!status.ok()) return {};
  sink.WaitFor(streams.size());
  std::vector<std::vector<float>> values;
  for (const StreamId stream : streams) {
    const PoolingOutput output = sink.of(stream);
    EXPECT_EQ(output.finish, FinishReason::kStop) << MessageOf(output.error);
    values.push_back(output.values);
  }
  return values;
}

}  // namespace portico::llama
