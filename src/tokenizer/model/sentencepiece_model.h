// SentencePiece's own two models and its decoder, to the bit: scores are 32-bit there, and text that no piece covers
// is handled otherwise than in tokenizer.json's models.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/decode/decoder.h"
#include "tokenizer/load/sentencepiece_parts.h"
#include "tokenizer/merge/merge_table.h"
#include "tokenizer/model/byte_trie.h"
#include "tokenizer/model/model.h"
#include "tokenizer/normalize/charsmap.h"
#include "tokenizer/normalize/normalizer.h"

namespace portico::tokenizer {

// Text in the form that the pieces are written in.
std::unique_ptr<const Normalizer> MakeSentencePieceNormalizer(const SentencePieceSource& source,
                                                              std::optional<Charsmap> map);
StatusOr<std::unique_ptr<const Model>> MakeSentencePieceUnigram(const SentencePieceSource& source,
                                                                Vocabulary vocabulary);
StatusOr<std::unique_ptr<const Model>> MakeSentencePieceBpe(const SentencePieceSource& source,
                                                            Vocabulary vocabulary);
// Either model as bytes, and back; false for any other model, null where these are not such bytes. Any bytes are safe.
// They are used where they lie, so they must outlive the model.
bool SaveSentencePieceModel(const Model& model, CompiledWriter* out);
std::unique_ptr<const Model> RestoreSentencePieceModel(CompiledReader* in);
std::unique_ptr<const Decoder> MakeSentencePieceDecoder(const SentencePieceSource& source);

}  // namespace portico::tokenizer
