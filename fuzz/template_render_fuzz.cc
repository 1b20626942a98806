// Arbitrary text as a chat template, rendered over a small conversation: it may fail, but must not crash, hang or eat
// memory.
#include <cstddef>
#include <cstdint>
#include <string>

#include "template/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const portico::Json* const kMessages = new portico::Json(*portico::Json::Parse(R"([
      {"role": "system", "content": "Be brief. \u00e9 \u4f60\u597d"},
      {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image"}]},
      {"role": "assistant", "content": null, "reasoning": "why", "tool_calls": [
          {"id": "1", "function": {"name": "f", "arguments": {"x": 1, "y": [1.5, true, null]}}}]},
      {"role": "tool", "content": "{}", "tool_call_id": "1"},
      {"role": "assistant", "content": "  Done. "}])"));
  std::string source(reinterpret_cast<const char*>(data), size);
  auto chat = portico::ChatTemplate::FromSource(std::move(source), {{"bos_token", "<s>"}});
  if (!chat.ok()) return 0;
  std::vector<std::pair<size_t, size_t>> spans;
  portico::ChatTemplate::Request request;
  request.messages = kMessages;
  request.options.max_steps = 100'000;
  request.options.max_output_bytes = size_t{1} << 20;
  request.options.max_memory_bytes = size_t{8} << 20;
  (void)(*chat)->Render(request);
  request.options.generation_spans = &spans;
  (void)(*chat)->Render(request);
  return 0;
}
