#include <gmock/gmock.h>

#include "net/grpc/grpc_test_server.h"

namespace portico::net {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

const Http2Answer& Send(Http2TestClient& client, std::string_view method, std::string body,
                        Headers headers = {}) {
  return client.Ask("POST", method, GrpcHead(std::move(headers)), std::move(body));
}

TEST(GrpcCallInput, AMessageMayBeSplitAnywhere) {
  GrpcTestServer server;
  Http2TestClient client(server.port());
  const std::string wire = GrpcMessage("first") + GrpcMessage("second");
  for (size_t at = 1; at < wire.size(); ++at) {
    int id = client.Send("POST", "/test.Echo/Stream", GrpcHead(), wire.substr(0, at), false);
    client.Body(id, wire.substr(at), true);
    EXPECT_THAT(MessagesOf(client.Wait(id)), ElementsAre("[first]", "[second]")) << at;
  }
  int id = client.Send("POST", "/test.Echo/Stream", GrpcHead(), "", false);
  for (char byte : wire) client.Body(id, std::string(1, byte), false);
  client.Body(id, "", true);
  EXPECT_THAT(MessagesOf(client.Wait(id)), ElementsAre("[first]", "[second]"));
}

TEST(GrpcCallInput, AUnaryMethodTakesExactlyOneMessage) {
  GrpcTestServer server;
  Http2TestClient client(server.port());
  for (const std::string& body : {std::string(), GrpcMessage("a") + GrpcMessage("b")}) {
    const Http2Answer& answer = Send(client, "/test.Echo/Unary", body);
    EXPECT_EQ(CodeOf(answer), StatusCode::kUnimplemented);
    EXPECT_EQ(GrpcMessageOf(answer), "the method takes exactly one message");
  }
}

TEST(GrpcCallInput, AMessageCutOffByTheEndIsInternal) {
  GrpcTestServer server;
  Http2TestClient client(server.port());
  const std::string wire = GrpcMessage("whole");
  for (const char* method : {"/test.Echo/Unary", "/test.Echo/Stream"}) {
    for (size_t size : {size_t{3}, size_t{5}, wire.size() - 1}) {
      const Http2Answer& answer = Send(client, method, wire.substr(0, size));
      EXPECT_EQ(CodeOf(answer), StatusCode::kInternal) << method << size;
    }
  }
}

TEST(GrpcCallInput, ABadPrefixIsInternal) {
  GrpcTestServer server;
  Http2TestClient client(server.port());
  std::string unknown_flag = GrpcMessage("x");
  unknown_flag[0] = 7;
  EXPECT_EQ(CodeOf(Send(client, "/test.Echo/Unary", unknown_flag)), StatusCode::kInternal);
  EXPECT_EQ(CodeOf(Send(client, "/test.Echo/Stream", GrpcMessage("x") + unknown_flag)),
            StatusCode::kInternal);
  EXPECT_EQ(CodeOf(Send(client, "/test.Echo/Unary", GzippedGrpcMessage("x"))),
            StatusCode::kInternal);
}

TEST(GrpcCallInput, AMessageOverTheLimitIsRefusedAtItsPrefix) {
  ServerOptions options;
  options.grpc.max_message_bytes = 1000;
  GrpcTestServer server(std::move(options));
  Http2TestClient client(server.port());
  EXPECT_EQ(CodeOf(Send(client, "/test.Echo/Unary", GrpcMessage(std::string(1000, 'x')))),
            StatusCode::kOk);
  std::string prefix = GrpcMessage(std::string(1001, 'x')).substr(0, kGrpcPrefix);
  int id = client.Send("POST", "/test.Echo/Unary", GrpcHead(), prefix, false);
  EXPECT_EQ(CodeOf(client.Wait(id)), StatusCode::kResourceExhausted);
  EXPECT_THAT(GrpcMessageOf(client.answer(id)), HasSubstr("1000"));
  const Http2Answer& bomb =
      Send(client, "/test.Echo/Unary", GzippedGrpcMessage(std::string(100000, 'x')),
           {{"grpc-encoding", "gzip"}});
  EXPECT_EQ(CodeOf(bomb), StatusCode::kResourceExhausted);
}

TEST(GrpcCallInput, AMessageMayBeManyTimesTheFlowControlWindow) {
  GrpcTestServer server;
  Http2TestClient client(server.port());
  std::string big(5 << 20, 'x');
  int id = client.Send("POST", "/test.Echo/Unary", GrpcHead(), GrpcMessage(big));
  EXPECT_THAT(MessagesOf(client.Wait(id)), ElementsAre("[" + big + "]"));
}

TEST(GrpcCallInput, GzippedMessagesAreReadAndWrittenWhereBothSidesTakeThem) {
  GrpcMethods methods;
  methods.Add("/test.Zip/Get", [](std::unique_ptr<GrpcCall> call, std::string message) {
    call->CompressMessages();
    call->Write(message);
    call->Reply("x");  // does not get smaller
  });
  GrpcTestServer server(std::move(methods));
  Http2TestClient client(server.port());
  std::string text(10000, 'z');
  const Http2Answer& packed = Send(client, "/test.Zip/Get", GzippedGrpcMessage(text),
                                   {{"grpc-encoding", "gzip"}, {"grpc-accept-encoding", "gzip"}});
  EXPECT_EQ(packed.Header("grpc-encoding"), "gzip");
  EXPECT_LT(packed.body.size(), 200u);
  EXPECT_THAT(MessagesOf(packed), ElementsAre(text, "x"));
  const Http2Answer& plain = Send(client, "/test.Zip/Get", GrpcMessage(text),
                                  {{"grpc-encoding", "gzip"}, {"grpc-accept-encoding", "br"}});
  EXPECT_EQ(plain.Header("grpc-encoding"), "");
  EXPECT_THAT(MessagesOf(plain), ElementsAre(text, "x"));
}

// No service asked for compression, so that nobody got it.
TEST(GrpcCallInput, AClientThatCompressesGetsCompressedAnswers) {
  GrpcTestServer server;
  Http2TestClient client(server.port());
  const std::string text(10000, 'z');
  const Headers takes = {{"grpc-accept-encoding", "identity,deflate,gzip"}};
  const Http2Answer& plain = Send(client, "/test.Echo/Unary", GrpcMessage(text), takes);
  EXPECT_EQ(plain.Header("grpc-encoding"), "");
  EXPECT_THAT(MessagesOf(plain), ElementsAre("[" + text + "]"));
  const Headers uses = {{"grpc-encoding", "gzip"}, takes.front()};
  for (int i = 0; i < 3; ++i) {  // what compresses is used again
    const Http2Answer& packed = Send(client, "/test.Echo/Unary", GzippedGrpcMessage(text), uses);
    EXPECT_EQ(packed.Header("grpc-encoding"), "gzip");
    EXPECT_LT(packed.body.size(), 200u);
    EXPECT_THAT(MessagesOf(packed), ElementsAre("[" + text + "]"));
  }
}

TEST(GrpcCallInput, AnUnknownEncodingIsUnimplementedAndTheKnownOnesAreNamed) {
  GrpcTestServer server;
  Http2TestClient client(server.port());
  const Http2Answer& answer =
      Send(client, "/test.Echo/Unary", GrpcMessage("x"), {{"grpc-encoding", "snappy"}});
  EXPECT_EQ(CodeOf(answer), StatusCode::kUnimplemented);
  EXPECT_EQ(answer.Header("grpc-accept-encoding"), "identity,gzip");
  EXPECT_THAT(GrpcMessageOf(answer), HasSubstr("snappy"));
}

TEST(GrpcCallInput, BrokenGzipIsInternal) {
  GrpcTestServer server;
  Http2TestClient client(server.port());
  std::string wire = GzippedGrpcMessage("some text");
  wire[kGrpcPrefix + 12] = static_cast<char>(wire[kGrpcPrefix + 12] ^ 0x55);
  const Http2Answer& answer = Send(client, "/test.Echo/Unary", wire, {{"grpc-encoding", "gzip"}});
  EXPECT_EQ(CodeOf(answer), StatusCode::kInternal);
}

// A handler that reads one message when it is told to.
class SteppingReader {
 public:
  void Serve(std::unique_ptr<GrpcCall> call) {
    call_ = std::move(call);
    call_->Read(
        [this](std::string message) {
          read_.push_back(std::move(message));
          call_->PauseReading();
        },
        [this] {
          call_->Reply(std::to_string(read_.size()));
          call_.reset();
        });
  }
  GrpcCall* call() { return call_.get(); }
  size_t read() const { return read_.size(); }

