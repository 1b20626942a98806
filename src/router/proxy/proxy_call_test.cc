#include "router/proxy/proxy_call.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "base/metrics.h"
#include "router/fleet/token_workers.h"
#include "router/gateway.h"
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
class FullWorkers final : public TokenWorkers {
 public:
  void Probe(const WorkerPtr&, bool, Duration, ProbeDone) override {}
  void AskLoad(const WorkerPtr&, Duration, LoadDone) override {}
  StatusOr<std::unique_ptr<net::HttpCall>> Start(const Worker&, net::Shard&, net::HttpRequest,
                                                 net::HttpCallEvents&) override {
    throw std::bad_alloc();
  }
  void Keep(const WorkerSet&) override {}
};

// Answers by the test's hand.
class WritingWorkers final : public TokenWorkers {
 public:
  void Probe(const WorkerPtr&, bool, Duration, ProbeDone) override {}
  void AskLoad(const WorkerPtr&, Duration, LoadDone) override {}
  StatusOr<std::unique_ptr<net::HttpCall>> Start(const Worker&, net::Shard& shard,
                                                 net::HttpRequest request,
                                                 net::HttpCallEvents& events) override {
    LocalCall made = MakeLocalCall(shard, std::move(request), events, 1 << 20);
    exchange = std::move(made.exchange);
    return std::move(made.call);
  }
  void Keep(const WorkerSet&) override {}

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
    auto gateway = Gateway::Make(std::move(options), registry_);
    ASSERT_TRUE(gateway.ok()) << gateway.status();
    gateway_ = *std::move(gateway);
    gateway_shard_ = std::make_unique<GatewayShard>(shard_, *gateway_);
    shard_.Start();
  }
  ~ProxyCallTest() override {
    if (gateway_shard_ == nullptr) return;
    Turn([this] {
      gateway_shard_.reset();
      asked_ = {};
    });
    shard_.Stop();
  }
  template <typename Task>
  void Turn(Task task) {
    std::promise<void> done;
    shard_.Post([&] { task(); });
    shard_.Post([&] { done.set_value(); });
    done.get_future().wait();
  }
  WorkerPtr Add(const std::string& url) {
    auto spec = ParseWorkerUrl(url);
    EXPECT_TRUE(spec.ok()) << spec.status();
    auto added = gateway_->AddWorker(*std::move(spec));
    EXPECT_TRUE(added.ok()) << added.status();
    return *std::move(added);
  }
  // Of a model, or of none.
  void Ask(const std::string& path, const std::string& model = "") {
    Turn([&] {
      net::HttpRequest request;
      request.method = model.empty() ? "GET" : "POST";
      request.path = path;
      if (!model.empty()) {
        request.body.reserve(256);
        request.body = R"({"model":")" + model + R"("})";
      }
      asked_ = MakeLocalCall(shard_, std::move(request), client_, 1 << 20);
      ProxyCall::Start(*gateway_shard_, std::move(asked_.exchange));
    });
  }

  Registry registry_;
  // As if another request had the only place, until Leave().
  void TakePlace() {
    std::shared_ptr<AdmissionQueue::Ticket> none;
    ASSERT_EQ(gateway_->admission().Enter(
                  shard_, Priority::kDefault, [] {}, &none),
              AdmissionQueue::Result::kPlace);
  }
  void Leave() {
    gateway_->admission().Leave();
    Turn([] {});
  }
  template <typename Condition>
  void WaitUntil(Condition condition) {
    for (int i = 0; i < 100000 && !condition(); ++i) Turn([] {});
    EXPECT_TRUE(condition());
  }
  static GatewayOptions OneAtATime() {
    GatewayOptions options;
    options.admission.requests = 1;
    options.load_interval = Duration::zero();
    return options;
  }

  StatusOnly client_;
  net::Shard shard_{0};
  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<GatewayShard> gateway_shard_;
  LocalCall asked_;
};

// It went to a worker of the set from before it waited, which had been removed meanwhile.
TEST_F(ProxyCallTest, ARequestThatHasWaitedToBeAdmittedGoesToAWorkerOfNow) {
  const SilentPort before;
  const SilentPort after;
  Begin(OneAtATime());
  const WorkerPtr removed = Add(before.url());
  TakePlace();
  Ask("/get_server_info");
  ASSERT_EQ(gateway_->queued(), 1);
  ASSERT_TRUE(gateway_->RemoveWorker(before.url()));
  const WorkerPtr added = Add(after.url());
  Leave();
  EXPECT_EQ(removed->total_requests(), 0U);
  EXPECT_EQ(added->total_requests(), 1U);
}

