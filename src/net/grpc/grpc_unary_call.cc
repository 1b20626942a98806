#include "net/grpc/grpc_unary_call.h"

#include <utility>

namespace portico::net {

GrpcUnaryCall::GrpcUnaryCall(GrpcChannel& channel, GrpcCallOptions options,
                             std::string_view request, Done done)
    : done_(std::move(done)), call_(channel.Start(std::move(options), *this)) {
  call_->Write(request);
  call_->End();
}

void GrpcUnaryCall::OnMessage(std::string_view message) {
  too_many_ = reply_.has_value();
  if (!too_many_) reply_.emplace(message);
}

void GrpcUnaryCall::OnEnd(Status status, Headers trailers) {
  trailers_ = std::move(trailers);
  if (status.ok() && (too_many_ || !reply_)) {
    status = Error(StatusCode::kInternal, too_many_ ? "more than one message in a unary answer"
                                                    : "no message in a unary answer");
  }
  // `done` may destroy this, and with it itself.
  Done done = std::move(done_);
  if (status.ok()) {
    done(*std::move(reply_));
  } else {
    done(std::move(status));
  }
}

}  // namespace portico::net
