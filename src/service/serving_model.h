// A model that is being served: its engine and all that turns text into tokens and back. Immutable while requests
// run; shared by all shards.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "grammar/compile/grammar_compiler.h"
#include "message/embedding_prompts.h"
#include "message/generation_defaults.h"
#include "message/judge_tokens.h"
#include "service/output_format.h"
#include "service/request_cost.h"
#include "template/chat_template.h"
#include "tokenizer/cache/conversation_cache.h"
#include "tokenizer/tokenizer.h"

namespace portico {

// Where the weights are from once they have been replaced. Thread safe.
class WeightsPath {
 public:
  std::string Get() const {
    const MutexLock lock(&mutex_);
    return path_;
  }
  // An empty version leaves it as it is, as SGLang does.
  void Set(std::string path, std::string version) {
    const MutexLock lock(&mutex_);
    path_ = std::move(path);
    if (!version.empty()) version_ = std::move(version);
  }
  void SetVersion(std::string version) {
    const MutexLock lock(&mutex_);
    version_ = std::move(version);
  }
  // The name that the last update gave the weights.
  std::string Version() const {
    const MutexLock lock(&mutex_);
    return version_;
  }

 private:
  mutable Mutex mutex_;
  std::string path_ ABSL_GUARDED_BY(mutex_);
  std::string version_ ABSL_GUARDED_BY(mutex_) = "default";
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
  ModelOutputFormat output;                               // how its output is read
  bool forward_unknown_tools = false;  // calls of tools that nobody offered are calls too
  // With which answers end: the model's and the tokenizer's (end_tokens.h).
  std::vector<TokenId> end_token_ids;
  GenerationDefaults defaults;
  // Of the native API, whose requests do not take `defaults`: what they leave out.
  GenerationDefaults preferred;
  std::optional<int32_t> preferred_max_new_tokens;
  std::string preferred_json;        // as the operator wrote them; empty: none
  int32_t stream_interval = 1;       // of the native API's streams, where the request names none
  bool allow_auto_truncate = false;  // a prompt or a limit that is too long is cut, not refused
  int64_t max_request_cost = kDefaultRequestCost;  // bytes (request_cost.h)
  // Both null: no grammars for this model.
  std::shared_ptr<grammar::GrammarCompiler> grammar_compiler;  // shared by all models
  std::shared_ptr<const grammar::GrammarModel> grammar_model;
  EmbeddingPrompts prompts;
  bool log_requests = false;         // how each request has ended
  bool joins_pairs = false;          // its template puts a query and a document together
  std::string plain_pair_template;   // with joins_pairs: it does so, not the chat template
  std::optional<JudgeTokens> judge;  // of a generating model that ranks documents, with joins_pairs
  std::unique_ptr<WeightsPath> weights = std::make_unique<WeightsPath>();
};

}  // namespace portico
