#include "engine/sglang/link/link_input.h"

#include <utility>

namespace portico::sglang {
namespace {

constexpr std::string_view kUnixScheme = "ipc://";
// A step of thousands of streams with log-probabilities is a few MB.
constexpr size_t kMaxScheduledMessage = size_t{1} << 30;

}  // namespace

StatusOr<LinkInput> LinkInput::Bind(const net::ZmqContext& context, const std::string& address,
                                    net::ZmqBinding binding) {
  LinkInput input;
  if (address.starts_with(kUnixScheme) && binding.listener < 0) {
    PORTICO_ASSIGN_OR_RETURN(
        input.own_, net::ZmtpPull::Bind(address.substr(kUnixScheme.size()), kMaxScheduledMessage));
  } else {
    PORTICO_ASSIGN_OR_RETURN(input.zmq_, net::ZmqSocket::BindPull(context, address, binding));
    input.zmq_descriptor_ = input.zmq_.descriptor();
  }
  return input;
}

void LinkInput::AddWaits(std::vector<pollfd>* waits) {
  first_ = waits->size();
  if (own_ != nullptr) {
    own_->AddWaits(waits);
  } else {
    waits->push_back({zmq_descriptor_, POLLIN, 0});
  }
  count_ = waits->size() - first_;
}

void LinkInput::SetReady(std::span<const pollfd> waits) {
  const auto own = waits.subspan(first_, count_);
  if (own_ != nullptr) return own_->SetReady(own);
  zmq_ready_ |= own[0].revents != 0;
}

bool LinkInput::Receive(std::string_view* frame) {
  if (own_ != nullptr) return own_->Receive(frame);
  zmq_ready_ = zmq_ready_ && zmq_.Receive(frame);
  return zmq_ready_;
}

uint64_t LinkInput::TakeRefused() {
  if (own_ == nullptr) return 0;
  return own_->refused() - std::exchange(refused_, own_->refused());
}

}  // namespace portico::sglang
