#include "api/common/control_fields.h"

#include <gtest/gtest.h>

#include <string>

namespace portico::api {
namespace {

struct Asked {
  std::string mode;
  bool all = false;
};

constexpr FieldReader<Asked> kAskedFields[] = {
    {"all", ReadFlag<Asked, &Asked::all>},
    {"mode", ReadText<Asked, &Asked::mode>},
};
constexpr RefusedField kAskedDefaults[] = {{"timeout", "0"}};

class ControlFieldsTest : public testing::Test {
 protected:
  // The field at fault, or what was read.
  std::string Read(const std::string& body, const std::string& query = "") {
    net::HttpRequest request;
    request.path = "/control";
    request.body = body;
    request.query = query;
    Asked asked;
    const Status status = ReadControl(request, parser_, kAskedFields, kAskedDefaults, &asked);
    if (!status.ok()) return "wrong " + FieldOf(status);
    return asked.mode + (asked.all ? " all" : "");
  }

  simdjson::dom::parser parser_;
};

TEST_F(ControlFieldsTest, WhatIsKnownIsReadAndNullIsAbsent) {
  EXPECT_EQ(Read(""), "");
  EXPECT_EQ(Read("{}"), "");
  EXPECT_EQ(Read(R"({"mode":"x","all":true})"), "x all");
  EXPECT_EQ(Read(R"({"mode":null,"all":null,"unknown":null})"), "");
  EXPECT_EQ(Read(R"({"timeout":0.0})"), "");
}

TEST_F(ControlFieldsTest, WhatIsUnknownOrOfAnotherTypeIsNamed) {
  EXPECT_EQ(Read(R"({"mode":7})"), "wrong mode");
  EXPECT_EQ(Read(R"({"all":"yes"})"), "wrong all");
  EXPECT_EQ(Read(R"({"timeout":1})"), "wrong timeout");
  EXPECT_EQ(Read(R"({"mod":"x"})"), "wrong mod");
  EXPECT_EQ(Read(R"({"mode":"x","":1})"), "wrong ");
  EXPECT_EQ(Read("[1]"), "wrong ");
  EXPECT_EQ(Read("{}", "mode=x"), "wrong mode");
  EXPECT_EQ(Read("{}", "&&"), "");
}

TEST_F(ControlFieldsTest, AQueryHasTheNamesThatItsRouteTakesFromIt) {
  net::HttpRequest request;
  request.path = "/flush_cache";
  for (const char* query : {"", "model=x", "timeout=1&model", "model"}) {
    request.query = query;
    EXPECT_TRUE(CheckQueryNames(request, {"model", "timeout"}).ok()) << query;
  }
  for (const char* query : {"mode=x", "model=x&wait", "Model=x"}) {
    request.query = query;
    EXPECT_FALSE(CheckQueryNames(request, {"model", "timeout"}).ok()) << query;
  }
  request.query = "\xff=1";
  EXPECT_EQ(FieldOf(CheckQueryNames(request, {})), "\xEF\xBF\xBD");
}

}  // namespace
}  // namespace portico::api
