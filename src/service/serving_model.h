// A model that is being served: its engine and all that turns text into tokens and back. Immutable while requests
// run; shared by all shards.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "message/generation_defaults.h"
#include "template/chat_template.h"
#include "tokenizer/conversation_cache.h"
#include "tokenizer/tokenizer.h"

namespace portico {

struct ServingModel {
  std::string id;       // what `model` says in requests
  int64_t created = 0;  // Unix seconds
  std::string tokenizer_path;
  std::unique_ptr<Engine> engine;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<ConversationCache> conversation_cache;  // null: every prompt is encoded whole
  std::shared_ptr<const ChatTemplate> chat_template;      // null: the model has none
  std::string chat_template_error;                        // why there is none, for the refusal
  GenerationDefaults defaults;
};

}  // namespace portico
