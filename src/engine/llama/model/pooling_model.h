// What a model that gives vectors or class logits needs beside libllama.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/llama/layers/exact_gelu.h"
#include "engine/llama/layers/input_table.h"
#include "engine/llama/layers/pooling_head.h"
#include "message/pooling.h"
#include "message/sampling.h"

namespace portico::llama {

struct PoolingModel {
  ModelTask task = ModelTask::kEmbed;  // kEmbed or kClassify
  Pooling pooling = Pooling::kMean;
  bool normalized = true;
  std::vector<int32_t> embedding_sizes;  // matryoshka_dimensions
  std::vector<std::string> labels;       // kClassify
  ProblemType problem_type = ProblemType::kSingleLabel;
  // Whether a token sees those before it only.
  bool causal = false;
  // Of the first token. With RoBERTa's table tokens that are padding_id have the position before it.
  int32_t first_position = 0;
  TokenId padding_id = -1;  // -1: none
  // kLast: of the last token that is not padding_id, as transformers does for classes.
  bool skips_padding = false;
  std::optional<GeluForm> gelu;  // its layers' activation, if that is what exact_gelu.h computes
  InputTable input;              // empty: libllama looks tokens up
  PoolingHead head;  // of a kEmbed model too, where it projects its vectors; empty: none
};

}  // namespace portico::llama
