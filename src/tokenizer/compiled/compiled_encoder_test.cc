// The tables of fused encoders as bytes.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/compiled/compiled_image.h"
#include "tokenizer/fused/fused_encoder.h"
#include "tokenizer/fused/id_sink.h"
#include "tokenizer/fused/place_sink.h"
#include "tokenizer/load/load.h"

namespace portico::tokenizer {
namespace {

constexpr std::string_view kText =
    "hello hello, w\xC3\xB6rld  12 \xE4\xBD\xA0\xE5\xA5\xBD unknown hellohello\n\xF0\x9F\x98\x80 "
    "lo";

std::string SpmBpe() {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string vocab = R"("<unk>":0)";
  int next = 1;
  auto add = [&](const std::string& token) {
    vocab += ",\"" + token + "\":" + std::to_string(next++);
  };
  for (int b = 0; b < 256; ++b) add({'<', '0', 'x', kDigits[b >> 4], kDigits[b & 15], '>'});
  for (const char* token : {"\xE2\x96\x81", "h", "e", "l", "o", "w", "1", "2", "\xC3\xB6", "he",
                            "ll", "hell", "hello", "\xE2\x96\x81hello", "\xE4\xBD\xA0", "12"}) {
    add(token);
  }
  return R"({"version":"1.0","added_tokens":[],"normalizer":{"type":"Sequence","normalizers":[)"
         R"({"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]},)"
         R"("pre_tokenizer":null,"post_processor":null,"decoder":null,"model":{"type":"BPE","dropout":null,)"
         R"("unk_token":"<unk>","continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":true,)"
         R"("byte_fallback":true,"vocab":{)" +
         vocab + R"(},"merges":["h e","l l","he ll","hell o","▁ hello","1 2"]}})";
}

std::string Bert() {
  return R"({"version":"1.0","added_tokens":[],"normalizer":{"type":"BertNormalizer","clean_text":true,)"
         R"("handle_chinese_chars":true,"strip_accents":null,"lowercase":true},)"
         R"("pre_tokenizer":{"type":"BertPreTokenizer"},"post_processor":null,"decoder":null,)"
         R"("model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##",)"
         R"("max_input_chars_per_word":100,"vocab":{"[UNK]":0,"hel":1,"##lo":2,"##hel":3,"world":4,)"
         R"("1":5,"##2":6,",":7,"你":8,"lo":9,"hello":10}}})";
}

std::unique_ptr<const FusedEncoder> EncoderOf(const PipelineParts& parts,
                                              std::string_view stored = {}) {
  return FusedEncoder::Make(parts.normalizer.get(), parts.pre_tokenizer.get(), *parts.model,
                            stored);
}

std::string Saved(const FusedEncoder& encoder) {
  CompiledWriter out;
  encoder.Save(&out);
  return out.Take();
}

std::vector<TokenId> Ids(const FusedEncoder& encoder) {
  std::vector<TokenId> ids;
  {
    IdSink sink(&ids);
    EXPECT_TRUE(encoder.Encode(kText, true, &sink));
  }
  return ids;
}

std::vector<Span> Places(const FusedEncoder& encoder) {
  std::vector<TokenId> ids;
  std::vector<Span> bytes;
  {
    IdSink sink(&ids);
    PlaceSink places(kText, {.bytes = &bytes}, /*trims=*/false);
    EXPECT_TRUE(encoder.EncodePlaced(kText, true, &sink, &places));
  }
  EXPECT_EQ(bytes.size(), ids.size());
  return bytes;
}

TEST(CompiledEncoder, IsRestoredAsItWas) {
  for (const std::string& json : {SpmBpe(), Bert()}) {
    auto parts = PartsFromJson(json);
    ASSERT_TRUE(parts.ok()) << parts.status();
    std::unique_ptr<const FusedEncoder> encoder = EncoderOf(*parts);
    ASSERT_NE(encoder, nullptr) << json;
    const std::string saved = Saved(*encoder);
    ASSERT_FALSE(saved.empty());
    CompiledImage image(saved);
    std::unique_ptr<const FusedEncoder> restored = EncoderOf(*parts, image.text());
    ASSERT_NE(restored, nullptr);
    EXPECT_EQ(Saved(*restored), saved);
    EXPECT_EQ(Ids(*restored), Ids(*encoder));
    EXPECT_EQ(Places(*restored), Places(*encoder));
  }
}

// As CompiledModel.ChangesOnlyWithItsFormatNumber.
TEST(CompiledEncoder, ChangesOnlyWithItsFormatNumber) {
  std::vector<std::string> checks;
  for (const std::string& json : {SpmBpe(), Bert()}) {
    auto parts = PartsFromJson(json);
    ASSERT_TRUE(parts.ok()) << parts.status();
    checks.push_back(KeyOfContent(Saved(*EncoderOf(*parts)), "").Hex());
  }
  EXPECT_EQ(kCompiledFormat, 7u);
  EXPECT_EQ(checks, (std::vector<std::string>{"c2a51ce3ca007c8d3cccdadd4aa6b0b1",
                                              "b9a7265604adbcf5a24eb5f9ee1bd699"}));
}

TEST(CompiledEncoder, SurvivesAnyBytes) {
  std::mt19937 random(20261122);
  for (const std::string& json : {SpmBpe(), Bert()}) {
    auto parts = PartsFromJson(json);
    ASSERT_TRUE(parts.ok()) << parts.status();
    const std::string good = Saved(*EncoderOf(*parts));
    for (int round = 0; round < 300; ++round) {
      std::string bad = good;
      if (round % 4 == 0) bad.resize(random() % bad.size());
      for (int i = 0; i < round * round / 20 && !bad.empty(); ++i) {
        bad[random() % bad.size()] = static_cast<char>(random() % 3 ? random() % 16 : random());
      }
      CompiledImage image(bad);
      std::unique_ptr<const FusedEncoder> encoder = EncoderOf(*parts, image.text());
      ASSERT_NE(encoder, nullptr);
      const TokenId most = parts->model->vocabulary().max_id();
      for (TokenId id : Ids(*encoder)) ASSERT_LE(id, most);
      for (const Span& span : Places(*encoder)) ASSERT_LE(span.end, kText.size());
    }
  }
}

}  // namespace
}  // namespace portico::tokenizer
