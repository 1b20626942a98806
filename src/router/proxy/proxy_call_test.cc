#include "router/proxy/proxy_call.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "message/request_media.h"
#include "router/proxy/gateway_for_test.h"
#include "router/proxy/local_call.h"

namespace portico::router {
namespace {

// A port that takes connections and answers nothing.
class SilentPort {
 public:
  SilentPort() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_, generic, size), 0);
    EXPECT_EQ(listen(socket_, 8), 0);
    EXPECT_EQ(getsockname(socket_, generic, &size), 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~SilentPort() { close(socket_); }
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;
  const std::string& url() const { return url_; }

 private:
  const int socket_;
  std::string url_;
};

// Lacks the memory for any request.
class FullWorkers final : public CalledWorkers {
 public:
  StatusOr<std::unique_ptr<net::HttpCall>> Start(const Worker&, net::Shard&, net::HttpRequest,
                                                 net::HttpCallEvents&) override {
    throw std::bad_alloc();
  }
};

// Answers by the test's hand.
class WritingWorkers final : public CalledWorkers {
 public:
  StatusOr<std::unique_ptr<net::HttpCall>> Start(const Worker&, net::Shard& shard,
                                                 net::HttpRequest request,
                                                 net::HttpCallEvents& events) override {
    LocalCall made = MakeLocalCall(shard, std::move(request), events, 1 << 20);
    exchange = std::move(made.exchange);
    return std::move(made.call);
  }

  std::unique_ptr<net::Exchange> exchange;  // of the last one
};

class StatusOnly final : public net::HttpCallEvents {
 public:
  std::atomic<int> status{0};

 private:
  void OnHead(net::ResponseHead& head) override { status = head.status; }
  void OnBody(std::string_view) override {}
  void OnDone() override {}
  void OnFailed(net::CallFailure, const std::string&) override {}
};

class ProxyCallTest : public testing::Test {
 protected:
  void Begin(GatewayOptions options) {
    gateway_ = std::make_unique<GatewayOnShard>(std::move(options));
  }
  ~ProxyCallTest() override {
    if (gateway_ == nullptr) return;
    gateway_->Run([this] { asked_ = {}; });
    gateway_.reset();
  }
  template <typename Task>
  void Run(Task task) {
    gateway_->Run(std::move(task));
  }
  Gateway& gateway() { return gateway_->gateway(); }
  // Of a model, or of none.
  void Ask(const std::string& path, const std::string& model = "") {
    Run([&] {
      net::HttpRequest request;
      request.method = model.empty() ? "GET" : "POST";
      request.path = path;
      if (!model.empty()) {
        request.body.reserve(256);
        request.body = R"({"model":")" + model + R"("})";
      }
      asked_ = MakeLocalCall(gateway_->shard(), std::move(request), client_, 1 << 20);
      ProxyCall::Start(gateway_->on_shard(), std::move(asked_.exchange));
    });
  }

  // As if another request had the only place, until Leave().
  void TakePlace() {
    std::shared_ptr<AdmissionQueue::Ticket> none;
    ASSERT_EQ(gateway().admission().Enter(
                  gateway_->shard(), Priority::kDefault, [] {}, &none),
              AdmissionQueue::Result::kPlace);
  }
  void Leave() {
    gateway().admission().Leave();
    Run([] {});
  }
  static GatewayOptions OneAtATime() {
    GatewayOptions options;
    options.admission.requests = 1;
    options.load_interval = Duration::zero();
    return options;
  }

