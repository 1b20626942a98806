// A model's tokenizer: text to token ids and back, exact to Hugging Face `tokenizers` 0.23 for the
// same file.
//
// Immutable after Load() and safe to use from any number of threads at once. Encode() keeps a
// bounded cache of words in each thread that calls it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/encoding.h"
#include "tokenizer/token_id.h"

namespace portico {

namespace tokenizer {
class Pipeline;
struct Padding;
struct Truncation;
}  // namespace tokenizer

// Whose added tokens a folder's tokenizer has.
enum class AddedTokensRule {
  kFile,  // the tokenizer file's alone
  kFolder,  // as kAutoTokenizer, but what only a class names does not change the flags of a token of the files
  kAutoTokenizer,  // those, their flags and ids that transformers' AutoTokenizer 5.23 has; kFile where it cannot load
};

struct TokenizerLoadOptions {
  // Texts are made lower case first, whether the file says so or not; UNIMPLEMENTED where it is no tokenizer.json.
  bool lower_case = false;
  AddedTokensRule added_tokens = AddedTokensRule::kAutoTokenizer;
};

class Tokenizer {
 public:
  // `path` is a folder with tokenizer.json (or a tiktoken rank file, or a SentencePiece model), one
  // of these files itself, whose folder is then not looked at, or a GGUF file. What the file asks for and is not
  // supported is an error that names it; nothing degrades.
  static StatusOr<std::shared_ptr<const Tokenizer>> Load(const std::string& path,
                                                         const TokenizerLoadOptions& options = {});
  // The same for the text of a tokenizer.json.
  static StatusOr<std::shared_ptr<const Tokenizer>> FromJson(std::string_view json);

  explicit Tokenizer(std::unique_ptr<const tokenizer::Pipeline> pipeline);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Appends the ids of `text`; added tokens written out in the text become their ids. The file's
  // truncation and padding are not applied. Bytes that are not UTF-8 count as U+FFFD, one for each
  // maximal ill-formed part. A text that the model cannot encode (a WordPiece or WordLevel
  // vocabulary without its unknown token) appends nothing; TryEncode() tells why.
  void Encode(std::string_view text, bool add_special_tokens, std::vector<TokenId>* ids) const;
  Status TryEncode(std::string_view text, bool add_special_tokens, std::vector<TokenId>* ids) const;

  struct EncodeOptions {
    bool add_special_tokens = true;
    bool truncation_and_padding = false;  // as the file sets them
    bool parse_special = true;            // false: special tokens in the text are plain text
    // With truncation_and_padding: these instead of the file's, where not null. They outlive the call.
    const std::optional<tokenizer::Truncation>* truncation = nullptr;
    const std::optional<tokenizer::Padding>* padding = nullptr;
  };
  // Appends the ids of `text` and the part of it that each stands for, the offsets of EncodeFull(): a third of its time
  // and memory.
  Status EncodeOffsets(std::string_view text, const EncodeOptions& options, OffsetUnit unit,
                       std::vector<TokenId>* ids, std::vector<Span>* offsets) const;
  // `pair` is the second sequence of a pair, or null.
  StatusOr<Encoding> EncodeFull(std::string_view text, const std::string_view* pair,
                                const EncodeOptions& options) const;
  // Ids only, with the options.
  Status EncodeWith(std::string_view text, const EncodeOptions& options,
                    std::vector<TokenId>* ids) const;

  // Ids outside the vocabulary are left out, as the reference does.
  std::string Decode(std::span<const TokenId> ids, bool skip_special_tokens) const;

  // Every id is below it, added tokens included.
  int32_t vocab_size() const;
  std::optional<TokenId> TokenToId(std::string_view token) const;
  // The vocabulary's own spelling; "" for an id that it does not have.
  std::string_view IdToToken(TokenId id) const;
  // The bytes that this token contributes to a decode (possibly a part of a character).
  std::string TokenBytes(TokenId id) const;
  // Whether Decode(…, true) leaves this id out.
  bool IsSpecial(TokenId id) const;
  // Whether Encode(…, true) puts anything around a text (BOS, [CLS] …).
  bool AddsSpecialTokens() const;
  // What this tokenizer is made of, for a person.
  std::string Describe() const;

  const tokenizer::Pipeline& pipeline() const { return *pipeline_; }

 private:
  std::unique_ptr<const tokenizer::Pipeline> pipeline_;
};

}  // namespace portico
