#include "api/gateway/worker_fields.h"

#include <gtest/gtest.h>

#include <string>

namespace portico::api {
namespace {

std::string Refused(const std::string& fields) {
  return std::string(FieldOf(ReadWorkerSpec(R"({"url":"http://a:1",)" + fields + "}").status()));
}

TEST(WorkerFieldsTest, TheFieldsOfPeersMeanWhatTheyDoThere) {
  const auto spec = ReadWorkerSpec(
      R"({"url":"a:1","connection_mode":"grpc","runtime":"sglang","priority":7,"cost":0.5,
          "model_id":"m","models":["n",{"id":"o","context_length":null}],"labels":{"zone":"x"},
          "health":null,"api_key":"k"})");
  ASSERT_TRUE(spec.ok()) << MessageOf(spec.status());
  EXPECT_EQ(spec->protocol, router::Protocol::kGrpc);
  EXPECT_EQ(spec->runtime, "sglang");
  EXPECT_EQ(spec->priority, 7);
  EXPECT_EQ(spec->cost, 0.5);
  EXPECT_EQ(spec->models, (std::vector<std::string>{"m", "n", "o"}));
  EXPECT_EQ(spec->labels.front().second, "x");
  EXPECT_EQ(spec->api_key, "k");
  EXPECT_EQ(ReadWorkerSpec(R"({"url":"http://a:1"})")->priority, 50);
  EXPECT_EQ(ReadWorkerSpec(R"({"url":"http://a:1"})")->cost, 1);
}

TEST(WorkerFieldsTest, WhatOneWorkerCannotHaveIsRefusedByItsName) {
  for (const char* field :
       {"health", "tokenizer_path", "chat_template", "reasoning_parser", "tool_parser", "dp_rank",
        "resilience", "http_pool", "kv_role", "provider", "no_such_field"}) {
    EXPECT_EQ(Refused("\"" + std::string(field) + "\":1"), field);
  }
  const auto refused = ReadWorkerSpec(R"({"url":"http://a:1","tokenizer_path":"/t"})");
  EXPECT_NE(MessageOf(refused.status()).find("models"), std::string_view::npos);
}

TEST(WorkerFieldsTest, AValueThatIsNoneIsRefusedByItsFieldsName) {
  EXPECT_EQ(Refused(R"("priority":-1)"), "priority");
  EXPECT_EQ(Refused(R"("priority":4294967296)"), "priority");
  EXPECT_EQ(Refused(R"("cost":-0.5)"), "cost");
  EXPECT_EQ(Refused(R"("cost":"1")"), "cost");
  EXPECT_EQ(Refused(R"("runtime":"trtllm")"), "runtime");
  EXPECT_EQ(Refused(R"("runtime_type":"mlx")"), "runtime_type");
  EXPECT_EQ(Refused(R"("connection_mode":"zmq")"), "connection_mode");
  EXPECT_EQ(Refused(R"("connection_mode":"grpc")"), "connection_mode");
  EXPECT_EQ(Refused(R"("connection_mode":"HTTP")"), "");
  EXPECT_EQ(Refused(R"("models":[{"id":"m","chat_template":"x"}])"), "models");
  EXPECT_EQ(Refused(R"("models":[{"name":"m"}])"), "models");
  EXPECT_EQ(Refused(R"("labels":{"a":null})"), "labels");
}

TEST(WorkerFieldsTest, AChangeLeavesWhatItDoesNotName) {
  router::WorkerSpec spec = *router::ParseWorkerUrl("http://a:1");
  spec.api_key = "old";
  spec.max_requests = 4;
  spec.labels = {{"zone", "x"}, {"gpu", "h100"}};
  router::Worker worker(spec);
  const auto change = [&](std::string_view body) {
    const auto read = ReadWorkerChange(body);
    if (read.ok()) worker.Change(*read);
    return read.ok();
  };
  EXPECT_TRUE(change(R"({"priority":3,"labels":{"zone":"y","gpu":null,"rack":"1"}})"));
  EXPECT_EQ(worker.priority(), 3);
  EXPECT_EQ(worker.cost(), 1);
  EXPECT_EQ(worker.api_key(), "old");
  EXPECT_EQ(worker.max_requests(), 4);
  EXPECT_EQ(worker.labels(),
            (std::vector<std::pair<std::string, std::string>>{{"zone", "y"}, {"rack", "1"}}));
  EXPECT_TRUE(change(R"({"api_key":"","cost":2,"max_requests":0,"draining":true})"));
  EXPECT_EQ(worker.api_key(), "");
  EXPECT_EQ(worker.cost(), 2);
  EXPECT_EQ(worker.max_requests(), 0);
  EXPECT_TRUE(worker.draining());
  EXPECT_EQ(worker.spec().api_key, "old") << "a reload compares with it";
}

TEST(WorkerFieldsTest, AChangeThatCannotBeMadeWhollyIsNotMade) {
  for (const char* body :
       {"{}", "[]", R"({"draining":1})", R"({"url":"http://b:1","priority":1})",
        R"({"priority":1,"health":{}})", R"({"api_key":"a\nb"})", R"({"labels":{"a":1}})"}) {
    EXPECT_FALSE(ReadWorkerChange(body).ok()) << body;
  }
}

}  // namespace
}  // namespace portico::api
