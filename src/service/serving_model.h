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
#include "service/output/output_format.h"
#include "service/plan/request_cost.h"
#include "service/plan/step_pace.h"
#include "template/chat_template.h"
#include "tokenizer/cache/conversation_cache.h"
#include "tokenizer/long_text.h"
#include "tokenizer/tokenizer.h"

namespace portico {

// Where the weights are from once they have been replaced, and what they are called. An engine that is started again has
// its first ones again: what is noted here is of one life of it (Engine::life()). Thread safe.
class WeightsPath {
 public:
  // Empty: the engine's own.
  std::string Get(uint64_t life) const {
    const MutexLock lock(&mutex_);
    return life == life_ ? path_ : std::string();
  }
  // The name that the last update gave the weights, else the first one.
  std::string Version(uint64_t life) const {
    const MutexLock lock(&mutex_);
    return life == life_ ? version_ : first_version_;
  }
  // Before anything else.
  void SetFirstVersion(const std::string& version) {
    const MutexLock lock(&mutex_);
    version_ = first_version_ = version;
  }
  // `life`: in which the update was done. An empty version leaves it as it is, as SGLang does.
  void Set(std::string path, std::string version, uint64_t life) {
    const MutexLock lock(&mutex_);
    if (!Enter(life)) return;
    path_ = std::move(path);
    if (!version.empty()) version_ = std::move(version);
  }
  void SetVersion(std::string version, uint64_t life) {
    const MutexLock lock(&mutex_);
    if (Enter(life)) version_ = std::move(version);
  }

 private:
  // False: that life is over, and so are its weights.
  bool Enter(uint64_t life) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (life < life_) return false;
    if (life > life_) {
      path_.clear();
      version_ = first_version_;
      life_ = life;
    }
    return true;
  }

  mutable Mutex mutex_;
  uint64_t life_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string path_ ABSL_GUARDED_BY(mutex_);
  std::string version_ ABSL_GUARDED_BY(mutex_) = "default";
  std::string first_version_ ABSL_GUARDED_BY(mutex_) = "default";
};

struct ServingModel {
  // Of the weights that it answers with.
  std::string model_path() const {
    std::string replaced = weights->Get(engine->life());
    return replaced.empty() ? engine->info().model_path : replaced;
  }
  std::string weight_version() const { return weights->Version(engine->life()); }

  std::string id;       // what `model` says in requests
  int64_t created = 0;  // Unix seconds
  std::string tokenizer_path;
  std::unique_ptr<Engine> engine;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<ConversationCache> conversation_cache;  // null: every prompt is encoded whole
  std::shared_ptr<const LongTextEncoder> long_texts;      // null: plans encode long texts whole
  std::shared_ptr<const ChatTemplate> chat_template;      // null: the model has none
  // What that takes; shared, as the template is.
  std::shared_ptr<StepPace> render_pace = std::make_shared<StepPace>();
  std::string chat_template_error;     // why there is none, for the refusal
  ModelOutputFormat output;            // how its output is read
  bool forward_unknown_tools = false;  // calls of tools that nobody offered are calls too
  // With which answers end: the model's and the tokenizer's (service/plan/end_tokens.h).
  std::vector<TokenId> end_token_ids;
  GenerationDefaults defaults;
  // Of the native API, whose requests do not take `defaults`: what they leave out.
  GenerationDefaults preferred;
  std::optional<int32_t> preferred_max_new_tokens;
  std::string preferred_json;        // as the operator wrote them; empty: none
  int32_t stream_interval = 1;       // of the native API's streams, where the request names none
  bool allow_auto_truncate = false;  // a prompt or a limit that is too long is cut, not refused
  int64_t max_request_cost = kDefaultRequestCost;  // bytes (service/plan/request_cost.h)
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
