#include "router/proxy/proxy_call.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "base/metrics.h"
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

class DeafClient final : public net::HttpCallEvents {
  void OnHead(net::ResponseHead&) override {}
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
  void Ask(const std::string& path) {
    Turn([this, &path] {
      net::HttpRequest request;
      request.method = "GET";
      request.path = path;
      asked_ = MakeLocalCall(shard_, std::move(request), client_, 1 << 20);
      ProxyCall::Start(*gateway_shard_, std::move(asked_.exchange));
    });
  }

  Registry registry_;
  DeafClient client_;
  net::Shard shard_{0};
  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<GatewayShard> gateway_shard_;
  LocalCall asked_;
};

// It went to a worker of the set from before it waited, which had been removed meanwhile.
TEST_F(ProxyCallTest, ARequestThatHasWaitedToBeAdmittedGoesToAWorkerOfNow) {
  const SilentPort before;
  const SilentPort after;
  GatewayOptions options;
  options.admission.requests = 1;
  options.load_interval = Duration::zero();
  Begin(std::move(options));
  const WorkerPtr removed = Add(before.url());
  std::shared_ptr<AdmissionQueue::Ticket> none;
  ASSERT_EQ(gateway_->admission().Enter(
                shard_, Priority::kDefault, [] {}, &none),
            AdmissionQueue::Result::kPlace);
  Ask("/get_server_info");
  ASSERT_EQ(gateway_->queued(), 1);
  ASSERT_TRUE(gateway_->RemoveWorker(before.url()));
  const WorkerPtr added = Add(after.url());
  gateway_->admission().Leave();
  Turn([] {});
  EXPECT_EQ(removed->total_requests(), 0U);
  EXPECT_EQ(added->total_requests(), 1U);
}

}  // namespace
}  // namespace portico::router
