#include "router/proxy/hide_addresses.h"

#include <gtest/gtest.h>

#include <iterator>
#include <random>

#include "router/policy/make_policy.h"

namespace portico::router {
namespace {

class HideAddressesTest : public testing::Test {
 protected:
  HideAddressesTest() {
    for (const char* url : {"http://10.0.0.1:30000", "http://A.cluster.local:30000",
                            "http://worker-0:30000", "grpc://[fd00::7]:30001"}) {
      EXPECT_TRUE(registry_.Add(*ParseWorkerUrl(url), {}).ok());
    }
  }
  std::string Hide(std::string text) { return HideAddresses(std::move(text), *registry_.set()); }

 private:
  WorkerRegistry registry_{[](Role, const std::string&) -> std::shared_ptr<Policy> {
    return *MakePolicy("random", {});
  }};
};

TEST_F(HideAddressesTest, HidesWhatLibrariesSayOfConnections) {
  EXPECT_EQ(Hide("Cannot connect to host a.Cluster.local:30000 ssl:default [Connect call failed "
                 "('10.9.8.7', 30000)]"),
            "Cannot connect to host worker ssl:default [Connect call failed ('worker', 30000)]");
  EXPECT_EQ(Hide("HTTPConnectionPool(host='10.9.8.7', port=30000): Max retries exceeded with url: "
                 "/generate"),
            "HTTPConnectionPool(host='worker', port=30000): Max retries exceeded with url: "
            "/generate");
  EXPECT_EQ(Hide("last error: UNKNOWN: ipv4:127.0.0.1:50051: Failed to connect"),
            "last error: UNKNOWN: ipv4:worker: Failed to connect");
  EXPECT_EQ(Hide("ipv6:%5B::1%5D:50051: refused"), "ipv6:worker: refused");
  EXPECT_EQ(Hide("unix:/tmp/w.sock: refused, ipc:///tmp/x"), "worker: refused, worker");
  EXPECT_EQ(Hide("tcp://10.0.0.2:5557"), "tcp://worker");
  EXPECT_EQ(Hide("POST http://worker-0/generate and http://localhost:1/x"),
            "POST http://worker/generate and http://worker/x");
  EXPECT_EQ(Hide("[fd00::7]:30001, fd00::7 and ('fe80::1', 80, 0, 0)"),
            "worker, worker and ('worker', 80, 0, 0)");
}

TEST_F(HideAddressesTest, FindsThemBehindEscapes) {
  EXPECT_EQ(Hide(R"({"message":"failed:\n10.0.0.1:30000\t\u002210.0.0.1\u0022"})"),
            R"({"message":"failed:\nworker\t\u0022worker\u0022"})");
  EXPECT_EQ(Hide(R"({"url":"http:\/\/10.0.0.1:30000\/x?u=http%3A%2F%2F10.0.0.1%3A30000"})"),
            R"({"url":"http:\/\/worker\/x?u=http%3A%2F%2Fworker"})");
  EXPECT_EQ(Hide(R"(\n[::1]:5 \nfd00::7: x)"), R"(\nworker \nworker: x)");
  EXPECT_EQ(Hide(R"("\"10.9.8.7\", 80")"), R"("\"worker\", 80")");
}

TEST_F(HideAddressesTest, LeavesWhatIsNoAddress) {
  for (const char* text : {"",
                           "worker-0 and localhost are words",
                           "torch 2.4.1, CUDA 12.4.0.1",
                           "at 12:30:45",
                           "line 10:5 of a.py:7",
                           "std::string::npos",
                           "status:500",
                           "http://example.com:8080/x.png",
                           R"({"error":{"message":"x","code":null}})",
                           "::",
                           "a[::2]",
                           "a[::]",
                           ":",
                           "[",
                           "[]",
                           "%5B",
                           "%",
                           "\\",
                           "\\n",
                           "\\u12",
                           "unix: ipc",
                           "...",
                           "-"}) {
    EXPECT_EQ(Hide(text), text);
  }
}

TEST_F(HideAddressesTest, EndsAtTheEndOfTheSentence) {
  EXPECT_EQ(Hide("It was 10.0.0.1."), "It was worker.");
  EXPECT_EQ(Hide("It was 10.0.0.1:30000."), "It was worker.");
  EXPECT_EQ(Hide("10.0.0.1"), "worker");
  EXPECT_EQ(Hide("10.0.0.12:1 10.0.0.12"), "worker 10.0.0.12");
}

TEST_F(HideAddressesTest, EndsForAnyText) {
  constexpr std::string_view kPieces[] = {"[",  "]",  ":",   "%", "%5B",    "%5d", ".",     "'",
                                          "\\", "u",  "\\n", "0", "127",    ".0.", "::",    "fd",
                                          ", ", "//", "1",   "a", "unix:/", "-",   "port=", "\""};
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (size_t n = random() % 12; n > 0; --n) text += kPieces[random() % std::size(kPieces)];
    const std::string copy(text.data(), text.size());
    EXPECT_LE(Hide(copy).size(), 6 * copy.size() + 6) << copy;
  }
}

}  // namespace
}  // namespace portico::router