 private:
  std::unique_ptr<GrpcCall> call_;
  std::vector<std::string> read_;
};

// Calls of /test.Step/Read go to the reader, with the least window that a stream has.
std::unique_ptr<GrpcTestServer> ServerOf(SteppingReader* reader) {
  GrpcMethods methods;
  methods.AddStreaming("/test.Step/Read", [reader](std::unique_ptr<GrpcCall> call) {
    reader->Serve(std::move(call));
  });
  ServerOptions options;
  options.http2.stream_window = 65535;
  return std::make_unique<GrpcTestServer>(std::move(methods), std::move(options));
}

TEST(GrpcCallInput, APausedReaderHoldsItsClientUpAndLosesNothing) {
  SteppingReader reader;
  const std::unique_ptr<GrpcTestServer> started = ServerOf(&reader);
  GrpcTestServer& server = *started;
  Http2TestClient client(server.port());
  client.ReadSettings();
  constexpr size_t kMessages = 50;
  std::string wire;
  for (size_t i = 0; i < kMessages; ++i) wire += GrpcMessage(std::string(10000, 'x'));
  int id = client.Send("POST", "/test.Step/Read", GrpcHead(), wire);
  // Another call on the same connection goes on.
  EXPECT_EQ(CodeOf(client.Ask("POST", "/test.Echo/Unary", GrpcHead(), GrpcMessage("x"))),
            StatusCode::kOk);
  size_t read = 0;
  server->OnShard([&] { read = reader.read(); });
  EXPECT_EQ(read, 1u);
  while (!client.answer(id).closed) {
    server->OnShard([&] {
      if (reader.call() != nullptr) reader.call()->ResumeReading();
    });
    client.Ping();
    int pongs = client.pongs();
    client.ReadUntil([&] { return client.pongs() > pongs || client.answer(id).closed; });
  }
  EXPECT_THAT(MessagesOf(client.answer(id)), ElementsAre(std::to_string(kMessages)));
}

// A header field as a literal of HPACK; both parts are short.
std::string Field(std::string_view name, std::string_view value) {
  std::string field(1, '\0');
  for (std::string_view part : {name, value}) {
    field.append(1, static_cast<char>(part.size())).append(part);
  }
  return field;
}

TEST(GrpcCallInput, AStreamThatOverrunsItsWindowIsResetAloneWithFlowControlError) {
  SteppingReader reader;
  const std::unique_ptr<GrpcTestServer> started = ServerOf(&reader);
  GrpcTestServer& server = *started;
  TestClient client(server.port());
  const std::string head = Field(":method", "POST") + Field(":scheme", "http") +
                           Field(":path", "/test.Step/Read") + Field(":authority", "x") +
                           Field("content-type", "application/grpc") + Field("te", "trailers");
  std::string bytes = std::string(kPreface) + Frame(4, 0, 0, "") + Frame(1, 4, 1, head);
  const std::string messages = GrpcMessage("x") + GrpcMessage(std::string(100000, 'x'));
  for (size_t at = 0; at < messages.size(); at += 16384) {
    bytes += Frame(0, 0, 1, messages.substr(at, 16384));
  }
  client.Send(bytes);
  const std::string reset = Frame(3, 0, 1, std::string("\0\0\0\x03", 4));
  EXPECT_THAT(client.ReadUntil(reset), EndsWith(reset));
  client.Send(Frame(6, 0, 0, "answered"));
  const std::string pong = Frame(6, 1, 0, "answered");
  EXPECT_THAT(client.ReadUntil(pong), EndsWith(pong));
}

TEST(GrpcCallInput, MessagesOfAConnectionThatAreTooLargeTogetherAreRefused) {
  ServerOptions options;
  options.max_body_bytes = 1 << 20;
  options.grpc.max_message_bytes = 1 << 20;
  GrpcTestServer server(std::move(options));
  Http2TestClient client(server.port());
  std::string most = GrpcMessage(std::string(1 << 20, 'x'));
  most.pop_back();
  std::vector<int> ids;
  for (int i = 0; i < 6; ++i) {
    ids.push_back(client.Send("POST", "/test.Echo/Unary", GrpcHead(), most, false));
  }
  auto refused = [&] {
    int count = 0;
    for (int id : ids) count += client.answer(id).closed ? 1 : 0;
    return count;
  };
  client.ReadUntil([&] { return refused() >= 2; });
  int served = 0;
  for (int id : ids) {
    if (!client.answer(id).closed) client.Body(id, "x", true);
    const bool ok = CodeOf(client.Wait(id)) == StatusCode::kOk;
    served += ok ? 1 : 0;
    EXPECT_TRUE(ok || CodeOf(client.answer(id)) == StatusCode::kResourceExhausted);
  }
  // A refusal makes room at once, within the same turn.
  EXPECT_GE(served, 3);
}

}  // namespace
}  // namespace portico::net
