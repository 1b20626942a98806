// How calls end: by their client, their deadline, a bound, a drain.
#include <gmock/gmock.h>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "net/grpc/grpc_test_server.h"

namespace portico::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Keeps calls that nobody finishes, and remembers how they have ended.
class Keeper {
 public:
  void Keep(std::unique_ptr<GrpcCall> call) {
    const MutexLock lock(&mutex_);
    call->set_on_closed([this](Status why) {
      const MutexLock inner(&mutex_);
      ends_.push_back(why.code());
    });
    calls_.push_back(std::move(call));
  }
  std::vector<StatusCode> ends() {
    const MutexLock lock(&mutex_);
    return ends_;
  }
  size_t kept() {
    const MutexLock lock(&mutex_);
    return calls_.size();
  }
  GrpcCall& last() {
    const MutexLock lock(&mutex_);
    return *calls_.back();
  }
  // On the shard.
  void Clear() {
    std::vector<std::unique_ptr<GrpcCall>> calls;
    const MutexLock lock(&mutex_);
    calls.swap(calls_);
  }

 private:
  Mutex mutex_;
  std::vector<std::unique_ptr<GrpcCall>> calls_ ABSL_GUARDED_BY(mutex_);
  std::vector<StatusCode> ends_ ABSL_GUARDED_BY(mutex_);
};

struct KeepingServer {
  explicit KeepingServer(ServerOptions options = {}) {
    GrpcMethods methods;
    methods.Add("/test.Keep/Unary", [this](std::unique_ptr<GrpcCall> call, std::string) {
      call->SendInitialMetadata();
      keeper.Keep(std::move(call));
    });
    methods.AddStreaming("/test.Keep/Stream", [this](std::unique_ptr<GrpcCall> call) {
      keeper.Keep(std::move(call));
      keeper.last().Read([](std::string) {}, [] {});
    });
    server.emplace(std::move(methods), std::move(options));
  }
  ~KeepingServer() {
    (*server)->OnShard([this] { keeper.Clear(); });
  }
  int port() const { return server->port(); }

  Keeper keeper;
  std::optional<GrpcTestServer> server;
};

int Begin(Http2TestClient& client, std::string_view method, Headers headers = {}, bool end = true) {
  return client.Send("POST", method, GrpcHead(std::move(headers)), GrpcMessage("x"), end);
}

TEST(GrpcCallEnd, ACancelledCallTellsItsHandler) {
  KeepingServer server;
  Http2TestClient client(server.port());
  for (const char* method : {"/test.Keep/Unary", "/test.Keep/Stream"}) {
    int id = Begin(client, method, {}, method == std::string("/test.Keep/Unary"));
    const size_t before = server.keeper.ends().size();
    TestServer::WaitFor([&] { return server.keeper.kept() == before + 1; });
    client.Reset(id);
    TestServer::WaitFor([&] { return server.keeper.ends().size() == before + 1; });
    EXPECT_EQ(server.keeper.ends().back(), StatusCode::kCancelled) << method;
  }
}

TEST(GrpcCallEnd, ALostConnectionEndsAllItsCalls) {
  KeepingServer server;
  {
    Http2TestClient client(server.port());
    for (int i = 0; i < 10; ++i) Begin(client, "/test.Keep/Stream", {}, false);
    TestServer::WaitFor([&] { return server.keeper.kept() == 10; });
  }
  TestServer::WaitFor([&] { return server.keeper.ends().size() == 10; });
}

TEST(GrpcCallEnd, APassedDeadlineIsAnsweredAndTold) {
  KeepingServer server;
  Http2TestClient client(server.port());
  size_t ended = 0;
  for (const std::string method : {"/test.Keep/Unary", "/test.Keep/Stream"}) {
    ++ended;
    // The message may come after the deadline; then no handler is asked.
    TestServer::WaitFor([&] {
      int id = Begin(client, method, {{"grpc-timeout", "20m"}}, method == "/test.Keep/Unary");
      EXPECT_EQ(CodeOf(client.Wait(id)), StatusCode::kDeadlineExceeded) << method;
      return server.keeper.ends().size() == ended;
    });
  }
  EXPECT_THAT(server.keeper.ends(),
              ElementsAre(StatusCode::kDeadlineExceeded, StatusCode::kDeadlineExceeded));
}

