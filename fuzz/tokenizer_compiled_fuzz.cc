// Any bytes as the payload of a compiled tokenizer, as if their checksum were right. What is restored must encode a
// text and come back as the same bytes.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/compiled/compiled_image.h"
#include "tokenizer/compiled/compiled_model.h"
#include "tokenizer/test_tokenizers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace portico::tokenizer;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  OpenCompiled({1, 2}, bytes);
  CompiledImage image(bytes);
  std::unique_ptr<const Model> model = RestoreModel(image.text());
  if (!model) return 0;
  std::vector<Token> tokens;
  for (std::string_view piece : {"hello", "\xE4\xBD\xA0", " a"}) {
    model->Tokenize(piece, &tokens).IgnoreError();
  }
  std::optional<std::string> again = CompileModel(*model);
  if (again && !RestoreModel(CompiledImage(*again).text())) __builtin_trap();
  return 0;
}
