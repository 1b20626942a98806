#include "engine/llama/import/importer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <set>
#include <thread>

#include "engine/llama/import/cache/import_cache.h"
#include "engine/llama/import/files/file.h"
#include "engine/llama/import/files/gguf_file.h"
#include "engine/llama/import/test_model_for_test.h"

namespace portico::llama {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class ImporterTest : public testing::Test {
 protected:
  StatusOr<ImportedModel> Import(const ImportOptions& options = {}) {
    stages_.clear();
    return ImportFolder(folder_.path(), options,
                        [this](std::string_view stage, double) { stages_.emplace(stage); });
  }

  std::string Complaint() { return std::string(MessageOf(Import().status())); }

  // Names in the cache that end so.
  std::set<std::string> Cached(const std::string& suffix) const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(cache_.path() + "/portico/models")) {
      std::string name = entry.path().filename().string();
      if (name.ends_with(suffix)) names.insert(name);
    }
    return names;
  }

  TempFolder cache_{"XDG_CACHE_HOME"};
  TempFolder folder_;
  std::set<std::string> stages_;
  TestModel model_ = RandomModel(SmallConfig("llama"));
};

TEST_F(ImporterTest, ImportsOnceForEachContent) {
  model_.Write(folder_.path());
  auto first = Import();
  ASSERT_TRUE(first.ok()) << MessageOf(first.status());
  EXPECT_THAT(stages_, ElementsAre("importing", "reading weights"));
  auto second = Import();
  ASSERT_TRUE(second.ok()) << MessageOf(second.status());
  EXPECT_EQ(second->file, first->file);
  EXPECT_THAT(stages_, ElementsAre("reading weights"));

  // The same content elsewhere is the same import.
  TempFolder copy;
  model_.Write(copy.path());
  auto third = ImportFolder(copy.path(), {}, nullptr);
  ASSERT_TRUE(third.ok()) << MessageOf(third.status());
  EXPECT_EQ(third->file, first->file);

  ImportOptions bfloat16;
  bfloat16.dtype = ImportDtype::kBfloat16;
  EXPECT_NE(Import(bfloat16)->file, first->file);
  EXPECT_EQ(Cached(".gguf").size(), 2u);
  EXPECT_EQ(Cached(".tmp").size(), 0u);
}

TEST_F(ImporterTest, NoticesOneChangedWeight) {
  model_.Write(folder_.path());
  auto first = Import();
  ASSERT_TRUE(first.ok()) << MessageOf(first.status());
  auto time = fs::last_write_time(folder_.File("model.safetensors"));
  model_.tensors["model.layers.1.mlp.up_proj.weight"].values[17] += 1;
  model_.Write(folder_.path());
  fs::last_write_time(folder_.File("model.safetensors"), time);
  auto second = Import();
  ASSERT_TRUE(second.ok()) << MessageOf(second.status());
  EXPECT_NE(second->file, first->file);
}

// A start read all weights twice: once for their hash, once as the import.
TEST_F(ImporterTest, HashesWeightsThatNobodyHasTouchedOnce) {
  const std::time_t written = std::time(nullptr);
  model_.Write(folder_.path());
  const auto stages_of_a_start = [this] {
    auto imported = Import();
    EXPECT_TRUE(imported.ok()) << MessageOf(imported.status());
    return stages_;
  };
  EXPECT_THAT(stages_of_a_start(), ElementsAre("importing", "reading weights"));
  if (std::time(nullptr) > written + 2) GTEST_SKIP() << "this machine is too busy";
  EXPECT_EQ(Cached(".hash").size(), 0u);  // written just now: a change might not show
  std::this_thread::sleep_for(std::chrono::milliseconds(3100));
  EXPECT_THAT(stages_of_a_start(), ElementsAre("reading weights"));
  EXPECT_EQ(Cached(".hash").size(), 2u);  // of the weights and of the import
  EXPECT_THAT(stages_of_a_start(), ElementsAre());

  // A change that puts the modification time back.
  const auto time = fs::last_write_time(folder_.File("model.safetensors"));
  model_.tensors["model.layers.1.mlp.up_proj.weight"].values[17] += 1;
  model_.Write(folder_.path());
  fs::last_write_time(folder_.File("model.safetensors"), time);
  EXPECT_THAT(stages_of_a_start(), ElementsAre("importing", "reading weights"));
  EXPECT_EQ(Cached(".gguf").size(), 2u);

  // A damaged memory is none.
  for (const std::string& name : Cached(".hash")) {
    WriteFile(cache_.path() + "/portico/models/" + name, "0123");
  }
  EXPECT_THAT(stages_of_a_start(), ElementsAre("reading weights"));
}

