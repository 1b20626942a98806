// What a model needs for texts: its tokenizer, its chat template and the format of its output.
#pragma once

#include <string>

#include "app/options/options.h"
#include "base/status.h"
#include "service/serving_model.h"

namespace portico {

// Where a model's tokenizer is, and what its folder says of it.
struct TokenizerSource {
  std::string path;
  bool lower_case = false;
};

// Into `model`. Every error is one sentence for the person who started the server.
Status LoadText(const ModelOptions& options, const TokenizerSource& source, ServingModel* model);

// --chat-template is a file, or the template itself (SGLang takes both).
StatusOr<std::string> GivenTemplate(const std::string& given);

}  // namespace portico
