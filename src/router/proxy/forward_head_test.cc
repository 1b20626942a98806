#include "router/proxy/forward_head.h"

#include <gtest/gtest.h>

#include <utility>

namespace portico::router {
namespace {

WorkerSpec Spec(const std::string& url, const std::string& key = "") {
  WorkerSpec spec = *ParseWorkerUrl(url);
  spec.api_key = key;
  return spec;
}

TEST(ForwardHeadTest, KeepsTheRequestAndLeavesTheConnectionBehind) {
  net::HttpRequest request;
  request.method = "POST";
  request.path = "/v1/chat/a b/\xc3\xa9%2F";
  request.query = "x=1&y=%20";
  request.headers = {{"host", "gateway"},
                     {"content-type", "application/json"},
                     {"connection", "x-hop, te"},
                     {"x-hop", "1"},
                     {"transfer-encoding", "chunked"},
                     {"expect", "100-continue"},
                     {"authorization", "Bearer c"},
                     {"traceparent", "00-aa-bb-01"},
                     {"origin", "http://gateway"},
                     {"sec-fetch-site", "same-origin"},
                     {"x-evil", "a\r\nb: c"}};
  const Worker worker(Spec("http://[::1]:9/base/"));
  EXPECT_EQ(MakeRequestHead({.request = request,
                             .worker = worker,
                             .request_id = "id",
                             .has_body = true,
                             .body_bytes = 3}),
            "POST /base/v1/chat/a%20b/%C3%A9%2F?x=1&y=%20 HTTP/1.1\r\nhost: [::1]:9\r\n"
            "content-type: application/json\r\nauthorization: Bearer c\r\n"
            "traceparent: 00-aa-bb-01\r\nx-request-id: id\r\ncontent-length: 3\r\n\r\n");
}

TEST(ForwardHeadTest, APathHasTheEscapesThatItCameWith) {
  // A percent sign passed as it was: `%252e%252e` became `%2e%2e` on its way.
  constexpr std::pair<const char*, const char*> kPaths[] = {
      {"/v1/%2e%2e/x", "/v1/%252e%252e/x"},
      {"/v1/a%b", "/v1/a%25b"},
      {"/v1/100%", "/v1/100%25"},
      {"/v1/%2", "/v1/%252"},
      {"/v1/models/a%2Fb%2F", "/v1/models/a%2Fb%2F"},
      {"/v1/%%2F2F", "/v1/%25%2F2F"}};
  for (const auto& [path, written] : kPaths) {
    std::string out;
    AppendPath(path, &out);
    EXPECT_EQ(out, written);
  }
}

TEST(ForwardHeadTest, SegmentsOfDotsAreFoundBetweenSlashesOfEveryKind) {
  for (const char* path : {"/v1/../x", "/v1/./x", "/v1/..", "/v1/.", "..", "/v1/..%2Fx",
                           "/v1/a%2F..%2Fx", "/v1%2F..", "/v1/\\..\\x", "/v1/a\\."}) {
    EXPECT_TRUE(HasDotSegment(path)) << path;
  }
  for (const char* path : {"", "/", "/v1/...", "/v1/.a", "/v1/a.", "/v1/a..b/c", "/v1/..%252Fx",
                           "/v1/models/a%2Fb.gguf", "/v1//x", "/v1/%2F"}) {
    EXPECT_FALSE(HasDotSegment(path)) << path;
  }
}

TEST(ForwardHeadTest, SeveralLinesOfConnectionAreOne) {
  // What only the second one named went on to the worker.
  net::HttpRequest request;
  request.method = "GET";
  request.path = "/";
  request.headers = {{"connection", "x-a"},
                     {"connection", "close, x-b"},
                     {"x-a", "1"},
                     {"x-b", "2"},
                     {"x-c", "3"}};
  const Worker worker(Spec("http://a:1"));
  EXPECT_EQ(MakeRequestHead({.request = request, .worker = worker}),
            "GET / HTTP/1.1\r\nhost: a:1\r\nx-c: 3\r\n\r\n");
  net::ResponseHead head;
  head.headers = request.headers;
  const net::HttpResponse response = MakeResponseHead(head, worker);
  ASSERT_EQ(response.headers.size(), 1u);
  EXPECT_EQ(response.headers[0].first, "x-c");
}

TEST(ForwardHeadTest, AWorkersOwnKeyReplacesTheClients) {
  net::HttpRequest request;
  request.method = "GET";
  request.path = "/";
  request.headers = {{"authorization", "Bearer client"}, {"x-api-key", "client"}};
  const Worker with(Spec("http://a:1", "own"));
  const Worker without(Spec("http://a:1"));
  EXPECT_NE(MakeRequestHead({.request = request, .worker = with, .key = "all"}).find("Bearer own"),
            std::string::npos);
  const std::string all = MakeRequestHead({.request = request, .worker = without, .key = "all"});
  EXPECT_NE(all.find("Bearer all"), std::string::npos);
  EXPECT_EQ(all.find("client"), std::string::npos) << all;
  // Where the gateway has no key, both are the worker's to judge.
  const std::string passed = MakeRequestHead({.request = request, .worker = without});
  EXPECT_NE(passed.find("authorization: Bearer client\r\n"), std::string::npos);
  EXPECT_NE(passed.find("x-api-key: client\r\n"), std::string::npos);
}

TEST(ForwardHeadTest, AKeyThatTheGatewayKeepsIsNotForwarded) {
  // Workers got the keys of operators, and those that are only named the key of the workers that launch had started.
  const std::vector<std::string> kept = {"ops", "started"};
  const Worker worker(Spec("http://a:1"));
  const auto headers = [&](net::Headers shown) {
    net::HttpRequest request;
    request.method = "GET";
    request.path = "/";
    request.headers = std::move(shown);
    return MakeRequestHead({.request = request, .worker = worker, .kept_keys = kept});
  };
  const std::string none = "GET / HTTP/1.1\r\nhost: a:1\r\n\r\n";
  EXPECT_EQ(headers({{"authorization", "Bearer ops"}, {"x-api-key", "started"}}), none);
  EXPECT_EQ(headers({{"authorization", "bEARER started"}}), none);
  // The other header may be the client's own, and is the worker's to judge.
  EXPECT_EQ(headers({{"authorization", "Bearer client"}, {"x-api-key", "ops"}}),
            "GET / HTTP/1.1\r\nhost: a:1\r\nauthorization: Bearer client\r\n\r\n");
  EXPECT_EQ(headers({{"x-other", "ops"}, {"x-api-key", "ops2"}}),
            "GET / HTTP/1.1\r\nhost: a:1\r\nx-other: ops\r\nx-api-key: ops2\r\n\r\n");
}

TEST(ForwardHeadTest, AnAnswerDoesNotNameTheWorker) {
  // What a worker that is a gateway itself says of its own workers went on to the client.
  net::ResponseHead head;
  head.status = 201;
  head.headers = {{"content-type", "text/x"},
                  {"server", "uvicorn"},
                  {"location", "http://10.0.0.7:3000/x"},
                  {"x-kept", "1"},
                  {"keep-alive", "5"},
                  {"x-portico-worker", "w1"},
                  {"x-portico-prefill-worker", "w2"},
                  {"content-length", "4"}};
  const Worker worker(Spec("http://10.0.0.7:3000"));
  const net::HttpResponse response = MakeResponseHead(head, worker);
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.content_type, "text/x");
  ASSERT_EQ(response.headers.size(), 1u);
  EXPECT_EQ(response.headers[0].first, "x-kept");
}

}  // namespace
}  // namespace portico::router
