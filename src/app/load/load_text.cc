#include "app/load/load_text.h"

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "app/load/model_output.h"
#include "app/load/template_log.h"
#include "app/read_file.h"
#include "base/log.h"
#include "service/plan/end_tokens.h"
#include "template/pair_template.h"
#include "tokenizer/load/tokenizer_config.h"
#include "tokenizer/pipeline.h"

namespace portico {
namespace {

// What a model with this template, which may be a reranker's, makes of pairs.
void ReadPairs(std::string_view source, ServingModel* model) {
  model->joins_pairs = IsPairTemplate(source);
  if (model->judge || !AsksForYesOrNo(source)) return;
  const std::optional<TokenId> yes = model->tokenizer->TokenToId("yes");
  const std::optional<TokenId> no = model->tokenizer->TokenToId("no");
  if (yes && no) model->judge = JudgeTokens{*yes, *no};
}

// Takes a GGUF file's own template for pairs, which is no chat template, out of them; empty if there is none.
std::string TakePlainPairTemplate(TokenizerConfig* config) {
  std::string plain;
  std::erase_if(config->chat_templates, [&](const auto& named) {
    if (named.first != "rerank" || !IsPlainPairTemplate(named.second)) return false;
    plain = named.second;
    return true;
  });
  return plain;
}

// The template that most requests go through.
std::string MainTemplate(const std::vector<std::pair<std::string, std::string>>& templates) {
  for (std::string_view name : {"tool_use", "default"}) {
    for (const auto& [key, text] : templates) {
      if (key == name) return text;
    }
  }
  return templates.empty() ? "" : templates.front().second;
}

void LoadTemplates(TokenizerConfig config, ServingModel* model) {
  std::string plain = TakePlainPairTemplate(&config);
  const std::vector<std::pair<std::string, std::string>>& templates = config.chat_templates;
  if (templates.empty()) {
    model->chat_template_error = "its tokenizer has none";
  } else if (auto parsed = ChatTemplate::FromTemplates(templates, config.NamedSpecialTokens());
             parsed.ok()) {
    model->chat_template = *std::move(parsed);
    if (templates.size() == 1) ReadPairs(templates.front().second, model);
  } else {
    model->chat_template_error = std::string(MessageOf(parsed.status()));
    LogWarning("the chat template cannot be used: {}", model->chat_template_error);
  }
  // A chat template for pairs goes first: it takes instructions.
  if (plain.empty() || model->joins_pairs) return;
  ReadPairs(plain, model);
  model->joins_pairs = true;
  model->plain_pair_template = std::move(plain);
}

}  // namespace

StatusOr<std::string> GivenTemplate(const std::string& given) {
  if (given.find("{%") != std::string::npos || given.find("{{") != std::string::npos) return given;
  return ReadFile(given);
}

Status LoadText(const ModelOptions& options, const TokenizerSource& source, ServingModel* model) {
  model->tokenizer_path = source.path;
  auto tokenizer = Tokenizer::Load(source.path, {.lower_case = source.lower_case});
  if (!tokenizer.ok()) {
    const std::string message(MessageOf(tokenizer.status()));
    return Error(tokenizer.status().code(),
                 options.tokenizer_path.empty()
                     ? message + "; --tokenizer-path names another tokenizer"
                     : "--tokenizer-path: " + message);
  }
  model->tokenizer = *std::move(tokenizer);
  model->conversation_cache = std::make_shared<ConversationCache>(model->tokenizer);
  model->long_texts = std::make_shared<LongTextEncoder>(model->tokenizer);
  if (const std::string& note = model->tokenizer->pipeline().parts().added_tokens_note;
      !note.empty()) {
    LogInfo("model `{}`: the added tokens are those of the tokenizer's file alone: {}", model->id,
            note);
  }
  PORTICO_ASSIGN_OR_RETURN(TokenizerConfig config, LoadTokenizerConfig(source.path));
  model->end_token_ids = EndTokensOf(*model->tokenizer, config.eos_token);
  if (options.chat_template.empty()) {
    const std::string main = MainTemplate(config.chat_templates);
    LoadTemplates(std::move(config), model);
    PORTICO_RETURN_IF_ERROR(ReadOutputFormat(options, main, source.path, model));
  } else {
    PORTICO_ASSIGN_OR_RETURN(std::string given, GivenTemplate(options.chat_template));
    ReadPairs(given, model);
    PORTICO_RETURN_IF_ERROR(ReadOutputFormat(options, given, source.path, model));
    PORTICO_ASSIGN_OR_RETURN(
        model->chat_template,
        ChatTemplate::FromSource(std::move(given), config.NamedSpecialTokens()));
  }
  LogTemplateFacts(*model);
  return OkStatus();
}

}  // namespace portico
