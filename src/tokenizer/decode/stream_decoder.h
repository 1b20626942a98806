// Text from ids that arrive one at a time.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/token_id.h"
#include "tokenizer/tokenizer.h"

namespace portico {

// One stream. What it appends to `out` is, joined, exactly Decode() of all pushed ids, wherever the stream is cut; a
// piece never ends inside a character, and text that is certain is not held back. Memory is bounded, time a token is
// constant. Not for two threads at once.
//
// Two rules of decoders can take back text that was complete: a run of <0x..> byte tokens that is text so far and
// then goes wrong becomes U+FFFD for every byte of it, and clean-up rules may look at the next token. What was sent
// stays sent; only there the joined text differs from Decode().
class StreamDecoder {
 public:
  // `tokenizer` outlives this.
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens);

  // Before the first Push(): the stream goes on where the prompt ends. Its text is Decode() of the prompt and the pushed
  // ids, less Decode() of the prompt, so that decoders leave the space that they take off the start of a text. Only the
  // prompt's last few tokens are looked at. A character that the prompt begins and the stream completes is the stream's.
  void Continue(std::span<const TokenId> prompt, bool skip_special_tokens);

  // Appends the text that has become certain.
  void Push(TokenId id, std::string* out);
  // Appends the rest: bytes of an unfinished character become U+FFFD, as in Decode(). The stream can start anew.
  void Flush(std::string* out);

  // The bytes that this token, shown or not, would add if it were the next one: of a part of a character that part.
  // Empty for an id that there is not.
  std::string TokenBytes(TokenId id) const;
  // The stream from here on, with the special tokens that come.
  StreamDecoder WithSpecialTokens() const;

 private:
  void PushFirst(TokenId id, std::string* out);
  void PushByteLevel(TokenId id, std::string* out);
  void PushFallback(TokenId id, std::string* out);
  void PushTokenwise(TokenId id, std::string* out);
  void PushGeneral(TokenId id, std::string* out);
  void EmitRun(bool at_end, std::string* out);
  void EmitText(std::string_view text, std::string* out);
  bool BeginsInsideCharacter(TokenId id) const;
  std::string GeneralTokenBytes(TokenId id) const;

  const tokenizer::Pipeline* pipeline_;
  bool skip_special_tokens_;
  bool ends_prompt_ = false;      // prompt_end_ has not been completed yet
  std::string pending_;           // bytes whose text is not certain yet
  bool at_start_ = true;          // no token yet
  bool run_bad_ = false;          // the run of byte tokens is no text
  size_t stripped_ = 0;           // characters taken off the start so far
  bool stripping_ = true;         // the text's start may still be taken off
  std::vector<TokenId> context_;  // the general way: ids already sent, then ids to come
  size_t context_sent_ = 0;       // how many of them were sent
  std::string context_text_;      // the text of those
  std::string prompt_end_;        // the text of a character that the prompt leaves unfinished
};

}  // namespace portico