TEST_F(ImporterTest, TheLeastRecentlyUsedImportsGoButNoneThatIsUsed) {
  ImportOptions options;
  std::vector<std::string> files;
  std::vector<ImportUse> uses;
  for (int i = 0; i < 4; ++i) {
    model_.tensors["model.layers.1.mlp.up_proj.weight"].values[17] += 1;
    model_.Write(folder_.path());
    auto imported = Import(options);
    ASSERT_TRUE(imported.ok()) << MessageOf(imported.status());
    files.push_back(imported->file);
    if (i == 1) uses.push_back(*std::move(imported->use));
    fs::last_write_time(fs::path(imported->file).replace_extension(".seal"),
                        fs::file_time_type::clock::now() + std::chrono::seconds(i));
  }
  EXPECT_EQ(Cached(".gguf").size(), 4u);
  const auto cache = ImportCache::Open();
  ASSERT_TRUE(cache.ok());
  const uint64_t size = fs::file_size(files[0]);
  cache->Trim(2 * size + size / 2);
  EXPECT_FALSE(fs::exists(files[0]));
  EXPECT_TRUE(fs::exists(files[1]));  // older than the next, but used
  EXPECT_FALSE(fs::exists(files[2]));
  EXPECT_TRUE(fs::exists(files[3]));

  // The one that is asked for stays, whatever the bound; the others leave one at a time.
  options.cache_bytes = 0;
  auto last = Import(options);
  ASSERT_TRUE(last.ok()) << MessageOf(last.status());
  EXPECT_EQ(last->file, files[3]);
  EXPECT_TRUE(fs::exists(files[3]) && fs::exists(files[1]));
  uses.clear();
  cache->Trim(0);
  EXPECT_FALSE(fs::exists(files[1]));
  EXPECT_TRUE(fs::exists(files[3]));
}

TEST_F(ImporterTest, ReplacesACachedFileThatWasDamaged) {
  model_.Write(folder_.path());
  auto first = Import();
  ASSERT_TRUE(first.ok()) << MessageOf(first.status());
  fs::resize_file(first->file, fs::file_size(first->file) / 2);
  auto second = Import();
  ASSERT_TRUE(second.ok()) << MessageOf(second.status());
  EXPECT_TRUE(ReadGgufModel(second->file).ok());
}

// Imports were checked by their heads alone: a flipped bit in the weights was served.
TEST_F(ImporterTest, ReplacesACachedFileWhoseWeightsWereDamaged) {
  model_.Write(folder_.path());
  auto first = Import();
  ASSERT_TRUE(first.ok()) << MessageOf(first.status());
  const std::string whole = ReadFile(first->file);
  std::string damaged = whole;
  damaged[damaged.size() - 100] ^= 1;
  WriteFile(first->file, damaged);
  auto second = Import();
  ASSERT_TRUE(second.ok()) << MessageOf(second.status());
  EXPECT_EQ(ReadFile(second->file), whole);
}

TEST_F(ImporterTest, AnImportWithoutASealIsMadeAgain) {
  model_.Write(folder_.path());
  auto first = Import();
  ASSERT_TRUE(first.ok()) << MessageOf(first.status());
  fs::remove(fs::path(first->file).replace_extension(".seal"));
  EXPECT_TRUE(Import().ok());
  EXPECT_EQ(Cached(".seal").size(), 1u);
}

// A process that is killed while it writes leaves a temporary file and nothing under the final
// name.
TEST_F(ImporterTest, RecoversFromAnInterruptedWrite) {
  model_.Write(folder_.path());
  pid_t child = ::fork();
  if (child == 0) {
    auto ignored = ImportFolder(folder_.path(), {}, [](std::string_view stage, double share) {
      if (stage == "importing" && share > 0.3) ::raise(SIGKILL);
    });
    ::_exit(ignored.ok() ? 0 : 1);
  }
  int result = 0;
  ASSERT_EQ(::waitpid(child, &result, 0), child);
  ASSERT_TRUE(WIFSIGNALED(result));
  EXPECT_EQ(Cached(".tmp").size(), 1u);
  EXPECT_EQ(Cached(".gguf").size(), 0u);
  auto imported = Import();
  ASSERT_TRUE(imported.ok()) << MessageOf(imported.status());
  EXPECT_TRUE(ReadGgufModel(imported->file).ok());
  EXPECT_EQ(Cached(".tmp").size(), 0u);
}

