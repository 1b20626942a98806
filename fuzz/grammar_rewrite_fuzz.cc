// What is made of schemas, regular expressions and structural tags before the grammar library reads it. The first byte says which;
// its highest bits are the options. Nothing is compiled: the library runs in processes with limits, this runs there as well, but
// what it writes must be bounded by what it may write.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "grammar/schema/json_schema.h"
#include "grammar/schema/pattern.h"
#include "grammar/tag/structural_tag.h"
#include "text/utf8.h"

namespace {

using portico::StatusOr;
using portico::grammar::SchemaOptions;
using portico::grammar::Vocabulary;

const Vocabulary& Words() {
  static const Vocabulary vocabulary = [] {
    Vocabulary made;
    made.texts = {"a", "{", "\xFF<|end|>", "\xFF<think>"};
    made.special = {2, 3};
    made.stops = {2};
    return made;
  }();
  return vocabulary;
}

// A message is text, and so is a grammar.
void Check(const StatusOr<std::string>& made) {
  const std::string_view text =
      made.ok() ? std::string_view(*made) : portico::MessageOf(made.status());
  if (text.empty() || !portico::IsValidUtf8(text)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (!portico::IsValidUtf8(text)) return 0;
  SchemaOptions options;
  options.max_rules = 2000;
  options.max_branches = 200;
  options.closed_objects = (data[0] & 0x80) != 0;
  options.compact = (data[0] & 0x40) != 0;
  switch (data[0] % 3) {
    case 0:
      Check(portico::grammar::JsonSchemaToEbnf(text, options));
      break;
    case 1:
      Check(portico::grammar::RegexToEbnf(text));
      break;
    default:
      Check(portico::grammar::RewriteStructuralTag(text, Words(), options));
  }
  return 0;
}
