// Streams an answer over gRPC: ./generate [HOST:PORT] [PROMPT]
//
// Built with grpc++ and the stubs that protoc makes of the .proto file: CMakeLists.txt beside this
// file does both. With a key in PORTICO_API_KEY it is sent along.
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "sglang/runtime/v1/sglang.grpc.pb.h"

namespace v1 = sglang::runtime::v1;

// TextGenerate takes the text as it is, without a chat template; ChatComplete takes messages.
constexpr char kPrompt[] =
    "<|im_start|>user\nWhat is 7 plus 5?<|im_end|>\n<|im_start|>assistant\n";

int main(int argc, char** argv) {
  const std::string target = argc > 1 ? argv[1] : "127.0.0.1:30000";
  // grpc++ refuses messages above 4 MiB unless it is told otherwise; the server's own limit is
  // 64 MiB.
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(64 << 20);
  std::unique_ptr<v1::SglangService::Stub> service = v1::SglangService::NewStub(
      grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments));

  v1::TextGenerateRequest request;
  request.set_text(argc > 2 ? argv[2] : kPrompt);
  request.mutable_sampling_params()->set_temperature(0);
  request.mutable_sampling_params()->set_max_new_tokens(32);
  request.set_stream(true);

  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  if (const char* key = std::getenv("PORTICO_API_KEY")) {
    context.AddMetadata("authorization", std::string("Bearer ") + key);
  }
  // Each message has the text that is new since the last one; the last has finished set.
  v1::TextGenerateResponse message;
  const auto messages = service->TextGenerate(&context, request);
  while (messages->Read(&message)) {
    std::cout << message.text() << std::flush;
    if (message.finished()) {
      std::cout << "\nfinish_reason: " << message.meta_info().at("finish_reason") << "\n";
    }
  }
  const grpc::Status status = messages->Finish();
  if (!status.ok()) {
    std::cerr << status.error_code() << ": " << status.error_message() << "\n";
    return 1;
  }
  return 0;
}
