#include "tokenizer/compiled/compiled_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tokenizer/compiled/compiled_image.h"
#include "tokenizer/decode/decode_table.h"
#include "tokenizer/fused/place_sink.h"
#include "tokenizer/load/load.h"
#include "tokenizer/load/sentencepiece_parts.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/shared_data_for_test.h"
#include "tokenizer/test_tokenizers.h"
#include "tokenizer/tokenizer.h"

namespace portico::tokenizer {
namespace {

constexpr std::string_view kText =
    "hello hello, w\xC3\xB6rld <s> 12  \xE4\xBD\xA0 unknown hellohello";

std::string Bpe() {
  return ByteLevelJson({{"h", "e"}, {"l", "l"}, {"he", "ll"}, {"hell", "o"}, {" ", "hello"}});
}

std::string Frame(std::string_view model) {
  return R"({"version":"1.0","added_tokens":[],"normalizer":null,"pre_tokenizer":{"type":"Whitespace"},)"
         R"("post_processor":null,"decoder":null,"model":)" +
         std::string(model) + "}";
}

std::vector<std::string> SmallTokenizers() {
  return {
      Bpe(),
      Frame(
          R"({"type":"BPE","unk_token":"<unk>","byte_fallback":false,"fuse_unk":true,)"
          R"("continuing_subword_prefix":"##","end_of_word_suffix":"</w>","vocab":{"<unk>":0,"h":1,"##e":2,)"
          R"("he":3,"##l":4,"##o</w>":7},"merges":[["h","##e"]]})"),
      Frame(
          R"({"type":"Unigram","unk_id":0,"byte_fallback":false,"vocab":[["<unk>",0.0],["hel",-1.5],)"
          R"(["lo",-2.25],["h",-3],["e",-4],["l",-4],["o",-5],["lo",-9]]})"),
      Frame(R"({"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##",)"
            R"("max_input_chars_per_word":9,"vocab":{"[UNK]":0,"hel":1,"##lo":2,"unknown":5}})"),
      Frame(R"({"type":"WordLevel","unk_token":"?","vocab":{"?":0,"hello":1,"12":9}})")};
}

std::unique_ptr<const Model> SentencePieceModel(bool unigram) {
  using K = SentencePieceSource::Kind;
  SentencePieceSource source;
  source.unigram = unigram;
  source.pieces = {{"<unk>", 0, K::kUnknown}, {"<s>", 0, K::kControl},    {"<0x0A>", 0, K::kByte},
                   {"he", -1, K::kUnused},    {"hel", -2, K::kNormal},    {"lo", -3, K::kNormal},
                   {"h", -4, K::kNormal},     {"e", -4.5, K::kNormal},    {"l", -5, K::kNormal},
                   {"o", -6, K::kNormal},     {"##", 0, K::kUserDefined}, {"lo", -7, K::kNormal}};
  auto parts = PartsOf(std::move(source));
  EXPECT_TRUE(parts.ok()) << parts.status();
  return std::move(parts->model);
}

std::vector<std::unique_ptr<const Model>> SmallModels() {
  std::vector<std::unique_ptr<const Model>> out;
  for (const std::string& json : SmallTokenizers()) {
    auto parts = PartsFromJson(json);
    EXPECT_TRUE(parts.ok()) << parts.status();
    out.push_back(std::move(parts->model));
  }
  out.push_back(SentencePieceModel(/*unigram=*/false));
  out.push_back(SentencePieceModel(/*unigram=*/true));
  return out;
}

// The fuzzer's find: what was written of such a model was refused when it was read.
TEST(CompiledModel, KeepsABpeModelWithoutTokens) {
  auto parts = PartsFromJson(Frame(R"({"type":"BPE","vocab":{},"merges":[]})"));
  ASSERT_TRUE(parts.ok()) << parts.status();
  CompiledImage image(*CompileModel(*parts->model));
  EXPECT_NE(RestoreModel(image.text()), nullptr);
}

TEST(CompiledModel, KeepsSentencePieceModels) {
  for (bool unigram : {false, true}) {
    std::unique_ptr<const Model> model = SentencePieceModel(unigram);
    std::optional<std::string> compiled = CompileModel(*model);
    ASSERT_TRUE(compiled);
    CompiledImage image(*compiled);
    std::unique_ptr<const Model> restored = RestoreModel(image.text());
    ASSERT_NE(restored, nullptr);
    EXPECT_EQ(CompileModel(*restored), compiled);
    for (std::string_view text : {"hello", "hehel##lo", "x\nhelo", "##h"}) {
      std::vector<Token> expected;
      std::vector<Token> got;
      ASSERT_TRUE(model->Tokenize(text, &expected).ok());
      ASSERT_TRUE(restored->Tokenize(text, &got).ok());
      ASSERT_EQ(got.size(), expected.size()) << text;
      for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].id, expected[i].id) << text;
    }
  }
}

std::vector<TokenId> Ids(PipelineParts parts, std::string_view text) {
  auto pipeline = Pipeline::Make(std::move(parts));
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  std::vector<TokenId> ids;
  EXPECT_TRUE((*pipeline)->EncodeIds(text, {}, &ids).ok());
  return ids;
}

TEST(CompiledModel, EncodesAsItsSource) {
  for (const std::string& json : SmallTokenizers()) {
    std::string frame;
    auto parts = PartsFromJson(json, &frame);
    ASSERT_TRUE(parts.ok()) << parts.status() << json;
    std::optional<std::string> compiled = CompileModel(*parts->model);
    ASSERT_TRUE(compiled) << json;
    CompiledImage image(*compiled);
    std::unique_ptr<const Model> model = RestoreModel(image.text());
    ASSERT_NE(model, nullptr) << json;
    EXPECT_EQ(CompileModel(*model), compiled);
    auto again = PartsFromFrame(frame, std::move(model));
    ASSERT_TRUE(again.ok()) << again.status() << frame;
    std::vector<TokenId> expected = Ids(*std::move(parts), kText);
    EXPECT_FALSE(expected.empty()) << json;
    EXPECT_EQ(Ids(*std::move(again), kText), expected) << json;
  }
}

std::string Saved(const PieceMerger& merger) {
  CompiledWriter out;
  merger.Save(&out);
  return out.Take();
}

std::unique_ptr<const Model> BpeModel() { return std::move(PartsFromJson(Bpe())->model); }

std::string SavedMerger() {
  std::unique_ptr<const Model> model = BpeModel();
  return Saved(*PieceMerger::Make(dynamic_cast<const portico::tokenizer::Bpe&>(*model)));
}

TEST(CompiledMerger, IsRestoredAsItWas) {
  std::unique_ptr<const Model> model = BpeModel();
  const auto& bpe = dynamic_cast<const portico::tokenizer::Bpe&>(*model);
  std::string saved = SavedMerger();
  CompiledImage image(saved);
  std::unique_ptr<const PieceMerger> merger = PieceMerger::Restore(bpe, image.text());
  ASSERT_NE(merger, nullptr);
  EXPECT_EQ(Saved(*merger), saved);
}

TEST(CompiledMerger, SurvivesAnyBytes) {
  std::unique_ptr<const Model> model = BpeModel();
  const auto& bpe = dynamic_cast<const portico::tokenizer::Bpe&>(*model);
  const std::string good = SavedMerger();
  const CompiledImage whole(good);
  std::mt19937 random(20261121);
  for (int round = 0; round < 200; ++round) {
    size_t cut = round < 20 ? good.size() - static_cast<size_t>(round) - 1 : random() % good.size();
    EXPECT_EQ(PieceMerger::Restore(bpe, whole.text().substr(0, cut)), nullptr) << cut;
    std::string bad = good;
    for (int i = 0; i < 1 + round % 2000; ++i) {
      bad[random() % bad.size()] = static_cast<char>(random());
    }
    CompiledImage image(bad);
    std::unique_ptr<const PieceMerger> merger = PieceMerger::Restore(bpe, image.text());
    auto encoder =
        ByteLevelEncoder::Make(bpe, {ByteLevelPlan::Kind::kGpt2, false}, std::move(merger));
    std::vector<TokenId> ids;
    std::vector<Span> spans;
    {
      PlaceSink places(kText, {.bytes = &spans}, /*trims=*/false);
      encoder->Encode(kText, &ids, &places);
    }
    EXPECT_EQ(spans.size(), ids.size());
    TokenTexts texts;
    encoder->SpellTokens(kText, ids, &texts);
    for (const Span& span : spans) EXPECT_LE(span.end, std::string_view(kText).size());
    for (TokenId id : ids) EXPECT_LE(id, model->vocabulary().max_id());
  }
}

// Files of an older build stay in users' caches. If this fails, what a loader makes of a source or the way it is
// stored has changed: raise kCompiledFormat, then put the new numbers here.
TEST(CompiledModel, ChangesOnlyWithItsFormatNumber) {
  std::vector<std::string> checks;
  for (const std::string& json : SmallTokenizers()) {
    std::string frame;
    auto parts = PartsFromJson(json, &frame);
    ASSERT_TRUE(parts.ok());
    checks.push_back(KeyOfContent(*CompileModel(*parts->model) + frame, "").Hex());
  }
  checks.push_back(KeyOfContent(SavedMerger(), "").Hex());
  for (bool unigram : {false, true}) {
    checks.push_back(KeyOfContent(*CompileModel(*SentencePieceModel(unigram)), "").Hex());
  }
  EXPECT_EQ(kCompiledFormat, 7u);
  EXPECT_THAT(checks, ::testing::ElementsAre(
                          "23b12b5b79a3dfd7918aa9976c772bf3", "05eb0fc437356ef779d9f2bc35fc93bc",
                          "18198389c09e65cc7457ddd5e5cea783", "e53039d2b14d432c3097a0c81d12727c",
                          "43a1aaa50902f1a16fb2b1fdea32e0ce", "172ebf2f150cda8e89a2c9f57fea750c",
                          "bc111678b92f7afee3a86cbdac29eae6", "050e389aac0aababf95432616e174d07"));
}

TEST(CompiledModel, SurvivesAnyBytes) {
  std::mt19937 random(20261121);
  for (const auto& source : SmallModels()) {
    std::string good = *CompileModel(*source);
    CompiledImage whole(good);
    for (size_t i = 0; i < 500; ++i) {
      size_t cut = i < 300 ? std::min(i, good.size() - 1) : random() % good.size();
      EXPECT_EQ(RestoreModel(whole.text().substr(0, cut)), nullptr) << cut;
    }
    // The tables of merges are large; what comes before them is small.
    const size_t head = std::min<size_t>(good.size(), 4096);
    for (size_t round = 0; round < (good.size() == head ? 3000 : 400); ++round) {
      std::string bad = good;
      for (size_t i = 0; i <= random() % 3; ++i) {
        size_t at = random() % (round % 4 != 0 ? head : bad.size());
        bad[at] = random() % 2 ? static_cast<char>(random()) : static_cast<char>(0xFF);
      }
      CompiledImage image(bad);
      std::unique_ptr<const Model> model = RestoreModel(image.text());
      if (!model) continue;
      std::vector<Token> tokens;
      for (std::string_view piece : {"hello", "he##llo"}) {
        model->Tokenize(piece, &tokens).IgnoreError();
      }
    }
  }
}

TEST(CompiledDecodeTable, SurvivesAnyBytes) {
  std::unique_ptr<const Model> model = BpeModel();
  DecodePlan plan;
  plan.kind = DecodePlan::Kind::kByteLevel;
  DecodeTable table(plan, model->vocabulary());
  CompiledWriter out;
  table.Save(&out);
  const std::string good = out.Take();
  CompiledImage image(good);
  std::optional<DecodeTable> restored = DecodeTable::Restore(image.text(), table.size());
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->Bytes(restored->At('h')), table.Bytes(table.At('h')));
  EXPECT_FALSE(DecodeTable::Restore(image.text(), table.size() + 1));
  std::mt19937 random(20261121);
  for (int round = 0; round < 300; ++round) {
    size_t cut = random() % good.size();
    EXPECT_FALSE(DecodeTable::Restore(image.text().substr(0, cut), table.size())) << cut;
    std::string bad = good;
    for (int i = 0; i <= round % 5; ++i) bad[random() % bad.size()] = static_cast<char>(random());
    CompiledImage damaged(bad);
    restored = DecodeTable::Restore(damaged.text(), table.size());
    if (!restored) continue;
    std::vector<TokenId> ids;
    for (TokenId id = 0; id < table.size(); ++id) ids.push_back(id);
    DecodePlanned(plan, *restored, ids, true);
  }
}

class CompiledFamilies : public ::testing::TestWithParam<const char*> {};

TEST_P(CompiledFamilies, EncodeTheRecordedTextsAsRecorded) {
  if (SharedData().empty()) GTEST_SKIP() << "the recorded vectors are not at hand (PORTICO_SHARED)";
  fs::path folder = SharedData() / GetParam();
  std::string frame;
  auto parts = PartsFromJson(Unpacked(folder / "tokenizer.json.gz"), &frame);
  ASSERT_TRUE(parts.ok()) << parts.status();
  std::optional<std::string> compiled = CompileModel(*parts->model);
  ASSERT_TRUE(compiled);
  CompiledImage image(*compiled);
  auto again = PartsFromFrame(frame, RestoreModel(image.text()));
  ASSERT_TRUE(again.ok()) << again.status();
  CompiledWriter tables;
  if (auto encoder =
          FusedEncoder::Make(parts->normalizer.get(), parts->pre_tokenizer.get(), *parts->model)) {
    encoder->Save(&tables);
  }
  CompiledImage stored(tables.Take());
  again->fused = FusedEncoder::Make(again->normalizer.get(), again->pre_tokenizer.get(),
                                    *again->model, stored.text());
  auto pipeline = Pipeline::Make(*std::move(again));
  ASSERT_TRUE(pipeline.ok());
  Tokenizer tokenizer(*std::move(pipeline));
  size_t seen = 0;
  for (const Json& row : Rows(folder / "vectors.jsonl.gz")) {
    for (bool special : {false, true}) {
      std::vector<TokenId> got;
      tokenizer.Encode(row.GetString("text"), special, &got);
      ASSERT_EQ(got, IdsOf(*row.Find(special ? "ids_special" : "ids_no_special")))
          << row.GetString("text");
    }
    ++seen;
  }
  EXPECT_GT(seen, 100u);
}

INSTANTIATE_TEST_SUITE_P(Recorded, CompiledFamilies,
                         ::testing::Values("llama-3.2", "qwen3", "gemma-3", "deepseek-v3",
                                           "llama-2", "t5-small", "bert-base-uncased"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !isalnum(c); }, '_');
                           return name;
                         });

}  // namespace
}  // namespace portico::tokenizer
