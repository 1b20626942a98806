// Frames that SGLang's own codec wrote (0.5.16, 0.5.20, 0.5.23), if they are beside this repository.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#include "base/source_dir_for_test.h"
#include "message/sglang/decode.h"
#include "message/sglang/encode.h"

namespace portico::sglang {
namespace {

std::string Shared() {
  const char* named = std::getenv("PORTICO_SHARED");
  return named != nullptr ? std::string(named) + "/" : SourceDir() + "/../shared/";
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<Json> Lines(const std::string& name) {
  std::vector<Json> lines;
  std::istringstream text(ReadAll(Shared() + "data/vectors/sglang-ipc/" + name));
  for (std::string line; std::getline(text, line);) lines.push_back(*Json::Parse(line));
  return lines;
}

int Nibble(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

std::string Unhex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(Nibble(hex[i]) << 4 | Nibble(hex[i + 1])));
  }
  return bytes;
}

template <typename T>
void AppendItem(const Json& item, std::string* out) {
  const T value = item.is_int() ? static_cast<T>(item.as_int()) : static_cast<T>(item.as_double());
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

Value ValueOf(const Json& json);

Value BufferOf(const Json& json) {
  Buffer buffer;
  if (const Json* typecode = json.Find("$array")) {
    buffer.dtype = typecode->as_string();
    for (const Json& item : json.Find("items")->as_array()) {
      switch (buffer.dtype[0]) {
        case 'q':
          AppendItem<int64_t>(item, &buffer.bytes);
          break;
        case 'i':
          AppendItem<int32_t>(item, &buffer.bytes);
          break;
        case 'd':
          AppendItem<double>(item, &buffer.bytes);
          break;
        case 'f':
          AppendItem<float>(item, &buffer.bytes);
          break;
        default:
          AppendItem<uint8_t>(item, &buffer.bytes);
      }
    }
    return buffer;
  }
  const bool tensor = json.Find("$tensor") != nullptr;
  buffer.kind = tensor ? Buffer::Kind::kTensor : Buffer::Kind::kNdarray;
  buffer.dtype = json.GetString(tensor ? "$tensor" : "$ndarray");
  for (const Json& size : json.Find("shape")->as_array()) buffer.shape.push_back(size.as_int());
  buffer.device = json.GetString("device");
  buffer.bytes = Unhex(json.GetString("hex"));
  return buffer;
}

Value ObjectOf(const Json& json) {
  if (json.Find("$array") || json.Find("$tensor") || json.Find("$ndarray")) return BufferOf(json);
  if (const Json* bytes = json.Find("$bin")) return Bytes{Unhex(bytes->as_string())};
  if (const Json* set = json.Find("$set")) return ValueOf(*set);
  if (const Json* number = json.Find("$float")) {
    const std::string& name = number->as_string();
    const double infinity = std::numeric_limits<double>::infinity();
    return name == "nan"   ? std::numeric_limits<double>::quiet_NaN()
           : name == "inf" ? infinity
                           : -infinity;
  }
  Map map;
  if (const Json* pairs = json.Find("$map")) {
    for (const Json& pair : pairs->as_array()) {
      map.emplace_back(ValueOf(pair.as_array()[0]), ValueOf(pair.as_array()[1]));
    }
    return map;
  }
  for (const auto& [key, value] : json.as_object()) {
    if (key != "$struct") map.emplace_back(key, ValueOf(value));
  }
  return map;
}

Value ValueOf(const Json& json) {
  if (json.is_null()) return {};
  if (json.is_bool()) return json.as_bool();
  if (json.is_int()) return json.as_int();
  if (json.is_big_int())
    return static_cast<uint64_t>(std::stoull(std::string(json.as_big_int().text())));
  if (json.is_double()) return json.as_double();
  if (json.is_string()) return json.as_string();
  if (json.is_object()) return ObjectOf(json);
  List list;
  for (const Json& item : json.as_array()) list.push_back(ValueOf(item));
  return list;
}

// With float fields that hold whole numbers as floats, as the decoder gives them, and sets in one order.
bool SameValue(const Value& a, const Value& b) {
  if (a == b) return true;
  if (a.As<double>() != nullptr && b.As<int64_t>() != nullptr) {
    return *a.As<double>() == static_cast<double>(*b.As<int64_t>());
  }
  const List* x = a.As<List>();
  const List* y = b.As<List>();
  if (x != nullptr && y != nullptr) {
    if (x->size() != y->size()) return false;
    if (std::equal(x->begin(), x->end(), y->begin(), SameValue)) return true;
    return std::is_permutation(x->begin(), x->end(), y->begin(), SameValue);
  }
  const Map* m = a.As<Map>();
  const Map* n = b.As<Map>();
  if (m == nullptr || n == nullptr || m->size() != n->size()) return false;
  for (size_t i = 0; i < m->size(); ++i) {
    if (!((*m)[i].first == (*n)[i].first) || !SameValue((*m)[i].second, (*n)[i].second)) {
      return false;
    }
  }
  return true;
}

bool HasSetOfSeveral(const Json& json) {
  if (json.is_array()) {
    return std::any_of(json.as_array().begin(), json.as_array().end(), HasSetOfSeveral);
  }
  if (!json.is_object()) return false;
  if (const Json* set = json.Find("$set")) return set->as_array().size() > 1;
  return std::any_of(json.as_object().begin(), json.as_object().end(),
                     [](const auto& member) { return HasSetOfSeveral(member.second); });
}

class SglangVectors : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string path = Shared() + "reference/sglang-ipc-manifest-" + GetParam() + ".json";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no recorded frames at " << path;
    auto schema = Schema::Parse(*Json::Parse(ReadAll(path)));
    ASSERT_TRUE(schema.ok()) << schema.status();
    schema_ = *schema;
  }
  bool maps() const { return std::string_view(GetParam()) == "0.5.16"; }

