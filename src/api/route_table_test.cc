#include "api/route_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "base/source_dir_for_test.h"

namespace portico::api {
namespace {

using testing::HasSubstr;

constexpr std::string_view kBegin = "<!-- routes -->\n";
constexpr std::string_view kEnd = "<!-- end of routes -->\n";

std::string KeyText(Access access) {
  switch (access) {
    case Access::kOpen:
      return "none";
    case Access::kKey:
      return "`--api-key`";
    case Access::kAdmin:
      return "`--admin-api-key`";
  }
  return "";
}

std::string BodyText(const Route& route) {
  switch (route.body) {
    case BodyType::kNone:
      return "none; up to 64 KiB are ignored";
    case BodyType::kForm:
      return "multipart/form-data";
    case BodyType::kJson:
      break;
  }
  if (route.max_body_bytes == 0) return "JSON";
  return "JSON, " + std::to_string(route.max_body_bytes >> 10) + " KiB";
}

// Routes that take the same, in a row.
std::string RoutesMarkdown(const RouteTable& table) {
  std::map<std::pair<Access, std::string>, std::string> rows;
  for (const auto& route : table.routes()) {
    std::string& names = rows[{route->access, BodyText(*route)}];
    if (!names.empty()) names += ", ";
    names += route->method + " " + route->path;
  }
  std::string text = "| key | body | routes |\n|---|---|---|\n";
  for (const auto& [kind, names] : rows) {
    text += "| " + KeyText(kind.first) + " | " + kind.second + " | " + names + " |\n";
  }
  return text;
}

std::string ReadDocs(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// PORTICO_WRITE_DOCS=1 in the environment writes the file instead.
TEST(RouteTable, IsDocumentedInDocsApi) {
  const std::string path = SourceDir() + "/docs/api.md";
  std::string docs = ReadDocs(path);
  const size_t begin = docs.find(kBegin);
  const size_t end = docs.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::string wanted = RoutesMarkdown(MakeRouteTable());
  const size_t at = begin + kBegin.size();
  if (std::getenv("PORTICO_WRITE_DOCS") != nullptr) {
    docs.replace(at, end - at, wanted);
    std::ofstream(path) << docs;
  }
  EXPECT_EQ(docs.substr(begin + kBegin.size(), docs.find(kEnd) - at), wanted)
      << "run api_test with PORTICO_WRITE_DOCS=1";
}

class Admission : public testing::Test {
 protected:
  Admission() {
    api_.api_key = "user";
    api_.admin_api_key = "admin";
    for (const auto& [path, access] :
         {std::pair("/open", Access::kOpen), {"/key", Access::kKey}, {"/admin", Access::kAdmin}}) {
      table_.Add("GET", path, access, nullptr);
      table_.Add("POST", path, access, nullptr);
    }
    table_.Add({.method = "POST", .path = "/form", .body = BodyType::kForm, .handler = nullptr});
    table_.Add({.method = "POST", .path = "/small", .max_body_bytes = 10, .handler = nullptr});
    table_.Add("GET", "/below/*", Access::kKey, nullptr);
  }

  net::HttpRequest Request(std::string method, std::string path, net::Headers headers = {}) {
    net::HttpRequest request;
    request.method = std::move(method);
    request.path = std::move(path);
    request.headers = std::move(headers);
    return request;
  }
  // 0: admitted.
  int StatusOf(net::HttpRequest request) {
    const net::HeadVerdict verdict = table_.Admit(request, api_);
    EXPECT_EQ(verdict.refusal.has_value(), request.route == nullptr || verdict.refusal.has_value());
    return verdict.refusal ? verdict.refusal->status : 0;
  }
  int Ask(std::string method, std::string path, net::Headers headers = {},
          const std::string& key = "user") {
    if (!key.empty()) headers.emplace_back("authorization", "Bearer " + key);
    return StatusOf(Request(std::move(method), std::move(path), std::move(headers)));
  }

  ApiContext api_;
  RouteTable table_;
};

TEST_F(Admission, EachRouteWantsItsKey) {
  EXPECT_EQ(Ask("GET", "/open", {}, ""), 0);
  EXPECT_EQ(Ask("GET", "/key", {}, ""), 401);
  EXPECT_EQ(Ask("GET", "/key", {}, "wrong"), 401);
  EXPECT_EQ(Ask("GET", "/key"), 0);
  EXPECT_EQ(Ask("HEAD", "/key"), 0);
  EXPECT_EQ(Ask("GET", "/admin"), 401);
  EXPECT_EQ(Ask("GET", "/admin", {}, "admin"), 0);
}

// Clients with the right key of --api-key were told that it is incorrect.
TEST_F(Admission, WhatNeedsTheAdminKeySaysSo) {
  const auto said = [&](const char* path, const std::string& key) {
    net::HttpRequest request = Request("POST", path, {{"authorization", "Bearer " + key}});
    const auto refusal = table_.Admit(request, api_).refusal;
    return refusal ? refusal->body : std::string();
  };
  EXPECT_THAT(said("/admin", "user"), HasSubstr("this needs the server's admin key"));
  EXPECT_THAT(said("/key", "wrong"), HasSubstr("incorrect or missing API key"));
  api_.admin_api_key.clear();
  EXPECT_EQ(said("/admin", "user"), "");
  EXPECT_THAT(said("/admin", "wrong"), HasSubstr("incorrect or missing API key"));
}

// Anthropic's clients were told that their key is missing.
TEST_F(Admission, AKeyMayBeInXApiKey) {
  EXPECT_EQ(Ask("GET", "/key", {{"x-api-key", "user"}}, ""), 0);
  EXPECT_EQ(Ask("GET", "/key", {{"x-api-key", "Bearer user"}}, ""), 401);
  EXPECT_EQ(Ask("GET", "/key", {{"x-api-key", ""}}, ""), 401);
  EXPECT_EQ(Ask("GET", "/admin", {{"x-api-key", "user"}}, ""), 401);
  EXPECT_EQ(Ask("GET", "/admin", {{"x-api-key", "admin"}}, "user"), 0);
  EXPECT_EQ(Ask("GET", "/key", {{"x-api-key", "of another server"}}), 0);
}

TEST_F(Admission, UnknownPathsAndMethodsAreNamed) {
  EXPECT_EQ(Ask("GET", "/none"), 404);
  EXPECT_EQ(Ask("GET", "/below/"), 404);
  EXPECT_EQ(Ask("GET", "/below/a/b"), 0);
  EXPECT_EQ(Ask("DELETE", "/key"), 405);
  EXPECT_EQ(Ask("OPTIONS", "/key"), 405);
  api_.cors_origin = "https://page.test";
  EXPECT_EQ(Ask("OPTIONS", "/key", {{"origin", "https://page.test"}}, ""), 204);
}

// Content types that only contained "json" passed, and so did what pages can send without asking.
TEST_F(Admission, ABodyIsOfTheTypeThatItsRouteTakes) {
  const auto post = [&](const std::string& path, const std::string& type) {
    return Ask("POST", path, {{"content-type", type}, {"content-length", "2"}});
  };
  for (const char* type : {"application/json", "Application/JSON; charset=utf-8", ""}) {
    EXPECT_EQ(post("/key", type), 0) << type;
  }
  for (const char* type : {"text/plain", "text/json", "application/x-json-not", "json",
                           "text/plain; a=application/json", "application/x-www-form-urlencoded",
                           "multipart/form-data; boundary=application/json"}) {
    EXPECT_EQ(post("/key", type), 415) << type;
  }
  EXPECT_EQ(post("/form", "multipart/form-data; boundary=x"), 0);
  EXPECT_EQ(post("/form", "application/json"), 415);
  // Nothing is sent, so it has no type.
  EXPECT_EQ(Ask("POST", "/key", {{"content-type", "text/plain"}, {"content-length", "0"}}), 0);
  EXPECT_EQ(Ask("POST", "/key", {{"content-type", "text/plain"}, {"transfer-encoding", "chunked"}}),
            415);
}

// "The body is not valid UTF-8" was all that a client heard that compresses its bodies.
TEST_F(Admission, ABodyInACodingIsRefusedByTheCodingsName) {
  const auto ask = [&](const char* method, const char* path, net::Headers headers) {
    headers.insert(headers.end(), {{"authorization", "Bearer user"}, {"content-length", "9"}});
    net::HttpRequest request = Request(method, path, std::move(headers));
    return table_.Admit(request, api_).refusal;
  };
  for (const char* coding : {"gzip", "GZIP", "br, gzip", "identity, zstd", "deflate"}) {
    for (const char* path : {"/key", "/form"}) {
      const auto refusal = ask("POST", path, {{"content-encoding", coding}});
      ASSERT_TRUE(refusal.has_value()) << path << coding;
      EXPECT_EQ(refusal->status, 415);
    }
  }
  const auto refusal = ask("POST", "/key", {{"content-encoding", "identity, zstd"}});
  EXPECT_THAT(refusal->body, HasSubstr("content-encoding: zstd"));
  EXPECT_THAT(refusal->headers, testing::Contains(testing::Pair("accept-encoding", "identity")));
  EXPECT_FALSE(ask("POST", "/key", {{"content-encoding", "identity"}}).has_value());
  EXPECT_FALSE(ask("POST", "/key", {{"content-encoding", ""}}).has_value());
  // Nobody reads it.
  EXPECT_FALSE(ask("GET", "/key", {{"content-encoding", "gzip"}}).has_value());
}

TEST_F(Admission, ADeclaredBodyFitsItsRoute) {
  const auto post = [&](const char* method, const char* path, const char* length) {
    return Ask(method, path, {{"content-length", length}});
  };
  EXPECT_EQ(post("POST", "/small", "10"), 0);
  EXPECT_EQ(post("POST", "/small", "11"), 413);
  EXPECT_EQ(post("GET", "/key", "65536"), 0);
  EXPECT_EQ(post("GET", "/key", "65537"), 413);
}

TEST_F(Admission, PagesOfOtherOriginsReachProbesAlone) {
  const net::Headers page = {{"host", "here"}, {"origin", "https://evil.test"}};
  EXPECT_EQ(Ask("GET", "/open", page, ""), 0);
  EXPECT_EQ(Ask("GET", "/key", page), 403);
  EXPECT_EQ(Ask("POST", "/admin", page, "admin"), 403);
  EXPECT_EQ(Ask("GET", "/key", {{"sec-fetch-site", "cross-site"}}), 403);
  api_.cors_origin = "https://evil.test";
  EXPECT_EQ(Ask("GET", "/key", page), 0);
  api_.browser = MakeBrowserRules("127.0.0.1", "");
  EXPECT_EQ(Ask("GET", "/open", {{"host", "evil.test"}}, ""), 403);
  EXPECT_EQ(Ask("GET", "/open", {{"host", "localhost:1"}}, ""), 0);
}

TEST_F(Admission, WhatComesDuringADrainReachesProbesAlone) {
  auto late = [&](const char* path) {
    net::HttpRequest request = Request("GET", path, {{"authorization", "Bearer user"}});
    request.late = true;
    return StatusOf(std::move(request));
  };
  EXPECT_EQ(late("/open"), 0);
  EXPECT_EQ(late("/key"), 503);
}

}  // namespace
}  // namespace portico::api
