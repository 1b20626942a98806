#include <gmock/gmock.h>

#include "net/grpc/grpc_test_server.h"

namespace portico::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

const Http2Answer& Unary(Http2TestClient& client, std::string_view method, std::string_view message,
                         Headers headers = {}) {
  return client.Ask("POST", method, GrpcHead(std::move(headers)), GrpcMessage(message));
}

TEST(GrpcCall, AUnaryCallGetsItsMessageAndOkInTheTrailers) {
  GrpcTestServer server;
  Http2TestClient client(server.port());
  const Http2Answer& answer = Unary(client, "/test.Echo/Unary", "hello");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Header("content-type"), "application/grpc");
  EXPECT_EQ(answer.Header("grpc-accept-encoding"), "identity,gzip");
  EXPECT_THAT(MessagesOf(answer), ElementsAre("[hello]"));
  EXPECT_THAT(answer.trailers, ElementsAre(Pair("grpc-status", "0")));
  EXPECT_EQ(answer.error, 0u);
}

TEST(GrpcCall, AStreamOfMessagesIsAnsweredOneByOne) {
  GrpcTestServer server;
  Http2TestClient client(server.port());
  int id = client.Send("POST", "/test.Echo/Stream", GrpcHead(), GrpcMessage("a"), false);
  client.ReadUntil([&] { return client.answer(id).body.size() == 8; });
  client.Body(id, GrpcMessage("") + GrpcMessage("c"), false);
  client.ReadUntil([&] { return client.answer(id).body.size() == 8 + 7 + 8; });
  client.Body(id, "", true);
  EXPECT_THAT(MessagesOf(client.Wait(id)), ElementsAre("[a]", "[]", "[c]"));
  EXPECT_EQ(CodeOf(client.answer(id)), StatusCode::kOk);
}

TEST(GrpcCall, MetadataGoesBothWaysAndBinaryValuesAreDecoded) {
  GrpcMethods methods;
  methods.Add("/test.Meta/Get", [](std::unique_ptr<GrpcCall> call, std::string) {
    call->SetInitialMetadata({{"x-initial", std::string(call->Metadata("x-text"))}});
    std::string all;
    for (const auto& [name, value] : call->metadata()) all += name + "=" + value + ";";
    call->Reply(all, {{"x-trailing-bin", std::string("\0\xff", 2)}});
  });
  GrpcTestServer server(std::move(methods));
  Http2TestClient client(server.port());
  const Http2Answer& answer = Unary(client, "/test.Meta/Get", "",
                                    {{"x-text", "t"},
                                     {"x-data-bin", "AQI,Aw=="},
                                     {"traceparent", "00-0af7651916cd43dd8448eb211c80319c-1-01"},
                                     {"grpc-timeout", "10S"}});
  EXPECT_THAT(MessagesOf(answer),
              ElementsAre("x-text=t;x-data-bin=\x01\x02;x-data-bin=\x03;"
                          "traceparent=00-0af7651916cd43dd8448eb211c80319c-1-01;"));
  EXPECT_EQ(answer.Header("x-initial"), "t");
  EXPECT_EQ(answer.Trailer("x-trailing-bin"), "AP8");
}

TEST(GrpcCall, MetadataThatCannotBeSentEndsTheCallInternal) {
  GrpcMethods methods;
  methods.Add("/test.Meta/Trailing", [](std::unique_ptr<GrpcCall> call, std::string) {
    call->Reply("x", {{"bad", "line\nbreak"}});
  });
  methods.Add("/test.Meta/Initial", [](std::unique_ptr<GrpcCall> call, std::string) {
    call->SetInitialMetadata({{"Bad Name", "x"}});
    call->Reply("x");
  });
  GrpcTestServer server(std::move(methods));
  Http2TestClient client(server.port());
  for (const char* method : {"/test.Meta/Trailing", "/test.Meta/Initial"}) {
    const Http2Answer& answer = Unary(client, method, "");
    EXPECT_EQ(CodeOf(answer), StatusCode::kInternal) << method;
    EXPECT_THAT(GrpcMessageOf(answer), HasSubstr("metadata \"")) << method;
  }
}

