#include "tokenizer/compiled/compiled_cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "base/cache_folder.h"
#include "tokenizer/compiled/compiled_model.h"
#include "tokenizer/load/load.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/shared_data_for_test.h"
#include "tokenizer/test_tokenizers.h"
#include "tokenizer/tokenizer.h"

namespace portico::tokenizer {
namespace {

constexpr std::string_view kText =
    "hello hello, w\xC3\xB6rld <s> 12  \xE4\xBD\xA0 unknown hellohello";

class Scratch {
 public:
  Scratch() {
    char name[] = "/tmp/portico-compiled-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Scratch() { fs::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path() const { return path_.string(); }
  // Of compiled tokenizers.
  std::vector<fs::path> Files() const {
    std::vector<fs::path> out;
    for (const auto& e : fs::recursive_directory_iterator(path_)) {
      if (e.path().extension() == ".tokenizer") out.push_back(e.path());
    }
    return out;
  }

 private:
  fs::path path_;
};

// An environment variable's value while it lives.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) {
    const char* old = std::getenv(name);
    had_ = old != nullptr;
    if (had_) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~Setting() { had_ ? setenv(name_, old_.c_str(), 1) : unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
  bool had_;
  std::string old_;
};

std::string Bpe() {
  return ByteLevelJson({{"h", "e"}, {"l", "l"}, {"he", "ll"}, {"hell", "o"}, {" ", "hello"}});
}

std::vector<TokenId> Ids(PipelineParts parts, std::string_view text) {
  auto pipeline = Pipeline::Make(std::move(parts));
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  std::vector<TokenId> ids;
  EXPECT_TRUE((*pipeline)->EncodeIds(text, {}, &ids).ok());
  return ids;
}

class CompiledCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    parts_ = *PartsFromJson(Bpe(), &frame_);
    key_ = *cache_.KeyOf("json", Bpe());
    cache_.Store(key_, *CompiledCache::Begin(frame_, *parts_.model));
  }
  std::string Read() const {
    std::ifstream in(cache_.PathOf(key_), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  void Write(std::string_view bytes) const {
    std::ofstream(cache_.PathOf(key_), std::ios::binary) << bytes;
  }

  Scratch scratch_;
  CompiledCache cache_{scratch_.path() + "/deep/er"};
  std::string frame_;
  PipelineParts parts_;
  ContentKey key_;
};

TEST_F(CompiledCacheTest, FindsWhatItStored) {
  auto found = cache_.Find(key_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->frame, frame_);
  EXPECT_EQ(CompileModel(*found->model), CompileModel(*parts_.model));
  EXPECT_EQ(scratch_.Files().size(), 1u);
}

TEST_F(CompiledCacheTest, KnowsItsContentOnly) {
  EXPECT_EQ(cache_.KeyOf("json", Bpe()), key_);
  EXPECT_NE(cache_.KeyOf("ranks", Bpe()), key_);
  EXPECT_NE(cache_.KeyOf("json", Bpe() + " "), key_);
  // Another installation has other keys.
  EXPECT_NE(CompiledCache(scratch_.path() + "/other").KeyOf("json", Bpe()), key_);
  // Another content's file under this name.
  auto other = *cache_.KeyOf("json", Bpe() + " ");
  fs::copy_file(cache_.PathOf(key_), cache_.PathOf(other));
  EXPECT_FALSE(cache_.Find(other));
}

TEST_F(CompiledCacheTest, RefusesCutsAndFlippedBits) {
  const std::string good = Read();
  // Each look hashes the whole file: all places near the ends, and a thousand between.
  const size_t stride = good.size() / 1000 + 1;
  auto step = [&](size_t at) { return at < 256 || at + 256 > good.size() ? 1 : stride; };
  for (size_t size = 0; size < good.size(); size += step(size)) {
    ASSERT_FALSE(OpenCompiled(key_, std::string_view(good).substr(0, size))) << size;
  }
  for (size_t size : {size_t{0}, size_t{1}, size_t{64}, good.size() / 2, good.size() - 1}) {
    Write(good.substr(0, size));
    EXPECT_FALSE(cache_.Find(key_)) << size;
  }
  Write(good + "x");
  EXPECT_FALSE(cache_.Find(key_));
  for (size_t at = 0; at < good.size(); at += step(at)) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1 << at % 8);
    EXPECT_FALSE(OpenCompiled(key_, bad)) << at;
  }
  std::string other_format = good;
  other_format[8] = static_cast<char>(kCompiledFormat + 1);
  Write(other_format);
  EXPECT_FALSE(cache_.Find(key_));
  Write(good);
  EXPECT_TRUE(cache_.Find(key_));
}

TEST_F(CompiledCacheTest, MakesADamagedSaltAnew) {
  std::ofstream(scratch_.path() + "/deep/er/salt", std::ios::binary) << "short";
  auto key = cache_.KeyOf("json", Bpe());
  ASSERT_TRUE(key);
  EXPECT_NE(*key, key_);
  EXPECT_EQ(cache_.KeyOf("json", Bpe()), key);
}

TEST_F(CompiledCacheTest, RemovesTheLeastRecentlyUsed) {
  const uint64_t size = fs::file_size(cache_.PathOf(key_));
  CompiledCache small(scratch_.path() + "/small", size * 2 + size / 2);
  std::vector<ContentKey> keys;
  for (const char* text : {"a", "b", "c"}) keys.push_back(*small.KeyOf("json", text));
  small.Store(keys[0], *CompiledCache::Begin(frame_, *parts_.model));
  small.Store(keys[1], *CompiledCache::Begin(frame_, *parts_.model));
  for (size_t i = 0; i < 2; ++i) {
    fs::last_write_time(small.PathOf(keys[i]),
                        fs::file_time_type::clock::now() - std::chrono::hours(3 - i));
  }
  ASSERT_TRUE(small.Find(keys[0]));  // used now: keys[1] is the older one
  small.Store(keys[2], *CompiledCache::Begin(frame_, *parts_.model));
  EXPECT_TRUE(small.Find(keys[0]));
  EXPECT_FALSE(small.Find(keys[1]));
  EXPECT_TRUE(small.Find(keys[2]));
}

TEST_F(CompiledCacheTest, IsSafeWithManyAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> found{0};
  CompiledCache cache(scratch_.path() + "/many");
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        auto key = cache.KeyOf("json", Bpe());
        if (!key) continue;
        if (cache.Find(*key)) ++found;
        cache.Store(*key, *CompiledCache::Begin(frame_, *parts_.model));
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_GE(found.load(), 4 * 19 - 4);
}

// A tokenizer.json that is large enough to be compiled.
std::string Large() {
  std::string json = Bpe();
  return json.insert(json.size() - 1, std::string(size_t{2} << 20, ' '));
}

std::string WriteLarge(const Scratch& scratch) {
  std::string path = scratch.path() + "/tokenizer.json";
  std::ofstream(path, std::ios::binary) << Large();
  return path;
}

std::vector<TokenId> IdsOfFile(const std::string& path) {
  auto parts = PartsFromPath(path);
  EXPECT_TRUE(parts.ok()) << parts.status();
  return parts.ok() ? Ids(*std::move(parts), kText) : std::vector<TokenId>{};
}

TEST(LoadThroughCache, GivesTheSameTokenizerFromSourceAndCompiledAndDamaged) {
  Scratch scratch;
  Setting home("PORTICO_CACHE_DIR", scratch.path() + "/cache");
  std::string path = WriteLarge(scratch);
  std::vector<TokenId> expected = Ids(*PartsFromJson(Large()), kText);
  EXPECT_EQ(IdsOfFile(path), expected);
  ASSERT_EQ(scratch.Files().size(), 1u);
  EXPECT_EQ(IdsOfFile(path), expected);
  std::ofstream(scratch.Files()[0], std::ios::binary) << "PORTICOT nonsense";
  EXPECT_EQ(IdsOfFile(path), expected);
  EXPECT_GT(fs::file_size(scratch.Files()[0]), 100u);  // written again
  EXPECT_EQ(IdsOfFile(path), expected);
}

TEST(LoadThroughCache, DoesWithoutAFolderThatItCannotWrite) {
  Scratch scratch;
  std::string path = WriteLarge(scratch);
  Setting home("PORTICO_CACHE_DIR", "/dev/null/cache");
  EXPECT_EQ(IdsOfFile(path), Ids(*PartsFromJson(Large()), kText));
}

TEST(LoadThroughCache, CanBeSwitchedOff) {
  Scratch scratch;
  Setting home("PORTICO_CACHE_DIR", scratch.path() + "/cache");
  Setting off("PORTICO_TOKENIZER_CACHE", "0");
  IdsOfFile(WriteLarge(scratch));
  EXPECT_TRUE(scratch.Files().empty());
}

TEST(CacheFolder, IgnoresRelativePaths) {
  Setting own("PORTICO_CACHE_DIR", "relative");
  Setting xdg("XDG_CACHE_HOME", "/x");
  EXPECT_EQ(*CacheFolder(), "/x/portico");
  Setting relative("XDG_CACHE_HOME", "x");
  Setting home("HOME", "/h");
  EXPECT_EQ(*CacheFolder(), "/h/.cache/portico");
}

}  // namespace
}  // namespace portico::tokenizer
