#include "engine/grpc/unary.h"

#include <utility>

namespace portico {

class UnaryCalls::Call final : public net::GrpcCallEvents {
 public:
  Call(UnaryCalls& owner, Done done, bool streams)
      : owner_(owner), done_(std::move(done)), streams_(streams) {}

  void OnMessage(std::string_view message) override {
    answer_ = message;
    has_answer_ = true;
    if (streams_) OnEnd(OkStatus(), {});
  }
  void OnEnd(Status status, net::Headers) override {
    if (status.ok() && !has_answer_) status = Error(StatusCode::kInternal, "no answer came");
    Done done = std::move(done_);
    std::string answer = std::move(answer_);
    // Destroys this.
    owner_.calls_.erase(place);
    if (status.ok()) {
      done(std::move(answer));
    } else {
      done(std::move(status));
    }
  }

  std::list<std::unique_ptr<Call>>::iterator place;
  std::unique_ptr<net::GrpcClientCall> call;

 private:
  UnaryCalls& owner_;
  Done done_;
  const bool streams_;
  std::string answer_;
  bool has_answer_ = false;
};

UnaryCalls::UnaryCalls(net::GrpcChannel& channel) : channel_(channel) {}

UnaryCalls::~UnaryCalls() = default;

void UnaryCalls::Start(std::string path, net::Headers metadata, std::string_view request,
                       Duration timeout, Done done, bool streams) {
  calls_.push_back(std::make_unique<Call>(*this, std::move(done), streams));
  Call& call = *calls_.back();
  call.place = std::prev(calls_.end());
  call.call = channel_.Start(
      {.path = std::move(path), .metadata = std::move(metadata), .timeout = timeout}, call);
  call.call->Write(request);
  call.call->End();
}

}  // namespace portico
