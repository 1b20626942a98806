// One case of tests/test_grpc_clients.py, by grpc++: grpc_client TARGET CASE [CA CERT KEY]
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "sglang/runtime/v1/sglang.grpc.pb.h"

namespace {

namespace v1 = sglang::runtime::v1;
using Channel = std::shared_ptr<grpc::Channel>;

constexpr char kService[] = "sglang.runtime.v1.SglangService";
constexpr int kLargest = 64 << 20;

void Expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

void ExpectCode(grpc::StatusCode wanted, const grpc::Status& status, const std::string& what) {
  Expect(status.error_code() == wanted,
         what + ": " + std::to_string(status.error_code()) + " " + status.error_message());
}

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void SetDeadline(grpc::ClientContext* context, std::chrono::milliseconds after) {
  context->set_deadline(std::chrono::system_clock::now() + after);
}

void SetDeadline(grpc::ClientContext* context) { SetDeadline(context, std::chrono::minutes(2)); }

// A streamed answer of so many tokens; `each` is called with every message.
class Stream final : public grpc::ClientReadReactor<v1::TextGenerateResponse> {
 public:
  Stream(
      v1::SglangService::Stub* stub, int32_t tokens,
      std::function<void(Stream*)> each = [](Stream*) {})
      : each_(std::move(each)) {
    SetDeadline(&context);
    request_.set_text("hello");
    request_.set_stream(true);
    request_.mutable_sampling_params()->set_max_new_tokens(tokens);
    request_.mutable_sampling_params()->set_ignore_eos(true);
    begin_ = [this, stub] {
      stub->async()->TextGenerate(&context, &request_, this);
      StartRead(&message_);
      StartCall();
    };
  }

  void Begin() { begin_(); }
  grpc::Status Wait() { return done_.get_future().get(); }
  bool finished() const { return message_.finished(); }

  grpc::ClientContext context;

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return;
    each_(this);
    if (!message_.finished()) StartRead(&message_);
  }
  void OnDone(const grpc::Status& status) override { done_.set_value(status); }

  std::function<void(Stream*)> each_;
  std::function<void()> begin_;
  v1::TextGenerateRequest request_;
  v1::TextGenerateResponse message_;
  std::promise<grpc::Status> done_;
};

grpc::Status Run(Stream* stream) {
  stream->Begin();
  return stream->Wait();
}

// Sends an empty message and reads what comes; of a method that goes on for ever one message.
grpc::Status CallEmpty(const Channel& channel, const std::string& method, bool once) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return ok;
  };
  const auto call = stub.PrepareCall(&context, "/" + std::string(kService) + "/" + method, &queue);
  call->StartCall(nullptr);
  next();
  call->WriteLast(grpc::ByteBuffer(std::make_unique<grpc::Slice>("").get(), 1),
                  grpc::WriteOptions(), nullptr);
  next();
  grpc::ByteBuffer message;
  do {
    call->Read(&message, nullptr);
  } while (next() && !once);
  if (once) context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  next();
  return status;
}

void EveryRpc(const Channel& channel) {
  const auto* service =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(kService);
  Expect(service->method_count() == 26, std::to_string(service->method_count()) + " methods");
  for (int i = 0; i < service->method_count(); ++i) {
    const std::string name(service->method(i)->name());
    const bool watches = name == "WatchEngineState";
    const grpc::Status status = CallEmpty(channel, name, watches);
    const grpc::StatusCode code = status.error_code();
    const bool allowed = watches ? code == grpc::StatusCode::CANCELLED
                                 : code == grpc::StatusCode::OK ||
                                       code == grpc::StatusCode::INVALID_ARGUMENT ||
                                       code == grpc::StatusCode::FAILED_PRECONDITION;
    Expect(allowed, name + ": " + std::to_string(code) + " " + status.error_message());
  }
}

void Health(const Channel& channel) {
  grpc::ClientContext context;
  SetDeadline(&context);
  grpc::health::v1::HealthCheckRequest request;
  grpc::health::v1::HealthCheckResponse answer;
  request.set_service(kService);
  ExpectCode(grpc::StatusCode::OK,
             grpc::health::v1::Health::NewStub(channel)->Check(&context, request, &answer),
             "Check");
  Expect(answer.status() == grpc::health::v1::HealthCheckResponse::SERVING, "not serving");
}