// Its model had not been read: all workers had been alike.
TEST_F(ProxyCallTest, ARequestThatHasWaitedGoesToItsModelThoughModelsBecameKnownMeanwhile) {
  const SilentPort first;
  const SilentPort second;
  Begin(OneAtATime());
  const WorkerPtr other = Add(first.url());
  TakePlace();
  Ask("/v1/completions", "b");
  ASSERT_EQ(gateway_->queued(), 1);
  gateway_->workers().SetModels(*other, {"a"});
  const WorkerPtr added = Add(second.url());
  gateway_->workers().SetModels(*added, {"b"});
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
  const WorkerPtr removed = Add(first.url());
  gateway_->workers().SetModels(*removed, {"a"});
  const WorkerPtr other = Add(second.url());
  gateway_->workers().SetModels(*other, {"b"});
  TakePlace();
  Ask("/v1/completions", "a");
  ASSERT_EQ(gateway_->queued(), 1);
  ASSERT_TRUE(gateway_->RemoveWorker(first.url()));
  Leave();
  EXPECT_EQ(removed->total_requests(), 0U);
  EXPECT_EQ(other->total_requests(), 0U);
  // It comes at the end of a turn.
  for (int i = 0; i < 1000 && client_.status == 0; ++i) Turn([] {});
  EXPECT_EQ(client_.status, 503);
}

// It was owned by its shard, so that what ended the others did not end it: its client waited for half an hour.
TEST_F(ProxyCallTest, ARequestThatThereIsNoMemoryForIsRefusedAtOnceAndAfterItHasWaited) {
  FullWorkers workers;
  Begin(OneAtATime());
  gateway_->UseTokens(&workers);
  const WorkerPtr worker = Add("grpc://127.0.0.1:9");
  worker->SetHealth(Health::kHealthy);
  for (const bool waits : {false, true}) {
    client_.status = 0;
    if (waits) TakePlace();
    Ask("/v1/completions", "m");
    EXPECT_EQ(gateway_->queued(), waits ? 1 : 0);
    if (waits) Leave();
    for (int i = 0; i < 1000 && client_.status == 0; ++i) Turn([] {});
    EXPECT_EQ(client_.status, 503) << waits;
    EXPECT_EQ(worker->requests(), 0) << waits;
    Turn([&] { EXPECT_EQ(gateway_shard_->calls(), 0U) << waits; });
  }
  EXPECT_EQ(worker->total_requests(), 2U);
}

// The silence of a worker whose answer nobody read was taken for a hang.
TEST_F(ProxyCallTest, ARequestWhoseClientDoesNotReadDoesNotWaitForItsWorker) {
  WritingWorkers workers;
  Begin(OneAtATime());
  gateway_->UseTokens(&workers);
  const WorkerPtr worker = Add("grpc://127.0.0.1:9");
  worker->SetHealth(Health::kHealthy);
  for (const bool leaves : {false, true}) {
    Ask("/v1/completions", "m");
    Turn([&] {
      ASSERT_NE(workers.exchange, nullptr);
      EXPECT_EQ(worker->awaiting(), 1);
      asked_.call->Pause();
      net::HttpResponse head;
      head.content_type = "text/event-stream";
      workers.exchange->StartStream(std::move(head));
      workers.exchange->Write("data: " + std::string(ProxyCall::kHighWater, 'x') + "\n\n");
    });
    WaitUntil([&] { return worker->awaiting() == 0; });
    EXPECT_EQ(worker->requests(), 1);
    if (leaves) {
      Turn([&] { asked_.call.reset(); });
    } else {
      Turn([&] { asked_.call->Resume(); });
      WaitUntil([&] { return worker->awaiting() == 1; });
      Turn([&] { workers.exchange->End(); });
    }
    WaitUntil([&] { return worker->requests() == 0; });
    EXPECT_EQ(worker->awaiting(), 0);
    Turn([&] { workers.exchange.reset(); });
  }
}

}  // namespace
}  // namespace portico::router
