#include "engine/sglang/launch/attached_proof.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

namespace portico::sglang {
namespace {

// A launcher that reads one line and answers with another.
class OneProof {
 public:
  explicit OneProof(std::string answer) {
    std::string folder = testing::TempDir() + "proof-XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    listener_ = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, address().data(), address().size());
    EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    thread_ = std::thread([this, answer = std::move(answer)] {
      const int connection = accept(listener_, nullptr, nullptr);
      char byte = 0;
      while (read(connection, &byte, 1) == 1 && byte != '\n') got_.push_back(byte);
      EXPECT_EQ(write(connection, answer.data(), answer.size()),
                static_cast<ssize_t>(answer.size()));
      close(connection);
    });
  }
  ~OneProof() {
    Join();
    close(listener_);
    std::filesystem::remove_all(folder_);
  }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  std::string address() const { return folder_ + "/s"; }
  const std::string& got() const { return got_; }

 private:
  std::string folder_;
  int listener_ = -1;
  std::string got_;
  std::thread thread_;
};

TEST(AttachedProof, ALauncherThatReadsItAsMeantIsJoined) {
  OneProof launcher("{\"event\": \"proved\"}\n");
  EXPECT_TRUE(ProveAttached(launcher.address(), R"({"prove":[]})").ok());
  launcher.Join();
  EXPECT_EQ(launcher.got(), R"({"prove":[]})");
}

TEST(AttachedProof, OneThatReadsSomethingElseSaysWhat) {
  OneProof launcher("{\"event\": \"failed\", \"message\": \"rid is missing\"}\n");
  const Status refused = ProveAttached(launcher.address(), "{}");
  EXPECT_EQ(refused.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(MessageOf(refused), "rid is missing");
}

TEST(AttachedProof, OneThatHangsUpOrIsNotThereIsUnavailable) {
  {
    OneProof launcher("half a li");
    EXPECT_EQ(ProveAttached(launcher.address(), "{}").code(), StatusCode::kUnavailable);
  }
  {
    OneProof launcher("no JSON\n");
    EXPECT_EQ(ProveAttached(launcher.address(), "{}").code(), StatusCode::kUnavailable);
  }
  EXPECT_EQ(ProveAttached("/nowhere/at/all", "{}").code(), StatusCode::kUnavailable);
  EXPECT_EQ(ProveAttached(std::string(200, 'x'), "{}").code(), StatusCode::kUnavailable);
}

TEST(AttachedProof, AProcessHasOneStart) {
  const auto own = ProcessStart(getpid());
  ASSERT_TRUE(own.ok());
  EXPECT_GT(*own, 0);
  EXPECT_EQ(*ProcessStart(getpid()), *own);
  EXPECT_NE(*ProcessStart(1), *own);
  EXPECT_EQ(ProcessStart(-7).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace portico::sglang