TEST(GrpcCallEnd, ADeadlineHoldsForTheMessageTooAndMayHavePassedAlready) {
  KeepingServer server;
  Http2TestClient client(server.port());
  int waiting = client.Send("POST", "/test.Keep/Unary", GrpcHead({{"grpc-timeout", "20m"}}),
                            GrpcMessage("abc").substr(0, 6), false);
  EXPECT_EQ(CodeOf(client.Wait(waiting)), StatusCode::kDeadlineExceeded);
  int late = Begin(client, "/test.Keep/Unary", {{"grpc-timeout", "0n"}});
  EXPECT_EQ(CodeOf(client.Wait(late)), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(server.keeper.kept(), 0u);
}

TEST(GrpcCallEnd, AFinishedCallHasNoDeadlineAndIsNotTold) {
  GrpcMethods methods;
  TimePoint deadline;
  std::unique_ptr<GrpcCall> kept;
  bool told = false;
  methods.Add("/test.Finish/Now", [&](std::unique_ptr<GrpcCall> call, std::string) {
    deadline = call->deadline();
    call->set_on_closed([&](Status) { told = true; });
    call->Reply("x");
    kept = std::move(call);
  });
  GrpcTestServer server(std::move(methods));
  Http2TestClient client(server.port());
  int id = Begin(client, "/test.Finish/Now", {{"grpc-timeout", "99999999H"}});
  EXPECT_EQ(CodeOf(client.Wait(id)), StatusCode::kOk);
  EXPECT_EQ(deadline, TimePoint::max());
  int timed = Begin(client, "/test.Finish/Now", {{"grpc-timeout", "1M"}});
  EXPECT_EQ(CodeOf(client.Wait(timed)), StatusCode::kOk);
  EXPECT_LT(deadline, TimePoint::max());
  server->OnShard([&] { kept.reset(); });
  EXPECT_FALSE(told);
}

TEST(GrpcCallEnd, ASlowReaderIsCutOffAtTheBoundAlone) {
  ServerOptions options;
  options.max_unsent_bytes = 100000;
  KeepingServer server(std::move(options));
  Http2TestClient client(server.port(), /*window=*/1000);
  client.ReadSettings();
  int slow = Begin(client, "/test.Keep/Unary");
  TestServer::WaitFor([&] { return server.keeper.kept() == 1; });
  auto write = [&](size_t messages) {
    (*server.server)->OnShard([&] {
      for (size_t i = 0; i < messages; ++i) server.keeper.last().Write(std::string(10000, 'x'));
    });
  };
  write(9);
  EXPECT_THAT(server.keeper.ends(), IsEmpty());
  write(3);
  EXPECT_EQ(client.Wait(slow).error, static_cast<uint32_t>(NGHTTP2_ENHANCE_YOUR_CALM));
  EXPECT_THAT(server.keeper.ends(), ElementsAre(StatusCode::kResourceExhausted));
  EXPECT_EQ(CodeOf(client.Wait(Begin(client, "/test.Echo/Unary"))), StatusCode::kOk);
}

TEST(GrpcCallEnd, OneMessageMayBeLargerThanTheBound) {
  ServerOptions options;
  options.max_unsent_bytes = 1000;
  KeepingServer server(std::move(options));
  Http2TestClient client(server.port(), /*window=*/5000);
  client.ReadSettings();
  int id = Begin(client, "/test.Keep/Unary");
  TestServer::WaitFor([&] { return server.keeper.kept() == 1; });
  (*server.server)->OnShard([&] { server.keeper.last().Write(std::string(20000, 'x')); });
  (*server.server)->OnShard([&] { server.keeper.last().Finish(OkStatus()); });
  for (int i = 0; i < 4; ++i) {
    client.ReadUntil([&] { return client.answer(id).body.size() == (i + 1u) * 5000; });
    client.Extend(id, 5000);
  }
  EXPECT_EQ(CodeOf(client.Wait(id)), StatusCode::kOk);
  EXPECT_EQ(client.answer(id).body.size(), 20005u);
}

TEST(GrpcCallEnd, ADrainLetsCallsFinishAndSaysGoaway) {
  KeepingServer server;
  Http2TestClient client(server.port());
  int id = Begin(client, "/test.Keep/Unary");
  TestServer::WaitFor([&] { return server.keeper.kept() == 1; });
  EXPECT_FALSE((*server.server)->server().Drain(Clock::now()));
  client.ReadUntil([&] { return client.goaways() == 2; });
  EXPECT_EQ(client.goaway_error(), 0u);
  (*server.server)->OnShard([&] { server.keeper.last().Reply("done"); });
  EXPECT_THAT(MessagesOf(client.Wait(id)), ElementsAre("done"));
  EXPECT_TRUE(client.ReadToEnd());
}

TEST(GrpcCallEnd, TheServerIsToldOfEveryCallOnce) {
  struct Completion {
    std::string method;
    bool registered;
    StatusCode code;
    size_t bytes;
    bool operator==(const Completion&) const = default;
  };
  Mutex mutex;
  std::vector<Completion> completions;
  ServerOptions options;
  options.grpc.on_complete = [&](const GrpcCall& call, StatusCode code, size_t bytes, Duration) {
    const MutexLock lock(&mutex);
    completions.push_back({call.method(), call.registered() != nullptr, code, bytes});
  };
  KeepingServer server(std::move(options));
  Http2TestClient client(server.port());
  client.Wait(Begin(client, "/test.Echo/Unary"));
  client.Wait(Begin(client, "/test.Echo/No"));
  client.Wait(Begin(client, "/test.Keep/Unary", {{"grpc-timeout", "10m"}}));
  client.Reset(Begin(client, "/test.Keep/Stream", {}, false));
  TestServer::WaitFor([&] {
    const MutexLock lock(&mutex);
    return completions.size() == 4;
  });
  const MutexLock lock(&mutex);
  EXPECT_THAT(completions,
              ElementsAre(Completion{"/test.Echo/Unary", true, StatusCode::kOk, 8},
                          Completion{"/test.Echo/No", false, StatusCode::kUnimplemented, 0},
                          Completion{"/test.Keep/Unary", true, StatusCode::kDeadlineExceeded, 0},
                          Completion{"/test.Keep/Stream", true, StatusCode::kCancelled, 0}));
}

TEST(GrpcCallEnd, AMessageThatDoesNotComeIsGivenUp) {
  ServerOptions options;
  options.body_timeout = std::chrono::milliseconds(50);
  KeepingServer server(std::move(options));
  Http2TestClient client(server.port());
  int id = client.Send("POST", "/test.Keep/Unary", GrpcHead(), "", false);
  EXPECT_EQ(CodeOf(client.Wait(id)), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(GrpcMessageOf(client.answer(id)), HasSubstr("took too long"));
}

TEST(GrpcCallEnd, AThousandStreamsOfOneConnectionAreAllServed) {
  GrpcTestServer server;
  Http2TestClient client(server.port());
  client.ReadSettings();
  std::vector<int> ids;
  for (int i = 0; i < 1000; ++i) {
    ids.push_back(client.Send("POST", "/test.Echo/Stream", GrpcHead(),
                              GrpcMessage(std::to_string(i)), false));
  }
  for (int id : ids) client.Body(id, GrpcMessage("end"), true);
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_THAT(MessagesOf(client.Wait(ids[i])),
                ElementsAre("[" + std::to_string(i) + "]", "[end]"));
  }
}

}  // namespace
}  // namespace portico::net
