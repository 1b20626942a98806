#include "tokenizer/load.h"

namespace portico::tokenizer {

StatusOr<PipelineParts> PartsFromTiktoken(std::string_view, const std::string&) {
  return Error(StatusCode::kUnimplemented, "tiktoken rank files are not supported yet");
}

}  // namespace portico::tokenizer
