#include "app/text/tokenize_explain.h"

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "text/json_writer.h"
#include "tokenizer/load/load_model.h"
#include "tokenizer/load/mapped_file.h"
#include "tokenizer/pipeline.h"

namespace portico {
namespace {

namespace fs = std::filesystem;

// "LlamaTokenizerFast" is the same to AutoTokenizer as "LlamaTokenizer".
std::string_view BaseClass(std::string_view name) {
  if (name.ends_with("Fast")) name.remove_suffix(4);
  return name;
}

// Whether a "▁" is put in front of every part of the text by the normalizer.
bool Prepends(const Json& normalizer) {
  if (normalizer.GetString("type") == "Prepend") return true;
  const Json* list = normalizer.Find("normalizers");
  if (list == nullptr || !list->is_array()) return false;
  for (const Json& item : list->as_array()) {
    if (Prepends(item)) return true;
  }
  return false;
}

Json NormalizerOf(const std::string& file) {
  StatusOr<tokenizer::MappedFile> mapped = tokenizer::MappedFile::Open(file);
  if (!mapped.ok()) return Json();
  simdjson::padded_string text(mapped->text());
  Json normalizer;
  Status read = tokenizer::ForEachField(text, [&](std::string_view name, std::string_view value) {
    if (name == "normalizer") {
      if (StatusOr<Json> json = Json::Parse(value); json.ok()) normalizer = *std::move(json);
    }
    return OkStatus();
  });
  return read.ok() ? normalizer : Json();
}

std::string FlagsOf(const tokenizer::AddedToken& token) {
  std::string flags;
  for (const auto& [set, name] :
       {std::pair(token.special, "special"), std::pair(token.normalized, "normalized"),
        std::pair(token.single_word, "single word"), std::pair(token.lstrip, "lstrip"),
        std::pair(token.rstrip, "rstrip")}) {
    if (set) flags += (flags.empty() ? "" : ", ") + std::string(name);
  }
  return flags.empty() ? flags : " (" + flags + ")";
}

}  // namespace

std::vector<std::string> AddedTokenOrigins(const Tokenizer& tokenizer) {
  const tokenizer::Pipeline& pipeline = tokenizer.pipeline();
  const tokenizer::PipelineParts& parts = pipeline.parts();
  const std::string own = parts.description.empty() ? "tokenizer.json" : parts.description;
  std::vector<std::string> lines;
  if (!parts.added_tokens_note.empty()) {
    lines.push_back("The added tokens are those of the " + own +
                    " alone, as AutoTokenizer cannot load this folder: " + parts.added_tokens_note +
                    ".");
  }
  const std::map<TokenId, tokenizer::AddedTokens::Entry> by_id(
      pipeline.added_tokens().entries().begin(), pipeline.added_tokens().entries().end());
  for (const auto& [id, entry] : by_id) {
    std::string text;
    AppendJsonString(entry.token.content, &text);
    lines.push_back("added token " + std::to_string(id) + " " + text + FlagsOf(entry.token) +
                    " of " + (entry.token.source.empty() ? own : entry.token.source));
  }
  return lines;
}

std::vector<std::string> AutoTokenizerDifferences(std::string_view tokenizer_class,
                                                  const Json& normalizer, bool has_spm) {
  std::string_view base = BaseClass(tokenizer_class);
  std::vector<std::string> out;
  if (base == "LlamaTokenizer" && Prepends(normalizer)) {
    out.push_back(
        "The file's normalizer puts \"\xE2\x96\x81\" in front of the text and of every part behind "
        "an "
        "added token. transformers' AutoTokenizer does not use it: for the class LlamaTokenizer it "
        "builds a Metaspace pre-tokenizer with prepend_scheme \"first\", which puts none behind an "
        "added token and none before a text that begins with a space. Such texts get other ids "
        "there.");
  }
  if (base == "T5Tokenizer") {
    out.push_back(
        "transformers' AutoTokenizer builds the class T5Tokenizer anew from the vocabulary: rare "
        "texts, "
        "such as a long run of \"-\", get other ids there.");
  }
  if (base == "MarianTokenizer" && !has_spm) {
    out.push_back(
        "transformers' AutoTokenizer does not load the class MarianTokenizer without its "
        "source.spm and "
        "target.spm files.");
  }
  if (!out.empty()) {
    out.push_back(
        "Portico follows tokenizer.json, as the package `tokenizers` and PreTrainedTokenizerFast "
        "do.");
  }
  return out;
}

std::vector<std::string> AutoTokenizerDifferencesOf(const std::string& path) {
  std::error_code error;
  fs::path file(path);
  if (fs::is_directory(file, error)) file /= "tokenizer.json";
  if (file.extension() != ".json" || !fs::is_regular_file(file, error)) return {};
  StatusOr<TokenizerConfig> config = LoadTokenizerConfig(path);
  if (!config.ok()) return {};
  bool has_spm = fs::exists(file.parent_path() / "source.spm", error);
  return AutoTokenizerDifferences(config->tokenizer_class, NormalizerOf(file.string()), has_spm);
}

}  // namespace portico
