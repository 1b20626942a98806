#include "engine/llama/import/files/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/llama/import/test_model_for_test.h"

namespace portico::llama {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class SafetensorsTest : public testing::Test {
 protected:
  // Writes one file and gives the complaint about it.
  std::string Complaint(const std::string& bytes) {
    WriteFile(folder_.File("model.safetensors"), bytes);
    auto weights = WeightFiles::Open(folder_.path());
    if (weights.ok()) return "";
    EXPECT_EQ(weights.status().code(), StatusCode::kInvalidArgument);
    return std::string(MessageOf(weights.status()));
  }

  std::string HeaderComplaint(const std::string& header, size_t data_bytes) {
    return Complaint(SafetensorsText(header, std::string(data_bytes, 'x')));
  }

  TempFolder folder_;
};

TEST_F(SafetensorsTest, ReadsOneFile) {
  EXPECT_EQ(Complaint(SafetensorsBytes({{"a", "F32", {2, 3}, std::string(24, 'a')},
                                        {"none", "F32", {0}, ""},
                                        {"b", "BF16", {5}, std::string(10, 'b')}})),
            "");
  auto weights = WeightFiles::Open(folder_.path());
  ASSERT_TRUE(weights.ok());
  const WeightTensor* b = weights->Find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->dtype, "BF16");
  EXPECT_EQ(b->ShapeText(), "[5]");
  std::string bytes(10, '\0');
  ASSERT_TRUE(weights->FileOf(*b).ReadAt(b->offset, bytes.data(), bytes.size()).ok());
  EXPECT_EQ(bytes, "bbbbbbbbbb");
  EXPECT_EQ(weights->Find("c"), nullptr);
}

TEST_F(SafetensorsTest, RefusesAHeaderThatIsNotWhole) {
  EXPECT_THAT(Complaint(""), HasSubstr("model.safetensors: is too short"));
  EXPECT_THAT(Complaint("1234567"), HasSubstr("too short"));
  EXPECT_THAT(Complaint(LittleEndian64(100) + "{}"), HasSubstr("claims 100 bytes"));
  EXPECT_THAT(Complaint(LittleEndian64(UINT64_MAX) + "{}"), HasSubstr("claims"));
  EXPECT_THAT(Complaint(LittleEndian64(uint64_t{1} << 40) + "{}"), HasSubstr("claims"));
  EXPECT_THAT(HeaderComplaint("{\"a\":", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(HeaderComplaint("[]", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(HeaderComplaint("", 0), HasSubstr("not a JSON object"));
}

TEST_F(SafetensorsTest, EveryCutIsRefused) {
  std::string whole = SafetensorsBytes({{"a", "F32", {4}, std::string(16, 'a')}});
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(Complaint(whole.substr(0, size)), "") << size;
  }
  EXPECT_THAT(Complaint(whole.substr(0, whole.size() - 1)),
              AllOf(HasSubstr("tensor a"), HasSubstr("1 bytes are missing")));
  EXPECT_THAT(Complaint(whole + "z"), HasSubstr("1 bytes that its header does not name"));
}

TEST_F(SafetensorsTest, RefusesEntriesThatCannotBe) {
  auto entry = [&](const std::string& body) { return HeaderComplaint("{\"t\":" + body + "}", 8); };
  EXPECT_EQ(entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), "");
  EXPECT_THAT(entry(R"({"dtype":"F31","shape":[2],"data_offsets":[0,8]})"), HasSubstr("'F31'"));
  EXPECT_THAT(entry(R"({"dtype":7,"shape":[2],"data_offsets":[0,8]})"), HasSubstr("dtype"));
  EXPECT_THAT(entry(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"), HasSubstr("needs 12"));
  EXPECT_THAT(entry(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"),
              HasSubstr("bad shape"));
  EXPECT_THAT(entry(R"({"dtype":"F32","shape":"2","data_offsets":[0,8]})"), HasSubstr("no shape"));
  EXPECT_THAT(entry(R"({"dtype":"F32","shape":[2]})"), HasSubstr("no data_offsets"));
  EXPECT_THAT(entry(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), HasSubstr("bad data_"));
  EXPECT_THAT(entry(R"({"dtype":"F32","shape":[2],"data_offsets":[-8,0]})"),
              HasSubstr("bad data_"));
  EXPECT_THAT(entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8.5]})"),
              HasSubstr("no data_"));
  EXPECT_THAT(entry(R"({"dtype":"F32","shape":[2],"data_offsets":[4,12]})"), HasSubstr("beyond"));
  EXPECT_THAT(entry(R"({"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,8]})"),
              HasSubstr("impossible shape"));
  EXPECT_THAT(entry("[]"), HasSubstr("dtype"));
}

TEST_F(SafetensorsTest, RefusesOverlapsAndGaps) {
  EXPECT_THAT(HeaderComplaint(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},
                                  "b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                              6),
              HasSubstr("tensor b overlaps"));
  EXPECT_THAT(HeaderComplaint(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},
                                  "b":{"dtype":"U8","shape":[4],"data_offsets":[6,10]}})",
                              10),
              HasSubstr("gap before tensor b"));
}

TEST_F(SafetensorsTest, ReadsShardsAndRefusesADamagedIndex) {
  WriteFile(folder_.File("one.safetensors"), SafetensorsBytes({{"a", "U8", {1}, "a"}}));
  WriteFile(folder_.File("two.safetensors"), SafetensorsBytes({{"b", "U8", {1}, "b"}}));
  auto complaint = [&](const std::string& index) {
    WriteFile(folder_.File("model.safetensors.index.json"), index);
    return std::string(MessageOf(WeightFiles::Open(folder_.path()).status()));
  };
  EXPECT_EQ(complaint(R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})"), "");
  EXPECT_THAT(complaint(R"({"weight_map":{"a":"three.safetensors"}})"),
              HasSubstr("names the shard three.safetensors, which is not there"));
  EXPECT_THAT(complaint(R"({"weight_map":{"a":"one.safetensors","c":"two.safetensors"}})"),
              HasSubstr("tensor c is not in the shard two.safetensors"));
  EXPECT_THAT(complaint(R"({"weight_map":{"a":"../one.safetensors"}})"), HasSubstr("no file of"));
  EXPECT_THAT(complaint(R"({"weight_map":{"a":1}})"), HasSubstr("no file of"));
  EXPECT_THAT(complaint("{}"), HasSubstr("no weight_map"));
  EXPECT_THAT(complaint("{"), HasSubstr("is not JSON"));
  WriteFile(folder_.File("two.safetensors"), SafetensorsBytes({{"a", "U8", {1}, "b"}}));
  EXPECT_THAT(complaint(R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})"),
              HasSubstr("tensor a is in two shards"));
}

TEST_F(SafetensorsTest, SaysWhichFilesItLookedFor) {
  auto weights = WeightFiles::Open(folder_.path());
  EXPECT_EQ(weights.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(MessageOf(weights.status())), HasSubstr("model.safetensors"));
}

}  // namespace
}  // namespace portico::llama
