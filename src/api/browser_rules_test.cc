#include "api/browser_rules.h"

#include <gtest/gtest.h>

namespace portico::api {
namespace {

net::HttpRequest WithHeaders(net::Headers headers) {
  net::HttpRequest request;
  request.headers = std::move(headers);
  return request;
}

bool Answers(const BrowserRules& rules, const std::string& host) {
  return CheckHost(WithHeaders({{"host", host}}), rules).ok();
}

bool Lets(net::Headers headers, const std::string& cors_origin = "") {
  headers.emplace_back("host", "localhost:30000");
  return CheckPage(WithHeaders(std::move(headers)), {&cors_origin, 1}).ok();
}

// A page that rebinds its own name to 127.0.0.1 is of the server's origin in the browser's eyes.
TEST(BrowserRules, AServerOnTheLoopbackAddressAnswersToItsNamesOnly) {
  const BrowserRules rules = MakeBrowserRules("127.0.0.1", "portico.test, other.test");
  for (const char* host :
       {"localhost", "LOCALHOST:30000", "127.0.0.1:30000", "127.1.2.3", "[::1]", "[::1]:30000",
        "api.localhost:1", "localhost.:80", "portico.test:80", "Other.Test"}) {
    EXPECT_TRUE(Answers(rules, host)) << host;
  }
  for (const char* host : {"evil.test", "evil.test:30000", "127.evil.test", "localhost.evil.test",
                           "notlocalhost", "0.0.0.0", "[::2]", "127.0.0.1.nip.io", "a:b:c"}) {
    EXPECT_FALSE(Answers(rules, host)) << host;
  }
  EXPECT_TRUE(CheckHost(WithHeaders({}), rules).ok());  // HTTP/1.0
}

TEST(BrowserRules, AServerOnAllAddressesAnswersToAnyName) {
  for (const char* address : {"0.0.0.0", "::", "192.168.1.7", "portico.example"}) {
    EXPECT_TRUE(Answers(MakeBrowserRules(address, ""), "evil.test")) << address;
  }
  for (const char* address : {"localhost", "127.0.0.1", "::1", "[::1]", "127.0.0.9"}) {
    EXPECT_FALSE(Answers(MakeBrowserRules(address, ""), "evil.test")) << address;
  }
  EXPECT_TRUE(Answers(MakeBrowserRules("127.0.0.1", "*"), "evil.test"));
}

TEST(BrowserRules, PagesOfOtherOriginsAreRefused) {
  EXPECT_TRUE(Lets({}));
  EXPECT_TRUE(Lets({{"origin", "http://localhost:30000"}}));
  EXPECT_TRUE(Lets({{"sec-fetch-site", "none"}}));
  EXPECT_TRUE(Lets({{"sec-fetch-site", "same-origin"}}));
  EXPECT_FALSE(Lets({{"origin", "https://evil.test"}}));
  EXPECT_FALSE(Lets({{"origin", "http://localhost:3000"}}));
  EXPECT_FALSE(Lets({{"origin", "null"}}));
  EXPECT_FALSE(Lets({{"sec-fetch-site", "cross-site"}}));
  EXPECT_FALSE(Lets({{"sec-fetch-site", "same-site"}}));
  EXPECT_FALSE(Lets({{"origin", "https://evil.test"}, {"sec-fetch-site", "none"}}));
  EXPECT_FALSE(Lets({{"origin", ""}, {"sec-fetch-site", "cross-site"}}));
}

// A proxy that passes its own address as the host makes the page's origin look foreign.
TEST(BrowserRules, APageOfTheServerMayCallThroughAProxy) {
  EXPECT_TRUE(Lets({{"origin", "https://portico.test"}, {"sec-fetch-site", "same-origin"}}));
}

TEST(BrowserRules, CorsAllowsOneOriginOrAll) {
  const net::Headers page = {{"origin", "https://page.test"}, {"sec-fetch-site", "cross-site"}};
  EXPECT_TRUE(Lets(page, "https://page.test"));
  EXPECT_TRUE(Lets(page, "*"));
  EXPECT_FALSE(Lets(page, "https://other.test"));
  EXPECT_FALSE(Lets({{"sec-fetch-site", "cross-site"}}, "https://page.test"));
  EXPECT_TRUE(Lets({{"sec-fetch-site", "cross-site"}}, "*"));
}

}  // namespace
}  // namespace portico::api
