// A model that is being served: its engine and all that turns text into tokens and back. Immutable while requests
// run; shared by all shards.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "engine/engine.h"
#include "message/embedding_prompts.h"
#include "message/generation_defaults.h"
#include "message/judge_tokens.h"
#include "template/chat_template.h"
#include "tokenizer/conversation_cache.h"
#include "tokenizer/tokenizer.h"

namespace portico {

// Where the weights are from once they have been replaced. Thread safe.
class WeightsPath {
 public:
  std::string Get() const {
    std::lock_guard lock(mutex_);
    return path_;
  }
  void Set(std::string path) {
    std::lock_guard lock(mutex_);
    path_ = std::move(path);
  }
  // Held while weights are replaced, one replacement after the other.
  std::mutex replacing;

 private:
  mutable std::mutex mutex_;
  std::string path_;  // guarded by mutex_
};

struct ServingModel {
  // Of the weights that it answers with.
  std::string model_path() const {
    std::string replaced = weights->Get();
    return replaced.empty() ? engine->info().model_path : replaced;
  }

  std::string id;       // what `model` says in requests
  int64_t created = 0;  // Unix seconds
  std::string tokenizer_path;
  std::unique_ptr<Engine> engine;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<ConversationCache> conversation_cache;  // null: every prompt is encoded whole
  std::shared_ptr<const ChatTemplate> chat_template;      // null: the model has none
  std::string chat_template_error;                        // why there is none, for the refusal
  GenerationDefaults defaults;
  EmbeddingPrompts prompts;
  bool joins_pairs = false;          // its template puts a query and a document together
  std::string plain_pair_template;   // with joins_pairs: it does so, not the chat template
  std::optional<JudgeTokens> judge;  // of a generating model that ranks documents, with joins_pairs
  std::unique_ptr<WeightsPath> weights = std::make_unique<WeightsPath>();
};

}  // namespace portico
