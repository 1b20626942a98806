// gRPC's interoperability cases on our client layer, for gRPC's official test servers:
//   grpc_interop_client --port 10000 --case large_unary [--host H] [--tls --ca-file F --server-name N]
// Ends with 0 where the case passes, and with 1 and what was wrong where it does not.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "grpc/testing/test.pb.h"
#include "sync_client.h"

namespace portico {
namespace {

using grpc::testing::Empty;
using grpc::testing::SimpleRequest;
using grpc::testing::SimpleResponse;
using grpc::testing::StreamingInputCallRequest;
using grpc::testing::StreamingInputCallResponse;
using grpc::testing::StreamingOutputCallRequest;
using grpc::testing::StreamingOutputCallResponse;
using net::GrpcCallOptions;
using net::Headers;

constexpr int kLargeRequest = 271828;
constexpr int kLargeResponse = 314159;
constexpr int kRequestSizes[] = {27182, 8, 1828, 45904};
constexpr int kResponseSizes[] = {31415, 9, 2653, 58979};
constexpr char kSpecialMessage[] =
    "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n";

GrpcCallOptions Method(const std::string& name, Headers metadata = {}) {
  return {.path = "/grpc.testing.TestService/" + name, .metadata = std::move(metadata)};
}

void Expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

void ExpectStatus(const Status& status, StatusCode code, const std::string& message = {}) {
  Expect(status.code() == code && (message.empty() || MessageOf(status) == message),
         "unexpected status: " + std::string(status.ToString()));
}

std::string Value(const Headers& headers, const std::string& name) {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

template <typename Message>
void SetPayload(Message* message, int size) {
  message->mutable_payload()->mutable_body()->resize(static_cast<size_t>(size));
}

template <typename Response>
Response Parse(const std::string& bytes) {
  Response response;
  Expect(response.ParseFromString(bytes), "malformed answer");
  return response;
}

// The only answer of a call that ends well.
template <typename Response>
Response OnlyAnswer(SyncCall& call) {
  auto bytes = call.Read();
  ExpectStatus(call.Finish(), StatusCode::kOk);
  Expect(bytes.has_value(), "no answer");
  return Parse<Response>(*bytes);
}

SimpleResponse Unary(SyncClient& client, const SimpleRequest& request) {
  SyncCall call(client, Method("UnaryCall"));
  call.Write(request.SerializeAsString());
  call.End();
  return OnlyAnswer<SimpleResponse>(call);
}

std::string DuplexRequest(int response_size, int request_size) {
  StreamingOutputCallRequest request;
  request.add_response_parameters()->set_size(response_size);
  SetPayload(&request, request_size);
  return request.SerializeAsString();
}

void ExpectAnswer(SyncCall& call, int size) {
  auto bytes = call.Read();
  if (!bytes) {
    throw std::runtime_error("the stream ended early: " + std::string(call.Finish().ToString()));
  }
  auto response = Parse<StreamingOutputCallResponse>(*bytes);
  Expect(response.payload().body().size() == static_cast<size_t>(size), "wrong size of an answer");
}

void ExpectEnd(SyncCall& call, StatusCode code = StatusCode::kOk, const std::string& text = {}) {
  Expect(!call.Read().has_value(), "an answer too many");
  ExpectStatus(call.Finish(), code, text);
}

void EmptyUnary(SyncClient& client) {
  SyncCall call(client, Method("EmptyCall"));
  call.Write(Empty().SerializeAsString());
  call.End();
  OnlyAnswer<Empty>(call);
}

void LargeUnary(SyncClient& client) {
  SimpleRequest request;
  request.set_response_size(kLargeResponse);
  SetPayload(&request, kLargeRequest);
  Expect(Unary(client, request).payload().body() == std::string(kLargeResponse, '\0'),
         "wrong payload");
}

void ClientStreaming(SyncClient& client) {
  SyncCall call(client, Method("StreamingInputCall"));
  for (int size : kRequestSizes) {
    StreamingInputCallRequest request;
    SetPayload(&request, size);
    call.Write(request.SerializeAsString());
  }
  call.End();
  Expect(OnlyAnswer<StreamingInputCallResponse>(call).aggregated_payload_size() == 74922,
         "wrong sum");
}

void ServerStreaming(SyncClient& client) {
  SyncCall call(client, Method("StreamingOutputCall"));
  StreamingOutputCallRequest request;
  for (int size : kResponseSizes) request.add_response_parameters()->set_size(size);
  call.Write(request.SerializeAsString());
  call.End();
  for (int size : kResponseSizes) ExpectAnswer(call, size);
  ExpectEnd(call);
}

void PingPong(SyncClient& client) {
  SyncCall call(client, Method("FullDuplexCall"));
  for (int i = 0; i < 4; ++i) {
    call.Write(DuplexRequest(kResponseSizes[i], kRequestSizes[i]));
    ExpectAnswer(call, kResponseSizes[i]);
  }
  call.End();
  ExpectEnd(call);
}

void EmptyStream(SyncClient& client) {
  SyncCall call(client, Method("FullDuplexCall"));
  call.End();
  ExpectEnd(call);
}

void TimeoutOnSleepingServer(SyncClient& client) {
  GrpcCallOptions options = Method("FullDuplexCall");
  options.timeout = std::chrono::milliseconds(1);
  SyncCall call(client, options);
  StreamingOutputCallRequest request;
  SetPayload(&request, kRequestSizes[0]);
  call.Write(request.SerializeAsString());
  ExpectEnd(call, StatusCode::kDeadlineExceeded);
}

void CancelAfterBegin(SyncClient& client) {
  SyncCall call(client, Method("StreamingInputCall"));
  call.Cancel();
  ExpectEnd(call, StatusCode::kCancelled);
}

void CancelAfterFirstResponse(SyncClient& client) {
  SyncCall call(client, Method("FullDuplexCall"));
  call.Write(DuplexRequest(kResponseSizes[0], kRequestSizes[0]));
  ExpectAnswer(call, kResponseSizes[0]);
  call.Cancel();
  ExpectEnd(call, StatusCode::kCancelled);
}

void ExpectEchoedStatus(SyncClient& client, const std::string& method, const std::string& request,
                        const std::string& text) {
  SyncCall call(client, Method(method));
  call.Write(request);
  call.End();
  ExpectEnd(call, StatusCode::kUnknown, text);
}

void StatusCodeAndMessage(SyncClient& client) {
  const std::string text = "test status message";
  SimpleRequest unary;
  unary.mutable_response_status()->set_code(2);
  unary.mutable_response_status()->set_message(text);
  ExpectEchoedStatus(client, "UnaryCall", unary.SerializeAsString(), text);
  StreamingOutputCallRequest duplex;
  *duplex.mutable_response_status() = unary.response_status();
  ExpectEchoedStatus(client, "FullDuplexCall", duplex.SerializeAsString(), text);
}

void SpecialStatusMessage(SyncClient& client) {
  SimpleRequest request;
  request.mutable_response_status()->set_code(2);
  request.mutable_response_status()->set_message(kSpecialMessage);
  ExpectEchoedStatus(client, "UnaryCall", request.SerializeAsString(), kSpecialMessage);
}

void CustomMetadata(SyncClient& client) {
  const std::string initial = "x-grpc-test-echo-initial";
  const std::string trailing = "x-grpc-test-echo-trailing-bin";
  SimpleRequest unary;
  unary.set_response_size(kLargeResponse);
  SetPayload(&unary, kLargeRequest);
  for (const auto& [method, request] :
       {std::pair("UnaryCall", unary.SerializeAsString()),
        std::pair("FullDuplexCall", DuplexRequest(kLargeResponse, kLargeRequest))}) {
    SyncCall call(client, Method(method, {{initial, "test_initial_metadata_value"},
                                          {trailing, "\xab\xab\xab"}}));
    call.Write(request);
    call.End();
    ExpectAnswer(call, kLargeResponse);
    ExpectEnd(call);
    Expect(Value(call.head(), initial) == "test_initial_metadata_value", "wrong head");
    Expect(Value(call.trailers(), trailing) == "\xab\xab\xab", "wrong trailer");
  }
}

void ExpectUnimplemented(SyncClient& client, const std::string& path) {
  SyncCall call(client, {.path = path});
  call.Write(Empty().SerializeAsString());
  call.End();
  ExpectEnd(call, StatusCode::kUnimplemented);
}

void UnimplementedMethod(SyncClient& client) {
  ExpectUnimplemented(client, "/grpc.testing.TestService/UnimplementedCall");
}

void UnimplementedService(SyncClient& client) {
  ExpectUnimplemented(client, "/grpc.testing.UnimplementedService/UnimplementedCall");
}

void PickFirstUnary(SyncClient& client) {
  SimpleRequest request;
  request.set_response_size(1);
  request.set_fill_server_id(true);
  // Servers may leave the id out, as grpc-go's does.
  const std::string first = Unary(client, request).server_id();
  for (int i = 1; i < 20; ++i) {
    Expect(Unary(client, request).server_id() == first, "another server answered");
  }
}

const std::map<std::string, void (*)(SyncClient&)> kCases = {
    {"empty_unary", EmptyUnary},
    {"large_unary", LargeUnary},
    {"client_streaming", ClientStreaming},
    {"server_streaming", ServerStreaming},
    {"ping_pong", PingPong},
    {"empty_stream", EmptyStream},
    {"timeout_on_sleeping_server", TimeoutOnSleepingServer},
    {"cancel_after_begin", CancelAfterBegin},
    {"cancel_after_first_response", CancelAfterFirstResponse},
    {"status_code_and_message", StatusCodeAndMessage},
    {"special_status_message", SpecialStatusMessage},
    {"custom_metadata", CustomMetadata},
    {"unimplemented_method", UnimplementedMethod},
    {"unimplemented_service", UnimplementedService},
    {"pick_first_unary", PickFirstUnary},
};

int Main(int argc, char** argv) {
  net::GrpcChannelOptions options;
  options.host = "127.0.0.1";
  net::TlsClientOptions tls;
  bool use_tls = false;
  std::string name;
  CLI::App app("gRPC's interoperability cases on Portico's client");
  app.add_option("--host", options.host);
  app.add_option("--port", options.port)->required();
  app.add_option("--case", name)->required();
  app.add_flag("--tls", use_tls);
  app.add_option("--ca-file", tls.ca_file, "PEM; default: the system's roots");
  app.add_option("--server-name", options.server_name, "that the certificate must have");
  CLI11_PARSE(app, argc, argv);

  auto found = kCases.find(name);
  if (found == kCases.end()) {
    std::fprintf(stderr, "there is no case %s\n", name.c_str());
    return 2;
  }
  if (use_tls) {
    auto context = net::TlsClientContext::Load(tls);
    if (!context.ok()) {
      std::fprintf(stderr, "%s\n", std::string(MessageOf(context.status())).c_str());
      return 2;
    }
    options.tls = *std::move(context);
  }
  try {
    SyncClient client(std::move(options));
    found->second(client);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), failure.what());
    return 1;
  }
  std::printf("%s passed\n", name.c_str());
  return 0;
}

}  // namespace
}  // namespace portico

int main(int argc, char** argv) { return portico::Main(argc, argv); }
