#include "tokenizer/sentencepiece_parts.h"

namespace portico::tokenizer {

StatusOr<PipelineParts> PartsOf(SentencePieceSource) {
  return Error(StatusCode::kUnimplemented, "SentencePiece vocabularies are not supported yet");
}

}  // namespace portico::tokenizer