TEST(GrpcCall, WhatIsTooLargeForAHeadIsCutOrRefusedNotLost) {
  GrpcMethods methods;
  methods.Add("/test.Big/Message", [](std::unique_ptr<GrpcCall> call, std::string) {
    std::string text = "x";
    while (text.size() < 100000) text += "\u00fc";
    call->Finish(Error(StatusCode::kNotFound, text), {}, std::string(100000, 'd'));
  });
  methods.Add("/test.Big/Metadata", [](std::unique_ptr<GrpcCall> call, std::string) {
    call->Reply("x", {{"big", std::string(100000, 'x')}});
  });
  methods.Add("/test.Big/Many", [](std::unique_ptr<GrpcCall> call, std::string) {
    GrpcMetadata many;
    for (int i = 0; i < 200; ++i) many.emplace_back("x-" + std::to_string(i), "v");
    call->Reply("x", many);
  });
  GrpcTestServer server(std::move(methods));
  Http2TestClient client(server.port());
  const Http2Answer& message = Unary(client, "/test.Big/Message", "");
  EXPECT_EQ(CodeOf(message), StatusCode::kNotFound);
  EXPECT_EQ(GrpcMessageOf(message).size(), 2047u);
  EXPECT_EQ(message.Header("grpc-status-details-bin"), "");
  EXPECT_EQ(CodeOf(Unary(client, "/test.Big/Metadata", "")), StatusCode::kInternal);
  const Http2Answer& many = Unary(client, "/test.Big/Many", "");
  EXPECT_EQ(CodeOf(many), StatusCode::kOk);
  EXPECT_EQ(many.Trailer("x-199"), "v");
}

TEST(GrpcCall, AnErrorWithoutMessagesIsTrailersOnly) {
  GrpcMethods methods;
  methods.Add("/test.Error/Get", [](std::unique_ptr<GrpcCall> call, std::string) {
    call->Finish(Error(StatusCode::kInvalidArgument, "temperature: 5 % \n zu groß"),
                 {{"retry", "no"}}, "details");
  });
  GrpcTestServer server(std::move(methods));
  Http2TestClient client(server.port());
  const Http2Answer& answer = Unary(client, "/test.Error/Get", "");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.trailers.empty());
  EXPECT_EQ(answer.Header("grpc-status"), "3");
  EXPECT_EQ(answer.Header("grpc-message"), "temperature: 5 %25 %0A zu gro%C3%9F");
  EXPECT_EQ(answer.Header("grpc-status-details-bin"), EncodeBinaryValue("details"));
  EXPECT_EQ(answer.Header("retry"), "no");
}

TEST(GrpcCall, InitialMetadataIsNotLostWhereThereIsNoMessage) {
  GrpcMethods methods;
  methods.Add("/test.Error/Get", [](std::unique_ptr<GrpcCall> call, std::string) {
    call->SetInitialMetadata({{"x-initial", "1"}});
    call->Finish(Error(StatusCode::kNotFound, "none"));
  });
  GrpcTestServer server(std::move(methods));
  Http2TestClient client(server.port());
  const Http2Answer& answer = Unary(client, "/test.Error/Get", "");
  EXPECT_EQ(answer.Header("x-initial"), "1");
  EXPECT_EQ(answer.Trailer("grpc-status"), "5");
}

TEST(GrpcCall, UnknownMethodsAndServicesAreUnimplementedAndNamed) {
  GrpcTestServer server;
  Http2TestClient client(server.port());
  const std::pair<const char*, const char*> cases[] = {
      {"/test.Echo/Unari", "unknown method Unari of service test.Echo"},
      {"/test.Ech/Unary", "unknown service test.Ech"},
      {"/", "malformed method name \"/\""},
      {"/test.Echo", "malformed method name \"/test.Echo\""},
      {"/test.Echo/Unary?x=1", "unknown method Unary?x=1 of service test.Echo"},
  };
  for (const auto& [path, message] : cases) {
    const Http2Answer& answer = Unary(client, path, "x");
    EXPECT_EQ(CodeOf(answer), StatusCode::kUnimplemented) << path;
    EXPECT_EQ(GrpcMessageOf(answer), message);
  }
  EXPECT_THAT(MessagesOf(Unary(client, "/test.Echo/Unary", "alive")), ElementsAre("[alive]"));
}

TEST(GrpcCall, OnlyPostAndOnlyGrpcItselfAreCalls) {
  GrpcTestServer server;
  Http2TestClient client(server.port());
  EXPECT_EQ(client.Ask("GET", "/test.Echo/Unary", GrpcHead()).status, 405);
  const Http2Answer& web = client.Ask("POST", "/test.Echo/Unary",
                                      {{"content-type", "application/grpc-web"}}, GrpcMessage("x"));
  EXPECT_EQ(web.Header("content-type"), "text/plain");  // of the HTTP handler
  const Http2Answer& proto = client.Ask(
      "POST", "/test.Echo/Unary", {{"content-type", "application/grpc+proto"}}, GrpcMessage("x"));
  EXPECT_EQ(CodeOf(proto), StatusCode::kOk);
}

