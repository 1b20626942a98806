// The way of a body that is not whole when its request comes: collected, or passed on as it comes.
#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "router/proxy/proxy_call.h"

namespace portico::router {

void ProxyCall::Collect() {
  collecting_ = true;
  const int64_t rest = exchange_->rest_bytes();
  if (rest >= 0) {
    collected_bytes_ = exchange_->request.body.size() + static_cast<size_t>(rest);
  }
  exchange_->ReadBody(*this);
}

void ProxyCall::OnBodyWanted(WorkerCall&) {
  if (over_ || !exchange_->body_open()) return;
  if (!std::exchange(rest_flows_, true)) {
    gateway_.metrics().streamed_bodies.Add();
    exchange_->ReadBody(*this);
    return;
  }
  exchange_->ConsumeBody(std::exchange(rest_held_, 0));
}

void ProxyCall::OnBodyBytes(std::string_view bytes) {
  if (!collecting_) {
    if (body_ != nullptr) {
      body_.reset();
      exchange_->request.lease.Release();
    }
    rest_held_ += bytes.size();
    // An answer that was complete before the request has ended the call, and this request.
    if (call_ != nullptr) call_->WriteBody(bytes);
    return;
  }
  net::HttpRequest& request = exchange_->request;
  const size_t needed = request.body.size() + bytes.size() + simdjson::SIMDJSON_PADDING;
  if (needed > request.body.capacity()) {
    const size_t doubled = 2 * request.body.capacity();
    // Of a known length no more is taken.
    const size_t enough = collected_bytes_ + simdjson::SIMDJSON_PADDING;
    const size_t wanted =
        std::max(needed, collected_bytes_ > 0 ? std::min(doubled, enough) : doubled);
    if (!request.lease.HoldAgain(wanted)) {
      return Refuse(503, "there are too many large requests at once; try again", "", true);
    }
    InMemory([&] { request.body.reserve(wanted); });
    if (over_) return;
  }
  request.body.append(bytes);
  exchange_->ConsumeBody(bytes.size());
}

void ProxyCall::OnBodyEnd() {
  if (std::exchange(collecting_, false)) {
    set_ = shard_.set();  // no worker has been chosen, and it may have taken long
    InMemory([this] {
      if (ReadFacts()) admitted_ ? Attempt() : Enter();
    });
    return;
  }
  if (call_ != nullptr) call_->EndBody();
}

void ProxyCall::OnBodyRefused(const net::HttpError& error) {
  DropCalls();
  if (streaming_) return CutStream(error.message, "invalid_request");
  Refuse(error.status, error.message, "", false);
}

}  // namespace portico::router
