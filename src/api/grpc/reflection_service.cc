#include "api/grpc/reflection_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <set>
#include <vector>

#include "api/grpc/service_names.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"

namespace portico::api::rpc {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

// The two versions have the same messages under two names.
template <typename Request, typename Response>
class ReflectionCall final : public Call {
 public:
  static void Start(RpcContext& context, CallPtr call) {
    ShardContext& shard = context.ShardOf(*call);
    auto owned = std::make_unique<ReflectionCall>(context, shard, std::move(call));
    ReflectionCall& started = *owned;
    shard.calls.Add(std::move(owned));
    started.call_->Read([&started](std::string bytes) { started.OnMessage(bytes); },
                        [&started] { started.Finish(OkStatus()); });
  }

  ReflectionCall(RpcContext& context, ShardContext& shard, CallPtr call)
      : context_(context), shard_(shard), call_(std::move(call)) {
    call_->set_on_closed([this](const Status&) { shard_.calls.Remove(this); });
  }

  void Abort() override {}

 private:
  void OnMessage(const std::string& bytes) {
    if (done_) return;
    Request request;
    const Status parsed = ParseProtobuf(bytes, &request);
    if (!parsed.ok()) return Finish(parsed);
    Response response;
    response.set_valid_host(request.host());
    *response.mutable_original_request() = request;
    Answer(request, &response);
    call_->Write(response.SerializeAsString());
  }

  void Finish(const Status& status) {
    if (done_) return;
    done_ = true;
    Refuse(*call_, status);
    shard_.calls.Remove(this);
  }

  void Answer(const Request& request, Response* response) const {
    const DescriptorPool& pool = *DescriptorPool::generated_pool();
    switch (request.message_request_case()) {
      case Request::kFileByFilename:
        return AddFile(pool.FindFileByName(request.file_by_filename()), "file",
                       request.file_by_filename(), response);
      case Request::kFileContainingSymbol:
        return AddFile(pool.FindFileContainingSymbol(request.file_containing_symbol()), "symbol",
                       request.file_containing_symbol(), response);
      case Request::kFileContainingExtension: {
        const auto& wanted = request.file_containing_extension();
        const auto* type = pool.FindMessageTypeByName(wanted.containing_type());
        const FieldDescriptor* field =
            type ? pool.FindExtensionByNumber(type, wanted.extension_number()) : nullptr;
        return AddFile(field ? field->file() : nullptr, "extension of", wanted.containing_type(),
                       response);
      }
      case Request::kAllExtensionNumbersOfType:
        return AddExtensions(pool, request.all_extension_numbers_of_type(), response);
      case Request::kListServices:
        for (const std::string& name : ServiceNames(context_.methods)) {
          response->mutable_list_services_response()->add_service()->set_name(name);
        }
        return;
      case Request::MESSAGE_REQUEST_NOT_SET:
        break;
    }
    AddError(StatusCode::kInvalidArgument, "message_request is required", response);
  }

  static void AddError(StatusCode code, const std::string& message, Response* response) {
    response->mutable_error_response()->set_error_code(static_cast<int>(code));
    response->mutable_error_response()->set_error_message(message);
  }

  static void AddFile(const FileDescriptor* file, const std::string& kind, const std::string& name,
                      Response* response) {
    if (file == nullptr) {
      return AddError(StatusCode::kNotFound, "there is no " + kind + " " + name, response);
    }
    std::set<const FileDescriptor*> added;
    AddFileAndImports(file, &added, response);
  }

  static void AddFileAndImports(const FileDescriptor* file, std::set<const FileDescriptor*>* added,
                                Response* response) {
    if (!added->insert(file).second) return;
    google::protobuf::FileDescriptorProto proto;
    file->CopyTo(&proto);
    response->mutable_file_descriptor_response()->add_file_descriptor_proto(
        proto.SerializeAsString());
    for (int i = 0; i < file->dependency_count(); ++i) {
      AddFileAndImports(file->dependency(i), added, response);
    }
  }

  static void AddExtensions(const DescriptorPool& pool, const std::string& name,
                            Response* response) {
    const auto* type = pool.FindMessageTypeByName(name);
    if (type == nullptr) {
      return AddError(StatusCode::kNotFound, "there is no message " + name, response);
    }
    auto& answer = *response->mutable_all_extension_numbers_response();
    answer.set_base_type_name(name);
    std::vector<const FieldDescriptor*> extensions;
    pool.FindAllExtensions(type, &extensions);
    for (const FieldDescriptor* field : extensions) answer.add_extension_number(field->number());
  }

  RpcContext& context_;
  ShardContext& shard_;
  CallPtr call_;
  bool done_ = false;
};

template <typename Request, typename Response>
void AddVersion(RpcContext& context, std::string_view service) {
  context.methods.AddStreaming("/" + std::string(service) + "/ServerReflectionInfo",
                               [&context](CallPtr call) {
                                 ReflectionCall<Request, Response>::Start(context, std::move(call));
                               });
}

}  // namespace

void AddReflectionServices(RpcContext& context) {
  namespace v1 = ::grpc::reflection::v1;
  namespace v1alpha = ::grpc::reflection::v1alpha;
  AddVersion<v1::ServerReflectionRequest, v1::ServerReflectionResponse>(
      context, "grpc.reflection.v1.ServerReflection");
  AddVersion<v1alpha::ServerReflectionRequest, v1alpha::ServerReflectionResponse>(
      context, "grpc.reflection.v1alpha.ServerReflection");
}

}  // namespace portico::api::rpc
