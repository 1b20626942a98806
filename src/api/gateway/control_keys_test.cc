#include "api/gateway/control_keys.h"

#include <gtest/gtest.h>

namespace portico::api {
namespace {

StatusCode Code(const std::string& method, const std::string& key,
                const std::vector<ControlKey>& keys) {
  net::HttpRequest request;
  request.method = method;
  request.headers = {{"authorization", "Bearer " + key}};
  return CheckControl(request, keys, "clients").status().code();
}

TEST(ControlKeysTest, ReadsTheirFormAndNeverShowsAKey) {
  const auto key = ParseControlKey("ops:Operations:admin:se:cret");
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(key->key, "se:cret");
  EXPECT_TRUE(key->admin);
  for (const char* text :
       {"", "a", "a:b:admin", "a:b:admin:", ":b:admin:secret", "a:b:root:secret"}) {
    const auto wrong = ParseControlKey(text);
    EXPECT_FALSE(wrong.ok()) << text;
    EXPECT_EQ(MessageOf(wrong.status()).find("secret"), std::string_view::npos);
  }
}

TEST(ControlKeysTest, AnAdminControlsAUserReadsAndAClientDoesNeither) {
  const std::vector<ControlKey> keys = {{.id = "a", .name = "", .key = "ka", .admin = true},
                                        {.id = "u", .name = "", .key = "ku", .admin = false}};
  EXPECT_EQ(Code("POST", "ka", keys), StatusCode::kOk);
  EXPECT_EQ(Code("GET", "ku", keys), StatusCode::kOk);
  EXPECT_EQ(Code("POST", "ku", keys), StatusCode::kPermissionDenied);
  EXPECT_EQ(Code("GET", "clients", keys), StatusCode::kUnauthenticated);
  EXPECT_EQ(Code("POST", "clients", {}), StatusCode::kOk);
}

}  // namespace
}  // namespace portico::api
