#include "engine/grpc/tokenizer_fetch.h"

#include <utility>

#include "engine/grpc/tokenizer_files.h"
#include "message/protobuf.h"
#include "smg/grpc/common/common.pb.h"

namespace portico {
namespace {

namespace pb = ::smg::grpc::common;

}  // namespace

void TokenizerFetch::Start(net::GrpcChannel& channel, net::GrpcCallOptions options) {
  call_ = channel.Start(std::move(options), *this);
  call_->Write("");
  call_->End();
}

void TokenizerFetch::OnMessage(std::string_view message) {
  pb::GetTokenizerChunk chunk;
  const Status read = ParseProtobuf(message, &chunk);
  if (!read.ok()) return Finish(read);
  if (bytes_.size() + chunk.data().size() > kMaxBytes) {
    return Finish(Error(StatusCode::kInternal, "the worker's tokenizer is too large"));
  }
  bytes_ += chunk.data();
  if (!chunk.sha256().empty()) sha256_ = chunk.sha256();
}

void TokenizerFetch::OnEnd(Status status, net::Headers) {
  if (!status.ok()) return Finish(std::move(status));
  if (sha256_ != TokenizerArchiveSum(bytes_)) {
    return Finish(Error(StatusCode::kInternal, "the worker sent a damaged tokenizer"));
  }
  Finish(std::move(bytes_));
}

void TokenizerFetch::Finish(StatusOr<std::string> archive) {
  if (!done_) return;
  call_.reset();
  Done done = std::move(done_);
  done_ = nullptr;
  done(std::move(archive));
}

}  // namespace portico
