// A tokenizer's template for pairs of texts, read off an example, so that a query is encoded once for thousands of
// documents.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace portico {

class PairFrame {
 public:
  explicit PairFrame(const Tokenizer& tokenizer);

  // False: the template is not of this kind, and Tokenizer::EncodeFull() must put pairs together.
  bool known() const { return known_; }

  // Requires known(). Two texts, encoded without special tokens, as one; appends.
  void Join(std::span<const TokenId> first, std::span<const TokenId> second,
            std::vector<TokenId>* ids, std::vector<uint8_t>* types) const;

 private:
  // Tokens around and between the texts, and the types of all.
  struct Part {
    std::vector<TokenId> ids;
    std::vector<uint8_t> types;
  };
  bool ReadOff(const Encoding& example);

  bool known_ = false;
  Part before_, between_, after_;
  uint8_t first_type_ = 0, second_type_ = 0;
};

}  // namespace portico
