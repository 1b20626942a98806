#include "router/proxy/local_call.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "net/socket/below_call.h"
#include "router/proxy/error_body.h"

namespace portico::router {
namespace {

class LocalExchange;

// What the two ends share.
struct Link {
  enum class End : uint8_t { kOpen, kWhole, kLost };

  net::Shard& shard;
  const size_t max_unsent;
  net::HttpCallEvents* events;        // null: the call is over or dropped
  LocalExchange* exchange = nullptr;  // null: the handler has let it go
  std::optional<net::ResponseHead> head = {};
  bool head_told = false;
  std::unique_ptr<net::HttpResponse> failure = {};  // of the stream; null: none, or told
  std::string bytes = {};                           // of the body, not told yet
  std::unique_ptr<net::BelowCall> below = {};       // of the handler's; null: it waits for nobody
  End end = End::kOpen;
  bool paused = false;
  bool scheduled = false;
};
using LinkPtr = std::shared_ptr<Link>;

void Tell(Link& link) {
  if (link.events == nullptr) return;
  if (link.head && !link.head_told) {
    link.head_told = true;
    link.events->OnHead(*link.head);
    if (link.events == nullptr) return;
  }
  if (link.failure != nullptr) {
    const auto failure = std::move(link.failure);
    link.events->OnStreamFailure(*failure);
    if (link.events == nullptr) return;
  }
  if (!link.bytes.empty() && !link.paused) {
    const std::string bytes = std::exchange(link.bytes, {});
    link.events->OnBody(bytes);
    if (link.events == nullptr) return;
    if (link.below != nullptr) link.below->OnSent(link.bytes.size());
  }
  if (link.end == Link::End::kLost) {
    std::exchange(link.events, nullptr)
        ->OnFailed(net::CallFailure::kLost, "the answer was given up");
  } else if (link.end == Link::End::kWhole && link.bytes.empty()) {
    std::exchange(link.events, nullptr)->OnDone();
  }
}

// Never from within a function of the handler or of the call: both may be destroyed by what follows.
void TellSoon(const LinkPtr& link) {
  if (link->events == nullptr || std::exchange(link->scheduled, true)) return;
  link->shard.AtEndOfTurn([link] {
    link->scheduled = false;
    Tell(*link);
  });
}

class LocalExchange final : public net::Exchange {
 public:
  LocalExchange(LinkPtr link, net::HttpRequest asked) : link_(std::move(link)) {
    request = std::move(asked);
    link_->exchange = this;
  }
  ~LocalExchange() override {
    link_->exchange = nullptr;
    link_->below.reset();
    if (!over_) {
      EndDropped(link_->head.has_value(), [](const net::HttpError& error) {
        return GatewayErrorBody(error.status, error.message, {});
      });
    }
  }

  net::Shard& shard() override { return link_->shard; }

  void Respond(net::HttpResponse response) override {
    if (over_) return;
    link_->bytes = std::move(response.body);
    Begin(std::move(response), static_cast<int64_t>(link_->bytes.size()));
    Finish(Link::End::kWhole);
  }
  void StartStream(net::HttpResponse response) override {
    if (over_) return;
    Begin(std::move(response), -1);
    TellSoon(link_);
  }
  void Write(std::string_view bytes) override {
    if (over_ || link_->events == nullptr) return;
    link_->bytes.append(bytes);
    if (link_->paused && link_->bytes.size() > link_->max_unsent) {
      Finish(Link::End::kLost);
      return CloseSoon(link_);
    }
    TellSoon(link_);
  }
  void NotePrompt(std::span<const int32_t> tokens) override {
    if (!over_ && link_->events != nullptr) link_->events->OnPrompt(tokens);
  }
  void NoteFailure(net::HttpResponse instead) override {
    if (over_ || link_->events == nullptr) return;
    link_->failure = std::make_unique<net::HttpResponse>(std::move(instead));
    TellSoon(link_);
  }
  void End() override { Finish(Link::End::kWhole); }
  void Cut() override { Finish(Link::End::kLost); }
  size_t unsent_bytes() const override { return link_->bytes.size(); }
  void CallWhenBelow(size_t bytes, absl::AnyInvocable<void()> call) override {
    if (over_ || link_->events == nullptr) return;
    link_->below = net::BelowCall::Make(link_->shard, bytes, link_->bytes.size(), std::move(call));
  }

  // The proxy has dropped the call: the handler learns what it would of a client that leaves.
  static void CloseSoon(const LinkPtr& link) {
    link->shard.AtEndOfTurn([link] {
      if (link->exchange == nullptr) return;
      auto closed = std::move(link->exchange->on_closed_);
      link->exchange->over_ = true;
      if (closed) closed();
    });
  }
  bool over() const { return over_; }

 private:
  void Begin(net::HttpResponse response, int64_t length) {
    net::ResponseHead head;
    head.status = response.status;
    head.length = length;
    head.headers = std::move(response.headers);
    if (!response.content_type.empty()) {
      head.headers.emplace_back("content-type", std::move(response.content_type));
    }
    link_->head = std::move(head);
  }
  void Finish(Link::End end) {
    if (std::exchange(over_, true)) return;
    link_->below.reset();
    link_->end = end;
    TellSoon(link_);
  }

  const LinkPtr link_;
  bool over_ = false;  // the answer is complete, or nobody wants it
};

class LocalHttpCall final : public net::HttpCall {
 public:
  explicit LocalHttpCall(LinkPtr link) : link_(std::move(link)) {}
  ~LocalHttpCall() override {
    link_->events = nullptr;
    link_->below.reset();
    if (link_->exchange != nullptr && !link_->exchange->over()) LocalExchange::CloseSoon(link_);
  }
  void Pause() override { link_->paused = true; }
  void Resume() override {
    link_->paused = false;
    TellSoon(link_);
  }

 private:
  const LinkPtr link_;
};

}  // namespace

LocalCall MakeLocalCall(net::Shard& shard, net::HttpRequest request, net::HttpCallEvents& events,
                        size_t max_unsent) {
  auto link =
      std::make_shared<Link>(Link{.shard = shard, .max_unsent = max_unsent, .events = &events});
  LocalCall made;
  made.call = std::make_unique<LocalHttpCall>(link);
  made.exchange = std::make_unique<LocalExchange>(std::move(link), std::move(request));
  return made;
}

}  // namespace portico::router