TEST_F(ImporterTest, LeavesTheTemporaryFilesOfOthersAtWork) {
  auto cache = ImportCache::Open();
  ASSERT_TRUE(cache.ok());
  auto lock = ImportLock::Acquire(*cache, "busy", [] {});
  ASSERT_TRUE(lock.ok());
  WriteFile(cache->TempPathOf("busy"), "x");
  WriteFile(cache->TempPathOf("dead"), "x");
  cache->RemoveLeftovers();
  EXPECT_THAT(Cached(".tmp"), ElementsAre(testing::StartsWith("busy.")));
}

TEST_F(ImporterTest, SeveralAtOnceShareOneImport) {
  model_.Write(folder_.path());
  std::atomic<int> imports = 0;
  std::vector<std::thread> threads;
  std::vector<std::string> files(6);
  for (size_t i = 0; i < files.size(); ++i) {
    threads.emplace_back([&, i] {
      bool counted = false;
      auto imported = ImportFolder(folder_.path(), {}, [&](std::string_view stage, double) {
        if (stage == "importing" && !counted) {
          counted = true;
          ++imports;
        }
      });
      files[i] = imported.ok() ? imported->file : std::string(MessageOf(imported.status()));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(imports, 1);
  EXPECT_EQ(std::set<std::string>(files.begin(), files.end()).size(), 1u) << files[0];
  EXPECT_TRUE(ReadGgufModel(files[0]).ok());
}

TEST_F(ImporterTest, AFullDiskIsSaidAndLeavesNothing) {
  model_.Write(folder_.path());
  fs::create_directories(cache_.path() + "/portico/models");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small{20000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  Status status = Import().status();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(MessageOf(status)), HasSubstr("the disk is full"));
  EXPECT_EQ(Cached(".tmp").size() + Cached(".gguf").size(), 0u);
  EXPECT_TRUE(Import().ok());
}

TEST_F(ImporterTest, NamesWhatIsMissingOrWrong) {
  EXPECT_THAT(Complaint(), AllOf(HasSubstr("config.json"), HasSubstr("No such file")));
  WriteFile(folder_.File("config.json"), "{");
  EXPECT_THAT(Complaint(), HasSubstr("config.json: is not JSON"));
  WriteFile(folder_.File("config.json"), model_.config.Dump());
  EXPECT_THAT(Complaint(), HasSubstr("has no weights"));

  TestModel missing = model_;
  missing.tensors.erase("model.layers.1.self_attn.k_proj.weight");
  missing.Write(folder_.path());
  EXPECT_THAT(
      Complaint(),
      HasSubstr("model.safetensors: the tensor model.layers.1.self_attn.k_proj.weight is missing"));
  missing = model_;
  missing.tensors.erase("lm_head.weight");
  missing.Write(folder_.path());
  EXPECT_THAT(Complaint(), HasSubstr("lm_head.weight is missing"));

  TestModel wrong = model_;
  wrong.config.Set("intermediate_size", 128);
  wrong.Write(folder_.path());
  EXPECT_THAT(Complaint(), AllOf(HasSubstr("[96, 64]"), HasSubstr("[128, 64]")));
  wrong = model_;
  wrong.config.Set("vocab_size", 100);
  wrong.Write(folder_.path());
  EXPECT_THAT(Complaint(), HasSubstr("config.json makes it [100, 64]"));

  model_.Write(folder_.path());
  WriteFile(folder_.File("model.safetensors"),
            ReadFile(folder_.File("model.safetensors")).substr(0, 5000));
  EXPECT_THAT(Complaint(), HasSubstr("model.safetensors"));
  WriteFile(
      folder_.File("model.safetensors"),
      SafetensorsBytes(
          {{"model.embed_tokens.weight", "F64", {101, 64}, std::string(101 * 64 * 8, '\0')}}));
  EXPECT_THAT(Complaint(), HasSubstr("is F64; F32, F16 and BF16 can be imported"));
}

TEST_F(ImporterTest, NamesTheCacheFolderThatCannotBeMade) {
  model_.Write(folder_.path());
  WriteFile(cache_.File("portico"), "in the way");
  EXPECT_THAT(Complaint(), AllOf(HasSubstr(cache_.path()), HasSubstr("cannot create")));
}

}  // namespace
}  // namespace portico::llama
