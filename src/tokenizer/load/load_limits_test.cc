// What a file may cost before it is refused or loaded: a small multiple of its size.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "base/sanitized_for_test.h"
#include "tokenizer/load/load.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/shared_data_for_test.h"
#include "tokenizer/test_tokenizers.h"

namespace portico::tokenizer {
namespace {

uint64_t AddressSpace() {
  std::ifstream in("/proc/self/statm");
  uint64_t pages = 0;
  in >> pages;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Runs `load` in a process of its own that gets 128 MB and 48 times the file's size more than it has.
void ExpectModest(size_t size, const std::function<void()>& load) {
  if (kSanitized) {
    load();
    return;
  }
  EXPECT_EXIT(
      {
        rlimit limit{};
        limit.rlim_cur = limit.rlim_max = AddressSpace() + (uint64_t{128} << 20) + 48 * size;
        setrlimit(RLIMIT_AS, &limit);
        rlimit none{};
        setrlimit(RLIMIT_CORE, &none);
        alarm(120);
        load();
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

void Make(StatusOr<PipelineParts> parts) {
  if (parts.ok()) Pipeline::Make(*std::move(parts)).status().IgnoreError();
}

void ExpectModestJson(const std::string& json) {
  ExpectModest(json.size(), [&] { Make(PartsFromJson(json)); });
}

std::string WithModel(const std::string& model, const std::string& more = "") {
  return "{" + more + R"("model":)" + model + "}";
}

TEST(LoadLimits, HugeIdsCostNothing) {
  for (const char* id : {"1048575", "16000000", "16777216", "2147483646"}) {
    for (
        const char* head :
        {R"({"type":"WordLevel","unk_token":"a")", R"({"type":"BPE","merges":[])",
         R"({"type":"WordPiece","unk_token":"a","continuing_subword_prefix":"#","max_input_chars_per_word":9)"}) {
      ExpectModestJson(WithModel(std::string(head) + R"(,"vocab":{"a":0,"b":)" + id + "}}"));
    }
  }
  std::string sparse = ByteLevelJson({{"h", "e"}});
  sparse.replace(sparse.find(R"(":255)"), 5, R"(":16000000)");
  ExpectModestJson(sparse);
}

TEST(LoadLimits, DeepNestingIsRefused) {
  constexpr size_t kDepth = 1'000'000;
  const std::string open(kDepth, '[');
  const std::string close(kDepth, ']');
  ExpectModestJson(open);
  ExpectModestJson(open + close);
  for (const char* part : {"normalizer", "pre_tokenizer", "post_processor", "decoder", "padding"}) {
    std::string member = "\"" + std::string(part) + "\":" + open + close + ",";
    ExpectModestJson(WithModel(R"({"type":"BPE","vocab":{"a":0},"merges":[]})", member));
  }
  std::string sequence;
  for (int i = 0; i < 20'000; ++i) sequence += R"({"type":"Sequence","normalizers":[)";
  for (int i = 0; i < 20'000; ++i) sequence += "]}";
  ExpectModestJson(WithModel(R"({"type":"BPE","vocab":{"a":0},"merges":[]})",
                             R"("normalizer":)" + sequence + ","));
}

TEST(LoadLimits, LongTokensAndLongListsStayNearTheirSize) {
  std::string word(2 << 20, 'x');
  ExpectModestJson(
      WithModel(R"({"type":"WordLevel","unk_token":"a","vocab":{"a":0,")" + word + R"(":1}})"));
  ExpectModestJson(
      WithModel(R"({"type":"Unigram","unk_id":0,"vocab":[["a",0],[")" + word + R"(",-1]]})"));
  std::string vocab = R"({"type":"BPE","merges":[],"vocab":{"a":0)";
  for (int i = 1; i < 200'000; ++i) vocab += ",\"b" + std::to_string(i) + "\":" + std::to_string(i);
  ExpectModestJson(WithModel(vocab + "}}"));
  std::string merges = R"({"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"])";
  for (int i = 0; i < 200'000; ++i) merges += R"(,["a","b"])";
  ExpectModestJson(WithModel(merges + "]}"));
  std::string ranks;
  for (int i = 0; i < 20'000; ++i)
    ranks += "YWFhYWFhYWFhYWFhYWFhYWFhYWFh " + std::to_string(i) + "\n";
  ExpectModest(ranks.size(), [&] { Make(PartsFromTiktoken(ranks, "cl100k_base.tiktoken")); });
}

TEST(LoadLimits, CutAndRandomCharsmapsAreSafe) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t size : {size_t{0}, size_t{8}, size_t{400}, size_t{1} << 20}) {
    std::string map;
    for (size_t i = 0; i < size; ++i) map += kDigits[(i * 2654435761u >> 13) % 64];
    ExpectModestJson(
        WithModel(R"({"type":"WordLevel","unk_token":"a","vocab":{"a":0}})",
                  R"("normalizer":{"type":"Precompiled","precompiled_charsmap":")" + map + "\"},"));
  }
}

TEST(LoadLimits, TheRecordedInvalidFilesAreRefusedWithASentence) {
  if (SharedData().empty()) GTEST_SKIP() << "the recorded files are not at hand (PORTICO_SHARED)";
  fs::path folder = SharedData().parent_path() / "tokenizers-invalid";
  size_t refused = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::string name = entry.path().filename().string();
    if (name.find(".json") == std::string::npos) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::string json = name.ends_with(".gz") ? Unpacked(entry.path())
                                             : std::string(std::istreambuf_iterator<char>(in), {});
    auto made = Tokenizer::FromJson(json);
    std::string text = made.ok() ? "" : std::string(MessageOf(made.status()));
    if (made.ok()) {
      // Some load in the reference as well and fail at the first text.
      std::vector<TokenId> ids;
      Status encoded = (*made)->TryEncode("a text that it does not know: \xE4\xBD\xA0", true, &ids);
      EXPECT_FALSE(encoded.ok()) << name;
      text = std::string(MessageOf(encoded));
    }
    EXPECT_GT(text.size(), 10u) << name;
    ++refused;
  }
  EXPECT_GT(refused, 2u);
}

}  // namespace
}  // namespace portico::tokenizer
