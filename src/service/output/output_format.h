// How a model's output is read: which parsers, and which special tokens they need to see.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "message/sampling.h"
#include "parser/output_parser.h"
#include "parser/tool/call_forms.h"
#include "tokenizer/tokenizer.h"

namespace portico {

// Of a model; immutable.
struct ModelOutputFormat {
  bool harmony() const {
    return (tools != nullptr && tools->harmony) || (reasoning != nullptr && reasoning->harmony);
  }

  const parser::ToolFamily* tools = nullptr;           // null: calls stay text
  const parser::ReasoningChoice* reasoning = nullptr;  // null: reasoning stays text
  // How calls are written, for constraints; null: in no way that can be told.
  std::shared_ptr<const parser::CallForm> form;
  // Special tokens that are a part of the formats' markers: they reach the parsers where a client wants to see none.
  absl::flat_hash_set<TokenId> markers;
  // Each of the format's markers is a special token, so that text which spells one is text. Harmony's only.
  bool marked_by_tokens = false;
  // The reasoning parser was found, not named: an answer begins inside reasoning only where the prompt says so.
  bool reasoning_found = false;
  // Reasoning can be switched off in the template by this variable; empty: it cannot.
  std::string toggle;
  std::optional<bool> thinks;  // with `toggle`: what it is where a request says nothing
  // Keeps what the checkpoint declared, which `tools` and `reasoning` may point into; null: it declared nothing.
  std::shared_ptr<const void> declared;
};

// A tag without the suffix that a checkpoint gave it (parser::MarkerSet); other texts as they are.
std::string WithoutSuffix(std::string_view tag);

// What the options and the model's files say.
struct OutputFormatSource {
  std::string tool_call_parser = "auto";  // a name, "auto" or "none"
  std::string reasoning_parser = "auto";
  std::string_view chat_template;  // its source; empty: there is none
  std::string architecture;        // of config.json, where known
  std::string model_type;
};

// INVALID_ARGUMENT for a name that nobody gives a parser; it lists those there are.
StatusOr<ModelOutputFormat> MakeOutputFormat(const OutputFormatSource& source,
                                             const Tokenizer& tokenizer);

}  // namespace portico
