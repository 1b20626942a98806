#include "tokenizer/model/model.h"

namespace portico::tokenizer {

std::string Model::TokenText(std::string_view, const Token& token) const {
  return std::string(vocabulary_.Spelling(token.id));
}

}  // namespace portico::tokenizer
