#include "tokenizer/load.h"

namespace portico::tokenizer {

StatusOr<PipelineParts> PartsFromSentencePiece(std::string_view) {
  return Error(StatusCode::kUnimplemented, "SentencePiece models are not supported yet");
}

}  // namespace portico::tokenizer
