// How the output of a model is parsed: its flags, what its files declare, and the rules of `auto`.
#pragma once

#include <string>
#include <string_view>

#include "app/options/options.h"
#include "base/status.h"
#include "service/serving_model.h"

namespace portico {

// Sets `model`'s output format. `chat_template`: the source of the one it uses; empty: it has none. `folder`: where its tokenizer
// is. A parser that the flags leave to `auto` is the one that the folder's tokenizer_config.json names ("tool_call_parser",
// "reasoning_parser"); if it names none that exists, MakeOutputFormat() chooses.
Status ReadOutputFormat(const ModelOptions& options, std::string_view chat_template,
                        const std::string& folder, ServingModel* model);

}  // namespace portico
