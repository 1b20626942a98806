// Any bytes as tokenizer.json, GGUF, SentencePiece and rank files. What loads must encode and decode a text.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/load/load.h"
#include "tokenizer/pipeline.h"

namespace {

using portico::StatusOr;
using portico::TokenId;
using portico::tokenizer::Pipeline;
using portico::tokenizer::PipelineParts;

void Use(StatusOr<PipelineParts> parts) {
  if (!parts.ok()) return;
  auto pipeline = Pipeline::Make(*std::move(parts));
  if (!pipeline.ok()) return;
  constexpr std::string_view kText =
      "Hello, w\xC3\xB6rld <s> 123\n\n  \xE4\xBD\xA0\xE5\xA5\xBD </s>e\xCC\x81";
  std::vector<TokenId> ids;
  if ((*pipeline)->EncodeIds(kText, {}, &ids).ok()) (*pipeline)->Decode(ids, true);
  portico::Tokenizer::EncodeOptions options;
  options.truncation_and_padding = true;
  auto full = (*pipeline)->EncodeFull(kText, &kText, options);
  if (full.ok() && full->ids.size() != full->offsets.size()) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] & 3) {
    case 0:
      Use(portico::tokenizer::PartsFromJson(bytes));
      break;
    case 1:
      Use(portico::tokenizer::PartsFromGguf(std::string("GGUF") + std::string(bytes)));
      break;
    case 2:
      Use(portico::tokenizer::PartsFromSentencePiece(bytes));
      break;
    default:
      Use(portico::tokenizer::PartsFromTiktoken(bytes, "cl100k_base"));
      break;
  }
  return 0;
}
