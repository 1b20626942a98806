#include "api/grpc/scheduler/tokenizer_call.h"

#include <algorithm>
#include <utility>

#include "engine/grpc/tokenizer_files.h"
#include "smg/grpc/common/common.pb.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::smg::grpc::common;

constexpr size_t kChunk = 512 << 10;
// So much may wait for the client; more would have it cut off as a slow reader.
constexpr size_t kMaxUnsent = 1 << 20;

struct Archive {
  std::string bytes;
  std::string sha256;
};

StatusOr<Archive> Prepare(const RpcContext& context) {
  PORTICO_ASSIGN_OR_RETURN(const ServingModel* model, context.api.models->Find(""));
  Archive archive;
  PORTICO_ASSIGN_OR_RETURN(archive.bytes, TokenizerArchive(model->tokenizer_path));
  archive.sha256 = TokenizerArchiveSum(archive.bytes);
  return archive;
}

// Sends as fast as the client reads.
class ArchiveCall final : public Call {
 public:
  ArchiveCall(CallPtr call, ShardContext& shard, Archive archive)
      : call_(std::move(call)), shard_(shard), archive_(std::move(archive)) {
    call_->set_on_closed([this](const Status&) { shard_.calls.Remove(this); });
  }

  void Abort() override {}

  void Send() {
    while (call_->unsent_bytes() < kMaxUnsent) {
      pb::GetTokenizerChunk chunk;
      const size_t size = std::min(kChunk, archive_.bytes.size() - sent_);
      chunk.set_data(archive_.bytes.data() + sent_, size);
      sent_ += size;
      const bool last = sent_ == archive_.bytes.size();
      if (last) chunk.set_sha256(archive_.sha256);
      call_->Write(chunk.SerializeAsString());
      if (!last) continue;
      call_->Finish(OkStatus());
      return shard_.calls.Remove(this);
    }
    call_->CallWhenBelow(kMaxUnsent / 2, [this] { Send(); });
  }

 private:
  CallPtr call_;
  ShardContext& shard_;
  Archive archive_;
  size_t sent_ = 0;
};

}  // namespace

void AddTokenizerCall(RpcContext& context, const std::string& method) {
  context.methods.Add(method, [&context](CallPtr call, std::string bytes) {
    ShardContext& shard = context.ShardOf(*call);
    auto prepare = [&context](const std::string&) { return Prepare(context); };
    auto answer = [](CallPtr owned, ShardContext& on, StatusOr<Archive> archive) {
      if (!archive.ok()) return Refuse(*owned, archive.status());
      auto sending = std::make_unique<ArchiveCall>(std::move(owned), on, *std::move(archive));
      ArchiveCall& started = *sending;
      on.calls.Add(std::move(sending));
      started.Send();
    };
    // Files are read off the shard.
    if (!PlanOnPool(call, bytes, shard, prepare, answer)) Refuse(*call, PoolIsFull());
  });
}

}  // namespace portico::api::rpc