TEST(GrpcCall, AServerWithoutMethodsAnswers415) {
  TestServer server;
  Http2TestClient client(server.port());
  const Http2Answer& answer = Unary(client, "/test.Echo/Unary", "x");
  EXPECT_EQ(answer.status, 415);
  EXPECT_EQ(answer.Header("grpc-status"), "");
}

TEST(GrpcCall, TheAdmissionIsAskedBeforeTheMessageComes) {
  ServerOptions options;
  options.grpc.admit = [](const GrpcCall& call) {
    if (call.Metadata("authorization") == "Bearer key") return OkStatus();
    return Error(StatusCode::kUnauthenticated, "no key for " + call.method());
  };
  GrpcTestServer server(std::move(options));
  Http2TestClient client(server.port());
  int refused = client.Send("POST", "/test.Echo/Unary", GrpcHead(), "", false);
  EXPECT_EQ(CodeOf(client.Wait(refused)), StatusCode::kUnauthenticated);
  EXPECT_EQ(GrpcMessageOf(client.answer(refused)), "no key for /test.Echo/Unary");
  EXPECT_EQ(CodeOf(Unary(client, "/test.Echo/Unary", "", {{"authorization", "Bearer key"}})),
            StatusCode::kOk);
}

TEST(GrpcCall, AHeadOverItsLimitIsResourceExhausted) {
  ServerOptions options;
  options.max_head_bytes = 2000;
  GrpcTestServer server(std::move(options));
  Http2TestClient client(server.port());
  const Http2Answer& answer =
      Unary(client, "/test.Echo/Unary", "", {{"x-big", std::string(3000, 'x')}});
  EXPECT_EQ(CodeOf(answer), StatusCode::kResourceExhausted);
  EXPECT_THAT(GrpcMessageOf(answer), HasSubstr("2000 bytes"));
}

TEST(GrpcCall, MalformedHeadersAreNamed) {
  GrpcTestServer server;
  Http2TestClient client(server.port());
  const Http2Answer& timeout = Unary(client, "/test.Echo/Unary", "", {{"grpc-timeout", "soon"}});
  EXPECT_EQ(CodeOf(timeout), StatusCode::kInvalidArgument);
  EXPECT_THAT(GrpcMessageOf(timeout), HasSubstr("grpc-timeout"));
  const Http2Answer& binary = Unary(client, "/test.Echo/Unary", "", {{"x-data-bin", "a!"}});
  EXPECT_NE(CodeOf(binary), StatusCode::kOk);
  EXPECT_THAT(GrpcMessageOf(binary), HasSubstr("x-data-bin"));
}

TEST(GrpcCall, ADroppedCallAnswersInternalAlsoAfterItHasBegun) {
  GrpcMethods methods;
  methods.Add("/test.Drop/Early", [](std::unique_ptr<GrpcCall>, std::string) {});
  methods.Add("/test.Drop/Late",
              [](std::unique_ptr<GrpcCall> call, std::string) { call->Write("part"); });
  GrpcTestServer server(std::move(methods));
  Http2TestClient client(server.port());
  EXPECT_EQ(CodeOf(Unary(client, "/test.Drop/Early", "")), StatusCode::kInternal);
  const Http2Answer& late = Unary(client, "/test.Drop/Late", "");
  EXPECT_THAT(MessagesOf(late), ElementsAre("part"));
  EXPECT_EQ(CodeOf(late), StatusCode::kInternal);
}

TEST(GrpcCall, WhatOneTurnWritesLeavesTogetherAndInOrder) {
  GrpcMethods methods;
  methods.Add("/test.Many/Get", [](std::unique_ptr<GrpcCall> call, std::string) {
    for (int i = 0; i < 1000; ++i) call->Write(std::to_string(i));
    call->Finish(OkStatus());
  });
  GrpcTestServer server(std::move(methods));
  Http2TestClient client(server.port());
  std::vector<std::string> messages = MessagesOf(Unary(client, "/test.Many/Get", ""));
  ASSERT_EQ(messages.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(messages[static_cast<size_t>(i)], std::to_string(i));
}

}  // namespace
}  // namespace portico::net
