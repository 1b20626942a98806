// Any bytes as text for byte-level tokenizers of each known split: the fused way and the general way must give the same
// ids, the ids must decode to the text, and a stream of them must be the decode.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/utf8.h"
#include "tokenizer/decode/stream_decoder.h"
#include "tokenizer/test_tokenizers.h"

namespace {

using portico::TokenId;
using portico::Tokenizer;

std::string Split(std::string_view regex) {
  std::string out = R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)";
  portico::AppendJsonString(regex, &out);
  return out +
         R"(},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]})";
}

std::vector<std::shared_ptr<const Tokenizer>> MakeAll() {
  const std::vector<std::pair<std::string, std::string>> merges = {
      {"l", "l"},           {"h", "e"},           {" ", "t"},       {"\xE4", "\xBD"},
      {" ", "\xE4"},        {"\xE4\xBD", "\xA0"}, {"\xA0", "\xE5"}, {"\xE5", "\xA5"},
      {"\xE5\xA5", "\xBD"}, {"\xC3", "\xA9"},     {"e", "\xC3"}};
  std::vector<std::shared_ptr<const Tokenizer>> out;
  auto add = [&](const std::string& pre, std::string_view normalizer) {
    out.push_back(*Tokenizer::FromJson(portico::tokenizer::ByteLevelJson(merges, pre, normalizer)));
  };
  add(R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true})", "null");
  add(Split(
          R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"),
      R"({"type":"NFC"})");
  add(Split(
          R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"),
      "null");
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const tokenizers =
      new std::vector<std::shared_ptr<const Tokenizer>>(MakeAll());
  if (size == 0) return 0;
  const Tokenizer& tokenizer = *(*tokenizers)[data[0] % tokenizers->size()];
  std::string text = portico::ToValidUtf8({reinterpret_cast<const char*>(data) + 1, size - 1});
  Tokenizer::EncodeOptions options;
  options.add_special_tokens = false;
  std::vector<TokenId> ids;
  if (!tokenizer.EncodeWith(text, options, &ids).ok()) __builtin_trap();
  auto full = tokenizer.EncodeFull(text, nullptr, options);
  if (!full.ok() || full->ids != ids) __builtin_trap();
  std::string decoded = tokenizer.Decode(ids, false);
  portico::StreamDecoder decoder(tokenizer, false);
  std::string streamed;
  for (TokenId id : ids) decoder.Push(id, &streamed);
  decoder.Flush(&streamed);
  if (streamed != decoded) __builtin_trap();
  return 0;
}
