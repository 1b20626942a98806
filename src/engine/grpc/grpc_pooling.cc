#include "engine/grpc/grpc_pooling.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "engine/grpc/grpc_stream.h"

namespace portico {
namespace {

PoolingOutput Aborted(StreamId stream) {
  PoolingOutput output;
  output.stream = stream;
  output.finish = FinishReason::kAbort;
  return output;
}

}  // namespace

class GrpcPooling::Call final : public net::GrpcCallEvents {
 public:
  Call(GrpcPooling& owner, StreamId stream) : owner_(owner), stream_(stream) {}

  void Start(net::GrpcChannel& channel, net::GrpcCallOptions options, std::string_view request) {
    call_ = channel.Start(std::move(options), *this);
    call_->Write(request);
    call_->End();
  }
  void Abort() {
    aborted_ = true;
    call_->Cancel();
  }
  bool aborted() const { return aborted_; }
  bool reached() const { return call_->begun(); }

 private:
  void OnMessage(std::string_view message) override {
    answer_ = message;
    has_answer_ = true;
  }
  void OnEnd(Status status, net::Headers) override {
    if (status.ok() && !has_answer_) status = Error(StatusCode::kInternal, "no answer came");
    // Destroys this.
    if (status.ok()) {
      owner_.OnAnswer(stream_, std::move(answer_));
    } else {
      owner_.OnAnswer(stream_, std::move(status));
    }
  }

  GrpcPooling& owner_;
  const StreamId stream_;
  std::unique_ptr<net::GrpcClientCall> call_;
  std::string answer_;
  bool has_answer_ = false;
  bool aborted_ = false;
};

GrpcPooling::GrpcPooling(GrpcPoolingOptions options, std::deque<Text> texts,
                         std::function<void()> on_over)
    : options_(std::move(options)), waiting_(std::move(texts)), on_over_(std::move(on_over)) {}

GrpcPooling::~GrpcPooling() = default;

void GrpcPooling::Start(net::GrpcChannel& channel) {
  channel_ = &channel;
  Pump();
}

void GrpcPooling::Pump() {
  while (!waiting_.empty() && calls_.size() < kMaxCalls) {
    const Text text = std::move(waiting_.front());
    waiting_.pop_front();
    if (text.aborted) {
      aborted_.push_back(text.stream);
      continue;
    }
    auto& call = calls_[text.stream];
    call = std::make_unique<Call>(*this, text.stream);
    call->Start(*channel_,
                {.path = fmt::format("/{}/{}", options_.wire->service(), text.call.method),
                 .metadata = options_.metadata,
                 .timeout = options_.timeout},
                text.call.request);
  }
}

void GrpcPooling::Deliver(std::vector<PoolingOutput> batch) {
  if (options_.sink->shard() == kNoShard) {
    options_.sink->Deliver(std::move(batch));
  } else {
    options_.sink->DeliverHere(std::move(batch));
  }
}

void GrpcPooling::OnAnswer(StreamId stream, StatusOr<std::string> answer) {
  const auto found = calls_.find(stream);
  const bool aborted = found->second->aborted();
  const bool reached = found->second->reached();
  calls_.erase(found);
  Pump();
  PoolingOutput output;
  Status status = answer.status();
  if (status.ok()) {
    auto decoded = options_.wire->DecodePooling(*answer);
    status = decoded.status();
    if (decoded.ok()) output = *std::move(decoded);
    if (status.ok() && options_.embedding_size > 0 &&
        output.values.size() != static_cast<size_t>(options_.embedding_size)) {
      status = Error(StatusCode::kInternal, "the worker sent a vector of another length");
    }
    if (!status.ok() && !aborted && options_.on_malformed) options_.on_malformed(MessageOf(status));
  } else {
    if (status.code() == StatusCode::kUnavailable && !aborted && options_.on_lost) {
      options_.on_lost(reached);
    }
    status = WorkerErrorForClient(status);
  }
  output.stream = stream;
  if (aborted) {
    output = Aborted(stream);
  } else if (!status.ok()) {
    output.finish = FinishReason::kError;
    output.values.clear();
    output.error = std::move(status);
  }
  // A receiver may abort others of these texts when it is told, but does not destroy this.
  std::vector<PoolingOutput> batch;
  batch.push_back(std::move(output));
  for (const StreamId one : std::exchange(aborted_, {})) batch.push_back(Aborted(one));
  const bool over = calls_.empty() && waiting_.empty();
  Deliver(std::move(batch));
  if (over) on_over_();
}

bool GrpcPooling::Abort(StreamId stream) {
  const auto found = calls_.find(stream);
  if (found != calls_.end()) {
    found->second->Abort();
    return true;
  }
  for (Text& text : waiting_) {
    if (text.stream != stream) continue;
    text.aborted = true;
    return true;
  }
  return false;
}

void GrpcPooling::EndNow() {
  std::vector<PoolingOutput> left;
  for (const auto& [stream, call] : calls_) left.push_back(Aborted(stream));
  for (const Text& text : waiting_) left.push_back(Aborted(text.stream));
  calls_.clear();
  waiting_.clear();
  if (!left.empty()) Deliver(std::move(left));
}

}  // namespace portico