void Reflection(const Channel& channel) {
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto stub = grpc::reflection::v1::ServerReflection::NewStub(channel);
  const auto stream = stub->ServerReflectionInfo(&context);
  grpc::reflection::v1::ServerReflectionRequest request;
  grpc::reflection::v1::ServerReflectionResponse answer;
  request.set_list_services("");
  Expect(stream->Write(request) && stream->Read(&answer), "no answer");
  const auto& services = answer.list_services_response().service();
  Expect(std::any_of(services.begin(), services.end(),
                     [](const auto& each) { return each.name() == kService; }),
         answer.ShortDebugString());
  stream->WritesDone();
  stream->Finish();
}

void Large(const Channel& channel, bool compressed) {
  const auto stub = v1::SglangService::NewStub(channel);
  v1::TokenizeRequest text;
  v1::TokenizeResponse tokens;
  for (int i = 0; i < 2 << 20; ++i) text.mutable_text()->append("word ");
  const auto prepare = [compressed](grpc::ClientContext* context) {
    SetDeadline(context);
    if (compressed) context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
  };
  grpc::ClientContext there, back;
  prepare(&there);
  ExpectCode(grpc::StatusCode::OK, stub->Tokenize(&there, text, &tokens), "Tokenize");
  v1::DetokenizeRequest request;
  v1::DetokenizeResponse again;
  *request.mutable_tokens() = tokens.tokens();
  prepare(&back);
  ExpectCode(grpc::StatusCode::OK, stub->Detokenize(&back, request, &again), "Detokenize");
  Expect(tokens.input_text() == text.text() && again.text() == text.text(),
         "the text came back otherwise");
}

void Deadline(const Channel& channel) {
  const auto stub = v1::SglangService::NewStub(channel);
  Stream stream(stub.get(), 20000);
  SetDeadline(&stream.context, std::chrono::milliseconds(300));
  ExpectCode(grpc::StatusCode::DEADLINE_EXCEEDED, Run(&stream), "deadline");
}

void Cancel(const Channel& channel) {
  const auto stub = v1::SglangService::NewStub(channel);
  Stream stream(stub.get(), 20000, [](Stream* self) { self->context.TryCancel(); });
  ExpectCode(grpc::StatusCode::CANCELLED, Run(&stream), "cancel");
}

void Streams(const Channel& channel) {
  const auto stub = v1::SglangService::NewStub(channel);
  std::deque<Stream> streams;
  for (int i = 0; i < 1000; ++i) streams.emplace_back(stub.get(), 8);
  for (Stream& stream : streams) stream.Begin();
  for (Stream& stream : streams) {
    ExpectCode(grpc::StatusCode::OK, stream.Wait(), "stream");
    Expect(stream.finished(), "a stream was cut off");
  }
}

// The other side begins to drain when it has read "begun".
void Drain(const Channel& channel) {
  const auto stub = v1::SglangService::NewStub(channel);
  std::atomic<bool> begun = false;
  Stream stream(stub.get(), 300, [&begun](Stream*) {
    if (!begun.exchange(true)) std::cout << "begun" << std::endl;
  });
  ExpectCode(grpc::StatusCode::OK, Run(&stream), "drain");
  Expect(stream.finished(), "the stream was cut off");
}

const std::map<std::string, std::function<void(const Channel&)>> kCases = {
    {"every_rpc", EveryRpc},
    {"health", Health},
    {"reflection", Reflection},
    {"large", [](const Channel& channel) { Large(channel, false); }},
    {"gzip", [](const Channel& channel) { Large(channel, true); }},
    {"deadline", Deadline},
    {"cancel", Cancel},
    {"streams", Streams},
    {"drain", Drain},
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  auto credentials = grpc::InsecureChannelCredentials();
  if (words.size() > 2) {
    grpc::SslCredentialsOptions files;
    files.pem_root_certs = Read(words[2]);
    if (words.size() > 4) files.pem_cert_chain = Read(words[3]);
    if (words.size() > 4) files.pem_private_key = Read(words[4]);
    credentials = grpc::SslCredentials(files);
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kLargest);
  try {
    kCases.at(words.at(1))(grpc::CreateCustomChannel(words.at(0), credentials, arguments));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
