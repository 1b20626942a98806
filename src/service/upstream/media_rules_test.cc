#include "service/upstream/media_rules.h"

#include <gtest/gtest.h>

namespace portico {
namespace {

MediaRules Listing(std::vector<std::string> domains) {
  MediaRules rules;
  rules.domains = std::move(domains);
  return rules;
}

TEST(MediaRulesTest, ReadsWhatIsListed) {
  const MediaRules rules = Listing({"example.org", "*.sounds.net", "1.2.3.4", "2606:4700::1"});
  const auto plain = ReadMediaUrl(rules, "http://Example.org/a/b.wav?x=1#part");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->host, "example.org");
  EXPECT_EQ(plain->port, 80);
  EXPECT_EQ(plain->target, "/a/b.wav?x=1");
  EXPECT_FALSE(plain->tls);
  const auto secure = ReadMediaUrl(rules, "HTTPS://a.b.sounds.net:8443?q");
  ASSERT_TRUE(secure.ok()) << secure.status();
  EXPECT_EQ(secure->target, "/?q");
  EXPECT_EQ(secure->port, 8443);
  EXPECT_TRUE(secure->tls);
  EXPECT_TRUE(ReadMediaUrl(rules, "http://1.2.3.4/").ok());
  EXPECT_EQ(ReadMediaUrl(rules, "http://[2606:4700::1]:81/")->host, "2606:4700::1");
  EXPECT_TRUE(ReadMediaUrl(Listing({"*"}), "http://anything.example/").ok());
}

TEST(MediaRulesTest, RefusesWhatIsNotListedOrNoAddress) {
  const MediaRules rules = Listing({"example.org", "*.sounds.net"});
  for (const char* url : {"http://example.com/",
                          "http://xexample.org/",
                          "http://sounds.net/",
                          "http://evilsounds.net/",
                          "http://example.org.evil.net/",
                          "http://example.org@evil.net/",
                          "http://evil.net#example.org",
                          "http://user:key@example.org/",
                          "http://example.org:0/",
                          "http://example.org:99999/",
                          "http://example.org:8x/",
                          "http://",
                          "http:/example.org/",
                          "http:example.org",
                          "//example.org/",
                          "ftp://example.org/",
                          "gopher://example.org/",
                          "javascript:1",
                          "",
                          "a.wav",
                          "file:///etc/passwd",
                          "/etc/passwd",
                          "http://example.org/a b",
                          "http://example.org/\r\nx: y",
                          "http://exämple.org/",
                          "http://[::1/",
                          "http://[example.org]/"}) {
    const auto read = ReadMediaUrl(rules, url);
    ASSERT_FALSE(read.ok()) << url;
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument) << url;
  }
  EXPECT_FALSE(ReadMediaUrl(MediaRules{}, "http://example.org/").ok());
  EXPECT_FALSE(ReadMediaUrl(rules, "http://example.org/" + std::string(5000, 'x')).ok());
}

TEST(MediaRulesTest, ReadsPathsOfFilesWhereTheyAreAllowed) {
  MediaRules rules;
  rules.local_folder = "/srv/sounds";
  EXPECT_EQ(ReadMediaUrl(rules, "file:///srv/sounds/a%20b.wav")->file, "/srv/sounds/a b.wav");
  EXPECT_EQ(ReadMediaUrl(rules, "file://localhost/srv/a.wav")->file, "/srv/a.wav");
  EXPECT_EQ(ReadMediaUrl(rules, "/srv/sounds/a%20b.wav")->file, "/srv/sounds/a%20b.wav");
  for (const char* url :
       {"file://host/srv/a.wav", "file:a.wav", "file:///a%00b", "file:///a%2", "file:///a%zz"}) {
    EXPECT_FALSE(ReadMediaUrl(rules, url).ok()) << url;
  }
}

TEST(MediaRulesTest, FollowsRedirectsWithinTheRules) {
  MediaRules rules = Listing({"example.org", "other.org"});
  rules.local_folder = "/srv";
  const MediaUrl from = *ReadMediaUrl(rules, "https://example.org:444/a/b?c=/d");
  EXPECT_EQ(ReadRedirect(rules, from, "x.wav")->target, "/a/x.wav");
  EXPECT_EQ(ReadRedirect(rules, from, "/x.wav?u=http://y")->target, "/x.wav?u=http://y");
  EXPECT_EQ(ReadRedirect(rules, from, "/x.wav")->port, 444);
  EXPECT_EQ(ReadRedirect(rules, from, "//other.org/x")->host, "other.org");
  EXPECT_EQ(ReadRedirect(rules, from, "https://other.org/x")->port, 443);
  for (const char* to :
       {"http://example.org/", "https://evil.net/", "//evil.net/", "file:///srv/a", "/a b"}) {
    EXPECT_FALSE(ReadRedirect(rules, from, to).ok()) << to;
  }
}

TEST(MediaRulesTest, EveryAddressOfAHostMustBePublicOrListed) {
  const MediaRules rules = Listing({"*", "10.0.0.5"});
  EXPECT_TRUE(CheckMediaHost(rules, {"8.8.8.8", "2606:4700::1"}).ok());
  EXPECT_TRUE(CheckMediaHost(rules, {"10.0.0.5"}).ok());
  EXPECT_FALSE(CheckMediaHost(rules, {"8.8.8.8", "127.0.0.1"}).ok());
  EXPECT_FALSE(CheckMediaHost(rules, {"10.0.0.6"}).ok());
  EXPECT_FALSE(CheckMediaHost(rules, {"::1"}).ok());
}

}  // namespace
}  // namespace portico