  StatusOnly client_;
  std::unique_ptr<GatewayOnShard> gateway_;
  LocalCall asked_;
};

// It went to a worker of the set from before it waited, which had been removed meanwhile.
TEST_F(ProxyCallTest, ARequestThatHasWaitedToBeAdmittedGoesToAWorkerOfNow) {
  const SilentPort before;
  const SilentPort after;
  Begin(OneAtATime());
  const WorkerPtr removed = gateway_->Add(before.url());
  TakePlace();
  Ask("/get_server_info");
  ASSERT_EQ(gateway().queued(), 1);
  ASSERT_TRUE(gateway().RemoveWorker(before.url()));
  const WorkerPtr added = gateway_->Add(after.url());
  Leave();
  EXPECT_EQ(removed->total_requests(), 0U);
  EXPECT_EQ(added->total_requests(), 1U);
}

// Its model had not been read: all workers had been alike.
TEST_F(ProxyCallTest, ARequestThatHasWaitedGoesToItsModelThoughModelsBecameKnownMeanwhile) {
  const SilentPort first;
  const SilentPort second;
  Begin(OneAtATime());
  const WorkerPtr other = gateway_->Add(first.url());
  TakePlace();
  Ask("/v1/completions", "b");
  ASSERT_EQ(gateway().queued(), 1);
  gateway().workers().SetModels(*other, {"a"});
  const WorkerPtr added = gateway_->Add(second.url());
  gateway().workers().SetModels(*added, {"b"});
  Leave();
  EXPECT_EQ(other->total_requests(), 0U);
  EXPECT_EQ(added->total_requests(), 1U);
}

TEST_F(ProxyCallTest, AWorkerThatWasRemovedIsNotChosenByARequestThatHasNoOther) {
  const SilentPort first;
  const SilentPort second;
  GatewayOptions options = OneAtATime();
  options.strict_models = true;
  Begin(std::move(options));
  const WorkerPtr removed = gateway_->Add(first.url());
  gateway().workers().SetModels(*removed, {"a"});
  const WorkerPtr other = gateway_->Add(second.url());
  gateway().workers().SetModels(*other, {"b"});
  TakePlace();
  Ask("/v1/completions", "a");
  ASSERT_EQ(gateway().queued(), 1);
  ASSERT_TRUE(gateway().RemoveWorker(first.url()));
  Leave();
  EXPECT_EQ(removed->total_requests(), 0U);
  EXPECT_EQ(other->total_requests(), 0U);
  // It comes at the end of a turn.
  for (int i = 0; i < 1000 && client_.status == 0; ++i) Run([] {});
  EXPECT_EQ(client_.status, 503);
}

// It was owned by its shard, so that what ended the others did not end it: its client waited for half an hour.
TEST_F(ProxyCallTest, ARequestThatThereIsNoMemoryForIsRefusedAtOnceAndAfterItHasWaited) {
  FullWorkers workers;
  Begin(OneAtATime());
  gateway().UseTokens(&workers);
  const WorkerPtr worker = gateway_->Add("grpc://127.0.0.1:9");
  worker->SetHealth(Health::kHealthy);
  for (const bool waits : {false, true}) {
    client_.status = 0;
    if (waits) TakePlace();
    Ask("/v1/completions", "m");
    EXPECT_EQ(gateway().queued(), waits ? 1 : 0);
    if (waits) Leave();
    for (int i = 0; i < 1000 && client_.status == 0; ++i) Run([] {});
    EXPECT_EQ(client_.status, 503) << waits;
    EXPECT_EQ(worker->requests(), 0) << waits;
    Run([&] { EXPECT_EQ(gateway_->on_shard().calls(), 0U) << waits; });
  }
  EXPECT_EQ(worker->total_requests(), 2U);
}

// The silence of a worker whose answer nobody read was taken for a hang.
TEST_F(ProxyCallTest, ARequestWhoseClientDoesNotReadDoesNotWaitForItsWorker) {
  WritingWorkers workers;
  Begin(OneAtATime());
  gateway().UseTokens(&workers);
  const WorkerPtr worker = gateway_->Add("grpc://127.0.0.1:9");
  worker->SetHealth(Health::kHealthy);
  for (const bool leaves : {false, true}) {
    Ask("/v1/completions", "m");
    Run([&] {
      ASSERT_NE(workers.exchange, nullptr);
      EXPECT_EQ(worker->awaiting(), 1);
      asked_.call->Pause();
      net::HttpResponse head;
      head.content_type = "text/event-stream";
      workers.exchange->StartStream(std::move(head));
      workers.exchange->Write("data: " + std::string(ProxyCall::kHighWater, 'x') + "\n\n");
    });
    gateway_->WaitUntil([&] { return worker->awaiting() == 0; });
    EXPECT_EQ(worker->requests(), 1);
    if (leaves) {
      Run([&] { asked_.call.reset(); });
    } else {
      Run([&] { asked_.call->Resume(); });
      gateway_->WaitUntil([&] { return worker->awaiting() == 1; });
      Run([&] { workers.exchange->End(); });
    }
    gateway_->WaitUntil([&] { return worker->requests() == 0; });
    EXPECT_EQ(worker->awaiting(), 0);
    Run([&] { workers.exchange.reset(); });
  }
}

// One client's video, that no worker could read, opened the breakers of them all.
TEST_F(ProxyCallTest, MediaThatCannotBeReadAreTriedOnceAndCountAgainstNoWorker) {
  WritingWorkers workers;
  GatewayOptions options;
  options.load_interval = Duration::zero();
  options.breaker.failure_threshold = 1;
  Begin(std::move(options));
  gateway().UseTokens(&workers);
  const WorkerPtr all[] = {gateway_->Add("grpc://127.0.0.1:9"),
                           gateway_->Add("grpc://127.0.0.1:10")};
  for (const WorkerPtr& worker : all) worker->SetHealth(Health::kHealthy);
  const auto asked = [&] { return all[0]->total_requests() + all[1]->total_requests(); };
  const auto fail = [&](int status, std::string_view reason) {
    Run([&] {
      net::HttpResponse failure;
      failure.status = status;
      failure.headers.emplace_back(kFailureHeader, reason);
      failure.body = "{}";
      workers.exchange->Respond(std::move(failure));
    });
  };
  const auto wait_for_end = [&](int status) {
    gateway_->WaitUntil([&] {
      return client_.status == status && all[0]->requests() == 0 && all[1]->requests() == 0;
    });
    client_.status = 0;
  };
  for (uint64_t i = 1; i <= 4; ++i) {
    Ask("/v1/completions", "m");
    fail(500, kMediaFailed);
    wait_for_end(500);
    EXPECT_EQ(asked(), i);
  }
  // What reads them is away: another worker's may be there.
  Ask("/v1/completions", "m");
  fail(503, kMediaFailed);
  gateway_->WaitUntil([&] { return asked() == 6; });
  fail(500, kMediaFailed);
  wait_for_end(500);
  for (const WorkerPtr& worker : all) {
    EXPECT_EQ(worker->breaker().state(), Breaker::State::kClosed);
  }
  // All else is the worker's.
  Ask("/v1/completions", "m");
  fail(500, "other");
  gateway_->WaitUntil([&] { return asked() == 8; });
  fail(500, "other");
  wait_for_end(500);
  for (const WorkerPtr& worker : all) {
    EXPECT_EQ(worker->breaker().state(), Breaker::State::kOpen);
  }
}

}  // namespace
}  // namespace portico::router
