#include "api/grpc/native/token_rpcs.h"

#include <vector>

#include "api/grpc/field_checks.h"
#include "sglang/runtime/v1/sglang.pb.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::sglang::runtime::v1;

// Serialized answers.
StatusOr<std::string> Tokenize(const RpcContext& context, const std::string& bytes) {
  SmallArena memory;
  PORTICO_ASSIGN_OR_RETURN(auto* request, memory.Parse<pb::TokenizeRequest>(bytes));
  PORTICO_ASSIGN_OR_RETURN(const ServingModel* model, context.api.models->Find(""));
  std::vector<TokenId> ids;
  const bool special = !request->has_add_special_tokens() || request->add_special_tokens();
  PORTICO_RETURN_IF_ERROR(model->tokenizer->TryEncode(request->text(), special, &ids));
  auto* response = memory.Make<pb::TokenizeResponse>();
  response->mutable_tokens()->Add(ids.begin(), ids.end());
  response->set_count(static_cast<int32_t>(ids.size()));
  response->set_max_model_len(model->engine->info().context_length);
  response->set_input_text(std::move(*request->mutable_text()));
  return response->SerializeAsString();
}

StatusOr<std::string> Detokenize(const RpcContext& context, const std::string& bytes) {
  pb::DetokenizeRequest request;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &request));
  PORTICO_ASSIGN_OR_RETURN(const ServingModel* model, context.api.models->Find(""));
  PORTICO_RETURN_IF_ERROR(
      CheckTokenIds("tokens", SpanOf(request.tokens()), model->tokenizer->vocab_size()));
  const std::vector<TokenId> ids(request.tokens().begin(), request.tokens().end());
  pb::DetokenizeResponse response;
  response.set_text(model->tokenizer->Decode(ids, /*skip_special_tokens=*/true));
  return response.SerializeAsString();
}

void Answer(RpcContext&, CallPtr call, std::string response) { call->Reply(response); }

}  // namespace

void AddTokenRpcs(RpcContext& context) {
  AddPlanned(context, "/sglang.runtime.v1.SglangService/Tokenize", Tokenize, Answer);
  AddPlanned(context, "/sglang.runtime.v1.SglangService/Detokenize", Detokenize, Answer);
}

}  // namespace portico::api::rpc
