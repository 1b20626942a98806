// Text from ids that arrive one at a time.
#pragma once

#include <string>

#include "tokenizer/token_id.h"
#include "tokenizer/tokenizer.h"

namespace portico {

// One stream. What it appends to `out` is, joined, exactly Decode() of all pushed ids, wherever the
// stream is cut; a piece never ends inside a character. Memory is bounded, time a token is
// constant. Not for two threads at once.
class StreamDecoder {
 public:
  // `tokenizer` outlives this.
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens);

  // Appends the text that has become certain.
  void Push(TokenId id, std::string* out);
  // Appends the rest: bytes of an unfinished character become U+FFFD, as in Decode(). The stream
  // can start anew.
  void Flush(std::string* out);

 private:
  const tokenizer::Pipeline* pipeline_;
  bool skip_special_tokens_;
  bool first_ = true;    // nothing was decoded yet
  std::string pending_;  // bytes whose text is not certain yet
};

}  // namespace portico
