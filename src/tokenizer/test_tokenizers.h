// Small tokenizers for tests and fuzzers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/json_writer.h"
#include "text/utf8.h"
#include "tokenizer/compiled/compiled_model.h"
#include "tokenizer/model/byte_level.h"
#include "tokenizer/tokenizer.h"

namespace portico::tokenizer {

// A model's compiled form alone; nothing where it has none.
inline std::optional<std::string> CompileModel(const Model& model) {
  CompiledWriter out;
  if (!SaveModel(model, &out)) return std::nullopt;
  return out.Take();
}

// A byte-level BPE: the 256 bytes are ids 0 … 255, the tokens of the merges follow, then <s> and <|end|> (special) and
// <tool> (not special). `merges` are pairs of byte strings, in order. `pre_tokenizer` is JSON.
inline std::string ByteLevelJson(
    const std::vector<std::pair<std::string, std::string>>& merges,
    std::string_view pre_tokenizer =
        R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})",
    std::string_view normalizer = "null", bool ignore_merges = false) {
  std::string vocab;
  std::string list;
  int id = 0;
  auto add = [&](const std::string& spelling) {
    vocab += vocab.empty() ? "" : ",";
    AppendJsonString(spelling, &vocab);
    vocab += ":" + std::to_string(id++);
  };
  for (int b = 0; b < 256; ++b) add(ToByteLevel(std::string(1, static_cast<char>(b))));
  for (const auto& [left, right] : merges) {
    add(ToByteLevel(left + right));
    list += list.empty() ? "[" : ",[";
    AppendJsonString(ToByteLevel(left), &list);
    list += ",";
    AppendJsonString(ToByteLevel(right), &list);
    list += "]";
  }
  auto added = [&](std::string_view content, bool special, std::string_view flags) {
    return R"({"id":)" + std::to_string(id++) + R"(,"content":")" + std::string(content) +
           R"(","special":)" + (special ? "true" : "false") + "," + std::string(flags) + "}";
  };
  constexpr std::string_view kPlain =
      R"("single_word":false,"lstrip":false,"rstrip":false,"normalized":false)";
  std::string tokens = added("<s>", true, kPlain);  // one after the other: each takes an id
  tokens += "," + added("<|end|>", true, kPlain);
  tokens += "," + added("<tool>", false, kPlain);
  int bos = id - 3;
  return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)" + tokens +
         R"(],"normalizer":)" + std::string(normalizer) + R"(,"pre_tokenizer":)" +
         std::string(pre_tokenizer) +
         R"(,"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},)"
         R"({"Sequence":{"id":"A","type_id":0}}],"pair":[{"Sequence":{"id":"A","type_id":0}},)"
         R"({"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"<s>":{"id":"<s>","ids":[)" +
         std::to_string(bos) +
         R"(],"tokens":["<s>"]}}},"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true},)"
         R"("model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,)"
         R"("end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"ignore_merges":)" +
         (ignore_merges ? "true" : "false") + R"(,"vocab":{)" + vocab + R"(},"merges":[)" + list +
         "]}}";
}

}  // namespace portico::tokenizer