  std::shared_ptr<const Schema> schema_;
};

TEST_P(SglangVectors, RequestsAreEncodedToTheRecordedBytes) {
  int exact = 0;
  for (const Json& line : Lines(std::string("requests-") + GetParam() + ".jsonl")) {
    SCOPED_TRACE(line.GetString("tag") + ", " + line.GetString("name"));
    const std::string recorded = Unhex(line.GetString("hex"));
    const Value fields = ValueOf(*line.Find("fields"));
    const EncodeOptions full{Length::kFull, false};
    const auto encoded = EncodeMessage(*schema_, line.GetString("tag"), fields, full);
    ASSERT_TRUE(encoded.ok()) << encoded.status();
    if (maps() || HasSetOfSeveral(*line.Find("fields"))) {
      EXPECT_TRUE(SameValue(DecodeMessage(*schema_, *encoded)->fields,
                            DecodeMessage(*schema_, recorded)->fields));
    } else {
      EXPECT_EQ(*encoded, recorded);
      ++exact;
    }
    // The shortest form means the same.
    const auto shortest = EncodeMessage(*schema_, line.GetString("tag"), fields);
    ASSERT_TRUE(shortest.ok()) << shortest.status();
    EXPECT_LE(shortest->size(), recorded.size() + 64);
    const auto back = DecodeMessage(*schema_, *shortest);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(SameValue(back->fields, DecodeMessage(*schema_, recorded)->fields));
  }
  EXPECT_GE(exact, maps() ? 0 : 150);
}

TEST_P(SglangVectors, MessagesOfTheSchedulerAreDecodedToTheRecordedValues) {
  for (const char* kind : {"requests-", "outputs-", "replies-"}) {
    const auto lines = Lines(std::string(kind) + GetParam() + ".jsonl");
    EXPECT_GT(lines.size(), 20u);
    for (const Json& line : lines) {
      SCOPED_TRACE(line.GetString("tag") + ", " + line.GetString("name"));
      const auto message = DecodeMessage(*schema_, Unhex(line.GetString("hex")));
      ASSERT_TRUE(message.ok()) << message.status();
      EXPECT_EQ(message->tag, line.GetString("tag"));
      EXPECT_TRUE(SameValue(message->fields, ValueOf(*line.Find("fields"))));
    }
  }
}

TEST_P(SglangVectors, FramesAreTakenAndRefusedAsBySglang) {
  std::map<std::string, Value> decoded;
  for (const Json& line : Lines(std::string("decode-") + GetParam() + ".jsonl")) {
    SCOPED_TRACE(line.GetString("name"));
    const auto message = DecodeMessage(*schema_, Unhex(line.GetString("hex")));
    EXPECT_EQ(message.ok(), line.GetBool("ok", false))
        << message.status() << "; SGLang: " << line.GetString("error");
    if (!message.ok()) continue;
    decoded[line.GetString("name")] = message->fields;
    const std::string same = line.GetString("same_as");
    if (!same.empty()) {
      EXPECT_TRUE(SameValue(message->fields, decoded[same]));
    }
  }
  EXPECT_GT(decoded.size(), 10u);
}

INSTANTIATE_TEST_SUITE_P(Releases, SglangVectors, testing::Values("0.5.16", "0.5.20", "0.5.23"),
                         [](const auto& release) {
                           std::string name = release.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return "V" + name;
                         });

}  // namespace
}  // namespace portico::sglang
