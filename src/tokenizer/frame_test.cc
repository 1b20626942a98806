// What a tokenizer.json says around its model: the reference goes by fields more than by types, and so does Portico.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tokenizer/tokenizer.h"

namespace portico::tokenizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kModel[] = R"({"type":"WordLevel","vocab":{"a":0,"b":1,"u":2},"unk_token":"u"})";
constexpr char kSequenceA[] = R"({"Sequence":{"id":"A","type_id":0}})";
constexpr char kSpecial[] = R"({"SpecialToken":{"id":"u","type_id":0}})";

// `sections` are members of the file's object, with a comma behind each.
StatusOr<std::shared_ptr<const Tokenizer>> Load(const std::string& sections,
                                                const std::string& model = kModel) {
  return Tokenizer::FromJson("{" + sections + R"("pre_tokenizer":{"type":"Whitespace"},"model":)" +
                             model + "}");
}

std::string Refusal(const std::string& sections, const std::string& model = kModel) {
  auto loaded = Load(sections, model);
  return loaded.ok() ? "loaded" : std::string(MessageOf(loaded.status()));
}

std::vector<TokenId> Ids(const std::string& sections, bool add_special_tokens = true) {
  auto loaded = Load(sections);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  std::vector<TokenId> ids;
  if (loaded.ok()) (*loaded)->Encode("a b", add_special_tokens, &ids);
  return ids;
}

std::string Template(const std::string& single, const std::string& type = "TemplateProcessing") {
  return R"("post_processor":{"type":")" + type + R"(","single":[)" + single +
         R"(],"pair":[],"special_tokens":{"u":{"id":"u","ids":[2],"tokens":["u"]}}},)";
}

TEST(FrameTest, ATemplateCountsWithoutSpecialTokensToo) {
  const std::string twice = Template(std::string(kSequenceA) + "," + kSpecial + "," + kSequenceA);
  EXPECT_THAT(Ids(twice), ElementsAre(0, 1, 2, 0, 1));
  EXPECT_THAT(Ids(twice, /*add_special_tokens=*/false), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(Ids(Template(kSpecial)), ElementsAre(2));
  EXPECT_THAT(Ids(Template(kSpecial), /*add_special_tokens=*/false), ElementsAre());
}

TEST(FrameTest, APostProcessorIsKnownByItsFields) {
  EXPECT_THAT(Ids(R"("post_processor":{"sep":["a",0],"cls":["b",1]},)"), ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(Ids(R"("post_processor":{"type":"New","sep":["a",0],"cls":["b",1]},)"),
              ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(Ids(Template(kSpecial, "New")), ElementsAre(2));
  EXPECT_THAT(Refusal(R"("post_processor":{"type":"New"},)"), HasSubstr("unknown post-processor"));
  EXPECT_THAT(Refusal(R"("post_processor":{"sep":["a",0]},)"), HasSubstr("needs 'cls'"));
  EXPECT_THAT(
      Refusal(
          R"("post_processor":{"single":[],"pair":[],"special_tokens":{"u":{"ids":[],"tokens":[]}}},)"),
      HasSubstr("objects with an id"));
}

TEST(FrameTest, ADecoderWithoutATypeIsKnownByItsFields) {
  for (const char* decoder : {R"({"suffix":"</w>"})", R"({"prefix":"##","cleanup":true})",
                              R"({"pad_token":"p","word_delimiter_token":"|","cleanup":true})"}) {
    EXPECT_EQ(Refusal(R"("decoder":)" + std::string(decoder) + ","), "loaded") << decoder;
  }
  EXPECT_THAT(Refusal(R"("decoder":{"content":"x"},)"), HasSubstr("unknown decoder"));
}

TEST(FrameTest, OfTwoModelsTheLaterCounts) {
  EXPECT_THAT(Ids(R"("model":{"type":"BPE","vocab":{"x":7},"merges":[],"unk_token":"x"},)"),
              ElementsAre(0, 1));
}

TEST(FrameTest, FieldsOfAWrongTypeAreRefused) {
  EXPECT_THAT(
      Refusal(
          R"("post_processor":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":1},)"),
      HasSubstr("use_regex"));
  EXPECT_THAT(Refusal(R"("version":null,)"), HasSubstr("version null"));
  EXPECT_THAT(Refusal(R"("added_tokens":null,)"), HasSubstr("added_tokens must be a list"));
  EXPECT_THAT(Refusal(R"("extra":1,)"), HasSubstr("unknown field 'extra'"));
  EXPECT_THAT(Refusal("", R"({"type":"","vocab":{},"unk_token":"u"})"),
              HasSubstr("unknown model type"));
  for (const char* wrong : {R"("prepend_scheme":1)", R"("split":"x")", R"("add_prefix_space":0)"}) {
    const std::string metaspace =
        R"({"type":"Metaspace","replacement":"_",)" + std::string(wrong) + "},";
    EXPECT_THAT(Refusal(R"("decoder":)" + metaspace), HasSubstr("Metaspace needs")) << wrong;
  }
}

}  // namespace
}  // namespace portico::tokenizer
