#include "engine/grpc/tokenizer_files.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace portico {
namespace {

struct Entry {
  std::string name;
  std::string content;
  bool deflate = false;
  bool lie = false;  // about its size
};

void Append(uint32_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

std::string Deflate(const std::string& text) {
  std::string out(compressBound(text.size()) + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Zip(const std::vector<Entry>& entries) {
  std::string archive, directory;
  for (const Entry& entry : entries) {
    const std::string packed = entry.deflate ? Deflate(entry.content) : entry.content;
    const auto crc =
        static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(entry.content.data()),
                                    static_cast<uInt>(entry.content.size())));
    const auto size = static_cast<uint32_t>(entry.content.size() + (entry.lie ? 1 : 0));
    const auto offset = static_cast<uint32_t>(archive.size());
    std::string facts;
    Append(20, 2, &facts);
    Append(0, 2, &facts);
    Append(entry.deflate ? 8 : 0, 2, &facts);
    Append(0, 4, &facts);
    Append(crc, 4, &facts);
    Append(static_cast<uint32_t>(packed.size()), 4, &facts);
    Append(size, 4, &facts);
    Append(static_cast<uint32_t>(entry.name.size()), 2, &facts);
    Append(0, 2, &facts);
    Append(0x04034b50, 4, &archive);
    archive += facts + entry.name + packed;
    Append(0x02014b50, 4, &directory);
    Append(20, 2, &directory);
    directory += facts + std::string(10, '\0');
    Append(offset, 4, &directory);
    directory += entry.name;
  }
  const auto start = static_cast<uint32_t>(archive.size());
  archive += directory;
  Append(0x06054b50, 4, &archive);
  Append(0, 4, &archive);
  Append(static_cast<uint32_t>(entries.size()), 2, &archive);
  Append(static_cast<uint32_t>(entries.size()), 2, &archive);
  Append(static_cast<uint32_t>(directory.size()), 4, &archive);
  Append(start, 4, &archive);
  Append(0, 2, &archive);
  return archive;
}

TEST(TokenizerFilesTest, StoredAndDeflatedEntriesAreReadWithoutTheirFolders) {
  const std::string text(10000, 'a');
  const auto files = ReadTokenizerArchive(
      Zip({{"tokenizer.json", "{}"}, {"model/tokenizer_config.json", text, /*deflate=*/true}}));
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 2U);
  EXPECT_EQ((*files)[0].name, "tokenizer.json");
  EXPECT_EQ((*files)[0].content, "{}");
  EXPECT_EQ((*files)[1].name, "tokenizer_config.json");
  EXPECT_EQ((*files)[1].content, text);
}

TEST(TokenizerFilesTest, WhatIsOfNoUseOrCouldLeaveTheFolderIsLeftOut) {
  const auto files = ReadTokenizerArchive(Zip({{"model.safetensors", "x"},
                                               {".json", "x"},
                                               {"..", "x"},
                                               {"a\\b.json", "x"},
                                               {"run.py", "x"},
                                               {"../../vocab.json", "kept by its last name"}}));
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 1U);
  EXPECT_EQ(files->front().name, "vocab.json");
}

TEST(TokenizerFilesTest, DamagedArchivesAreRefused) {
  const std::string good = Zip({{"tokenizer.json", std::string(1000, 'b'), /*deflate=*/true}});
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(ReadTokenizerArchive(good.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(ReadTokenizerArchive(Zip({{"a.json", "x"}, {"b/a.json", "y"}})).ok());
  EXPECT_FALSE(ReadTokenizerArchive(Zip({{"a.json", "x", false, /*lie=*/true}})).ok());
  EXPECT_FALSE(ReadTokenizerArchive(Zip({{"a.json", "x", true, /*lie=*/true}})).ok());
}

}  // namespace
}  // namespace portico
