#include "engine/grpc/grpc_stream.h"

#include <algorithm>
#include <utility>

namespace portico {
Status WorkerErrorForClient(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kOutOfRange:
      return Error(status.code(), std::string(MessageOf(status)), FieldOf(status));
    case StatusCode::kResourceExhausted:
      return Error(StatusCode::kResourceExhausted, "the worker is busy");
    case StatusCode::kDeadlineExceeded:
      return Error(StatusCode::kDeadlineExceeded, "the worker took too long");
    case StatusCode::kUnauthenticated:
    case StatusCode::kPermissionDenied:
      return Error(StatusCode::kInternal, "the worker refuses this gateway's key");
    case StatusCode::kInternal:
    case StatusCode::kUnknown:
      return Error(StatusCode::kInternal, "the worker failed");
    default:
      return Error(StatusCode::kUnavailable, "the worker was lost");
  }
}

GrpcStream::GrpcStream(GrpcStreamOptions options) : options_(std::move(options)) {
  progress_.prompt_logprobs_start = options_.prompt_logprobs_start;
  usage_.prompt_tokens = options_.prompt_tokens;
}

void GrpcStream::Start(net::GrpcChannel& channel, net::Shard& shard, net::GrpcCallOptions call,
                       std::string_view request, Duration first_message_timeout) {
  call_ = channel.Start(std::move(call), *this);
  call_->Write(request);
  call_->End();
  if (first_message_timeout > Duration::zero()) {
    silence_ = shard.After(first_message_timeout, [this] { OnSilence(); });
  }
}

void GrpcStream::OnSilence() {
  timed_out_ = true;
  call_->Cancel();
}

void GrpcStream::Abort() {
  if (terminal_) return;
  aborted_ = true;
  call_->Cancel();
}

void GrpcStream::EndNow(FinishReason finish, Status error) {
  if (!terminal_) {
    TokenDelta last;
    TakeHeld(&last);
    last.finish = finish;
    last.error = std::move(error);
    Deliver(std::move(last));
  }
  call_.reset();
}

bool GrpcStream::StopsAt(TokenId token) const {
  return std::find(options_.stop_tokens.begin(), options_.stop_tokens.end(), token) !=
         options_.stop_tokens.end();
}

bool GrpcStream::InVocabulary(const TokenDelta& delta) const {
  if (options_.vocab_size == 0) return true;
  return std::all_of(delta.tokens.begin(), delta.tokens.end(),
                     [this](TokenId id) { return id >= 0 && id < options_.vocab_size; });
}

void GrpcStream::CutAtMaximum(TokenDelta* delta) {
  tokens_ += delta->tokens.size();
  const auto most = static_cast<size_t>(options_.max_new_tokens);
  if (most == 0 || tokens_ <= most) return;
  const size_t kept = delta->tokens.size() - std::min(delta->tokens.size(), tokens_ - most);
  delta->tokens.resize(kept);
  if (delta->logprobs.size() > kept) delta->logprobs.resize(kept);
  delta->finish = FinishReason::kLength;
  delta->matched_token = -1;
  call_->Cancel();
}

void GrpcStream::TakeHeld(TokenDelta* delta) {
  if (held_.tokens.empty()) return;
  delta->tokens.insert(delta->tokens.begin(), held_.tokens.begin(), held_.tokens.end());
  delta->logprobs.insert(delta->logprobs.begin(), std::make_move_iterator(held_.logprobs.begin()),
                         std::make_move_iterator(held_.logprobs.end()));
  held_ = {};
}

void GrpcStream::HoldStopToken(TokenDelta* delta) {
  if (delta->tokens.empty() || !StopsAt(delta->tokens.back())) return;
  held_.tokens.push_back(delta->tokens.back());
  if (delta->logprobs.size() == delta->tokens.size()) {
    held_.logprobs.push_back(std::move(delta->logprobs.back()));
    delta->logprobs.pop_back();
  }
  delta->tokens.pop_back();
}

void GrpcStream::Deliver(TokenDelta delta) {
  delta.stream = options_.id;
  usage_.cached_tokens = std::max(usage_.cached_tokens, delta.usage.cached_tokens);
  usage_.completion_tokens = std::max(usage_.completion_tokens, delta.usage.completion_tokens);
  delta.usage = usage_;
  if (delta.finish != FinishReason::kNone) {
    terminal_ = true;
    silence_.reset();
    OnTerminal(usage_, delta.error);
  }
  std::vector<TokenDelta> batch;
  batch.push_back(std::move(delta));
  if (options_.sink->shard() == kNoShard) {
    options_.sink->Deliver(std::move(batch));
  } else {
    options_.sink->DeliverHere(std::move(batch));
  }
}

void GrpcStream::OnMessage(std::string_view message) {
  if (terminal_ || aborted_ || timed_out_) return;
  silence_.reset();
  TokenDelta delta;
  Status status = options_.wire->DecodeGenerate(message, &progress_, &delta);
  if (status.ok() && !InVocabulary(delta)) {
    status = Error(StatusCode::kInternal, "the worker sent a token that the model does not have");
  }
  if (!status.ok()) {
    OnMalformed(MessageOf(status));
    delta = {};
    delta.finish = FinishReason::kError;
    delta.error = Error(StatusCode::kInternal, std::string(MessageOf(status)));
    call_->Cancel();
    return Deliver(std::move(delta));
  }
  CutAtMaximum(&delta);
  TakeHeld(&delta);
  if (delta.finish == FinishReason::kAbort && options_.abort_fails) {
    delta.finish = FinishReason::kError;
    delta.error = Error(StatusCode::kInternal, "the worker has given the request up");
  }
  if (delta.finish == FinishReason::kNone) {
    HoldStopToken(&delta);
    if (delta.tokens.empty() && delta.prompt_logprobs.empty()) return;
  } else if (delta.finish == FinishReason::kStop) {
    // The contract: the token that stopped it is the last. Some workers leave it out.
    const bool last_stops = !delta.tokens.empty() && StopsAt(delta.tokens.back());
    if (delta.matched_token < 0 && last_stops) delta.matched_token = delta.tokens.back();
    if (delta.matched_token >= 0 &&
        (delta.tokens.empty() || delta.tokens.back() != delta.matched_token)) {
      delta.tokens.push_back(delta.matched_token);
    }
  }
  Deliver(std::move(delta));
}

void GrpcStream::OnEnd(Status status, net::Headers) {
  if (!terminal_) {
    TokenDelta last;
    TakeHeld(&last);
    last.finish = aborted_ ? FinishReason::kAbort : FinishReason::kError;
    if (timed_out_) {
      last.error = Error(StatusCode::kDeadlineExceeded, "the worker sent nothing in time");
    } else if (!aborted_) {
      if (status.ok()) OnMalformed("a stream without an end");
      last.error = status.ok() ? Error(StatusCode::kInternal, "the worker left without an end")
                               : WorkerErrorForClient(status);
    }
    Deliver(std::move(last));
  }
  OnOver();
}

}  // namespace portico
