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
  net::HttpRequest request;
  request.method = "POST";
  request.headers = {{"x-api-key", "ka"}};
  EXPECT_EQ(*CheckControl(request, keys, "clients"), "a");
  // One right key is enough, whatever the order of the list.
  request.headers.emplace_back("authorization", "Bearer ku");
  EXPECT_EQ(*CheckControl(request, keys, "clients"), "a");
  EXPECT_EQ(*CheckControl(request, {keys[1], keys[0]}, "clients"), "a");
}

// Some of SGLang's controls change the server by GET: a user's key could send them.
TEST(ControlKeysTest, AUserReadsOnlyWhatChangesNothing) {
  const std::vector<ControlKey> keys = {{.id = "u", .name = "", .key = "ku", .admin = false}};
  net::HttpRequest request;
  request.method = "GET";
  request.headers = {{"authorization", "Bearer ku"}};
  for (const char* path : {"/flush_cache", "/freeze_gc", "/slow_down", "/start_profile",
                           "/clear_hicache_storage_backend", "/release_memory_occupation"}) {
    request.path = path;
    EXPECT_EQ(CheckControl(request, keys, "").status().code(), StatusCode::kPermissionDenied)
        << path;
  }
  for (const char* path : {"/workers", "/get_internal_state", "/hicache/storage-backend"}) {
    request.path = path;
    EXPECT_TRUE(CheckControl(request, keys, "").ok()) << path;
  }
}

// Workers answered 401 to clients that had shown their key as x-api-key, and got operators' keys; then, where operators had
// keys, none at all, so that sessions could not be opened.
TEST(ControlKeysTest, WorkersGetTheClientsKeyAndNoOperators) {
  const std::vector<std::string> kept = {"ka", "ku"};
  const auto passed = [&](net::Headers headers) {
    net::HttpRequest request;
    request.headers = std::move(headers);
    return KeyForWorkers(request, kept);
  };
  EXPECT_EQ(passed({}), "");
  EXPECT_EQ(passed({{"x-api-key", "k"}}), "Bearer k");
  EXPECT_EQ(passed({{"x-api-key", "k"}, {"authorization", "Bearer other"}}), "Bearer other");
  EXPECT_EQ(passed({{"x-api-key", "ku"}, {"authorization", "Bearer other"}}), "Bearer other");
  EXPECT_EQ(passed({{"x-api-key", "k"}, {"authorization", "Bearer ka"}}), "Bearer k");
  EXPECT_EQ(passed({{"x-api-key", "ku"}, {"authorization", "bearer ka"}}), "");
}

}  // namespace
}  // namespace portico::api
