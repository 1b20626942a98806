#include "app/text/tokenize_explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace portico {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json Legacy() {
  return *Json::Parse(R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"_"},)"
                      R"({"type":"Replace","pattern":{"String":" "},"content":"_"}]})");
}

TEST(TokenizeExplain, SaysWhereAutoTokenizerLeavesTheFile) {
  for (const char* name : {"LlamaTokenizer", "LlamaTokenizerFast"}) {
    EXPECT_THAT(AutoTokenizerDifferences(name, Legacy(), false),
                ElementsAre(HasSubstr("prepend_scheme \"first\""),
                            HasSubstr("Portico follows tokenizer.json")));
  }
  EXPECT_THAT(AutoTokenizerDifferences("T5TokenizerFast", Json(), false),
              ElementsAre(HasSubstr("T5Tokenizer anew"), HasSubstr("Portico follows")));
  EXPECT_THAT(AutoTokenizerDifferences("MarianTokenizer", Json(), false),
              ElementsAre(HasSubstr("source.spm"), HasSubstr("Portico follows")));
}

TEST(TokenizeExplain, IsSilentWhereAutoTokenizerFollowsTheFile) {
  EXPECT_THAT(AutoTokenizerDifferences("LlamaTokenizer", Json(), false), IsEmpty());
  EXPECT_THAT(AutoTokenizerDifferences("PreTrainedTokenizerFast", Legacy(), false), IsEmpty());
  EXPECT_THAT(AutoTokenizerDifferences("MarianTokenizer", Json(), true), IsEmpty());
  EXPECT_THAT(AutoTokenizerDifferences("", Legacy(), false), IsEmpty());
  EXPECT_THAT(AutoTokenizerDifferencesOf("/nowhere"), IsEmpty());
}

TEST(TokenizeExplain, ReadsAFolder) {
  char name[] = "/tmp/portico-explain-XXXXXX";
  std::filesystem::path folder(mkdtemp(name));
  std::ofstream(folder / "tokenizer.json") << R"({"normalizer":)" << Legacy().Dump() << "}";
  std::ofstream(folder / "tokenizer_config.json") << R"({"tokenizer_class":"LlamaTokenizer"})";
  for (const std::string& path : {folder.string(), (folder / "tokenizer.json").string()}) {
    EXPECT_EQ(AutoTokenizerDifferencesOf(path).size(), 2u) << path;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace portico
