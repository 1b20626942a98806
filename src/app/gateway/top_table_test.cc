#include "app/gateway/top_table.h"

#include <gtest/gtest.h>

namespace portico {
namespace {

std::string Answer(int total) {
  return R"({"workers": [
    {"id": "w1", "url": "http://a:1", "status": "healthy", "circuit_breaker": "closed", "load": 4, "draining": false,
     "requests_total": )" +
         std::to_string(total) +
         R"json(, "model_id": "qwen", "reported_load": {"running_requests": 3, "waiting_requests": 0,
     "token_usage": 0.125, "cache_hit_rate": 0.5, "throughput": 81.4}},
    {"id": "w2", "url": "http://b:1", "status": "unhealthy", "circuit_breaker": "open", "load": 0, "draining": true,
     "requests_total": 7, "model_id": null, "reason": "it cannot be reached (Connection refused)",
     "reported_load": {"running_requests": 9, "token_usage": 1, "throughput": 40}}],
   "total": 2, "stats": {"healthy_workers": 1, "policy": "cost", "queued": 2}
})json";
}

TEST(TopTable, ShowsEachWorkerAndTheRateSinceTheAnswerBefore) {
  TopTable table;
  const TimePoint now = Clock::now();
  table.Render("http://g", *Json::Parse(Answer(10)), now, 200);
  EXPECT_EQ(table.Render("http://g", *Json::Parse(Answer(30)), now + std::chrono::seconds(2), 200),
            "http://g  1 of 2 workers healthy  10.0 req/s  2 queued  policy cost\n"
            "\n"
            "WORKER  STATE                BREAKER  FLIGHT  REQ/S  RUNNING  WAITING   KV  HITS  "
            "TOK/S  MODEL  URL\n"
            "w1      healthy              closed        4   10.0        3        0  12%   50%     "
            "81  qwen   http://a:1\n"
            "w2      unhealthy, draining  open          0    0.0        -        -    -     -      "
            "-  -      http://b:1\n"
            "\n"
            "w2: it cannot be reached (Connection refused)\n");
}

TEST(TopTable, CutsLinesToTheTerminalAndKeepsControlCharactersOut) {
  TopTable table;
  const Json answer =
      *Json::Parse(R"({"workers": [{"id": "\u001b[2Jw", "status": 5, "url": "http://é"}]})");
  const std::string text = table.Render("http://g", answer, Clock::now(), 20);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    EXPECT_LE(end - at, 20u);
    at = end + 1;
  }
}

TEST(TopTable, SaysThatAnotherServerIsNoGateway) {
  TopTable table;
  for (const char* answer : {"[]", "{}", R"({"workers": 3})"}) {
    EXPECT_NE(
        table.Render("http://g", *Json::Parse(answer), Clock::now(), 80).find("not as a gateway"),
        std::string::npos);
  }
}

}  // namespace
}  // namespace portico
