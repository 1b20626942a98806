#include "engine/llama/model/model_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/llama/import/temp_folder_for_test.h"

namespace portico::llama {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

std::string Complaint(const std::string& path) {
  return std::string(MessageOf(FindModel(path).status()));
}

TEST(ModelFolderTest, FindsFoldersAndFiles) {
  TempFolder folder;
  EXPECT_THAT(Complaint(folder.path()), HasSubstr("neither config.json nor a GGUF file"));
  WriteFile(folder.File("a.gguf"), "GGUF....");
  EXPECT_EQ(FindModel(folder.File("a.gguf"))->path, folder.File("a.gguf"));
  EXPECT_FALSE(FindModel(folder.path())->is_folder);
  EXPECT_EQ(FindModel(folder.path())->path, folder.File("a.gguf"));
  WriteFile(folder.File("b.gguf"), "GGUF....");
  EXPECT_THAT(Complaint(folder.path()), HasSubstr("2 GGUF files"));
  WriteFile(folder.File("config.json"), "{}");
  EXPECT_TRUE(FindModel(folder.path())->is_folder);
  EXPECT_THAT(Complaint(folder.File("config.json")), HasSubstr("neither a GGUF file nor"));
}

TEST(ModelFolderTest, TakesTheFirstOfSeveralParts) {
  TempFolder folder;
  WriteFile(folder.File("m-00001-of-00002.gguf"), "GGUF");
  WriteFile(folder.File("m-00002-of-00002.gguf"), "GGUF");
  EXPECT_EQ(FindModel(folder.path())->path, folder.File("m-00001-of-00002.gguf"));
}

TEST(ModelFolderTest, LooksForHubIdsInTheCache) {
  TempFolder cache("HF_HUB_CACHE");
  EXPECT_EQ(FindModel("some-org/tiny.model").status().code(), StatusCode::kNotFound);
  EXPECT_THAT(Complaint("some-org/tiny.model"),
              AllOf(HasSubstr("hf download some-org/tiny.model"), HasSubstr(cache.path())));
  std::string snapshot = cache.File("models--some-org--tiny.model/snapshots/abc123");
  fs::create_directories(snapshot);
  fs::create_directories(cache.File("models--some-org--tiny.model/refs"));
  WriteFile(snapshot + "/config.json", "{}");
  WriteFile(cache.File("models--some-org--tiny.model/refs/main"), "abc123\n");
  auto source = FindModel("some-org/tiny.model");
  ASSERT_TRUE(source.ok()) << MessageOf(source.status());
  EXPECT_TRUE(source->is_folder);
  EXPECT_EQ(source->path, snapshot);
  WriteFile(cache.File("models--some-org--tiny.model/refs/main"), "../../../etc");
  EXPECT_EQ(FindModel("some-org/tiny.model").status().code(), StatusCode::kNotFound);
}

TEST(ModelFolderTest, SaysWhenThereIsNothing) {
  for (const char* path : {"/no/such/place", "nothing", "./a/b", "../x", "a/b/c", ""}) {
    Status status = FindModel(path).status();
    EXPECT_EQ(status.code(), StatusCode::kNotFound) << path;
    EXPECT_THAT(std::string(MessageOf(status)), HasSubstr("no such model")) << path;
  }
}

}  // namespace
}  // namespace portico::llama
