// Any bytes as the body of each request that the OpenAI and tokenize codecs read: either a request or an
// INVALID_ARGUMENT. The parser is kept between runs, as a shard keeps it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "api/common/error_body.h"
#include "api/openai/chat/decode_chat.h"
#include "api/openai/completion/decode_completion.h"
#include "api/sglang/tokenize_codec.h"
#include "text/json.h"

namespace {

template <typename Decoded>
void Check(const Decoded& decoded) {
  if (decoded.ok()) return;
  if (decoded.status().code() != portico::StatusCode::kInvalidArgument) std::abort();
  if (!portico::Json::Parse(portico::api::ErrorBody(decoded.status())).ok()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static simdjson::dom::parser parser;
  const std::string body(reinterpret_cast<const char*>(data), size);
  Check(portico::api::openai::DecodeChat(body, parser));
  Check(portico::api::openai::DecodeCompletion(body, parser));
  Check(portico::api::sglang::DecodeTokenize(body, parser));
  Check(portico::api::sglang::DecodeDetokenize(body, parser));
  return 0;
}
