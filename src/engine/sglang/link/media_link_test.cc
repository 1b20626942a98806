#include "engine/sglang/link/media_link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "text/json.h"

namespace portico::sglang {
namespace {

constexpr std::chrono::seconds kMediaTestTime{120};
constexpr size_t kUnsent = 1000;

// A process that reads media, as a thread: it is told what each request is answered.
class FakeHelper {
 public:
  explicit FakeHelper(std::string address) : address_(std::move(address)) {
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, address_.data(), address_.size());
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
    EXPECT_EQ(listen(listener_, 4), 0);
  }
  ~FakeHelper() {
    Hang();
    close(listener_);
    unlink(address_.c_str());
  }

  // The next request of the connection, a new one where there is none. Empty: it has been closed.
  std::string Receive() {
    if (connection_ < 0) connection_ = accept(listener_, nullptr, nullptr);
    uint32_t size = 0;
    std::string bytes = Read(sizeof(size));
    if (bytes.empty()) return bytes;
    std::memcpy(&size, bytes.data(), sizeof(size));
    const std::string head = Read(size);
    const StatusOr<Json> asked = Json::Parse(head);
    for (const Json& item : asked->Find("media")->as_array()) {
      Read(static_cast<size_t>(item.GetInt("size", 0)));
    }
    return head;
  }
  void Send(const std::string& head, const std::string& more = "") const {
    const auto size = static_cast<uint32_t>(head.size());
    std::string bytes(sizeof(size), '\0');
    std::memcpy(bytes.data(), &size, sizeof(size));
    bytes += head + more;
    EXPECT_EQ(send(connection_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // One token, and bytes of a message.
  void SendInputs(size_t bytes) const {
    // A msgpack string.
    std::string made{'\xdb', '\0', static_cast<char>(bytes >> 16), static_cast<char>(bytes >> 8),
                     static_cast<char>(bytes)};
    made += std::string(bytes, 'x');
    Send(Json(JsonObject{{"ids", 8}, {"media", static_cast<int64_t>(made.size())}}).Dump(),
         std::string("\7\0\0\0\0\0\0\0", 8) + made);
  }
  void Hang() {
    if (connection_ >= 0) close(connection_);
    connection_ = -1;
  }

 private:
  std::string Read(size_t size) const {
    std::string bytes(size, '\0');
    size_t at = 0;
    while (at < size) {
      const ssize_t got = recv(connection_, bytes.data() + at, size - at, 0);
      if (got <= 0) return "";
      at += static_cast<size_t>(got);
    }
    return bytes;
  }

  const std::string address_;
  int listener_ = -1;
  int connection_ = -1;
};

class EndsSink final : public TokenSink {
 public:
  ShardIndex shard() const override { return kNoShard; }
  void Deliver(std::vector<TokenDelta> batch) override {
    const MutexLock lock(&mutex_);
    for (TokenDelta& delta : batch) ends_.push_back(std::move(delta.error));
  }
  std::vector<Status> ends() {
    const MutexLock lock(&mutex_);
    return ends_;
  }

 private:
  Mutex mutex_;
  std::vector<Status> ends_ ABSL_GUARDED_BY(mutex_);
};

class MediaLinkTest : public testing::Test {
 protected:
  MediaLinkTest() {
    facts_.media_socket = address_;
    facts_.media_helpers = 1;
    EXPECT_EQ(pipe(engine_), 0);
    link_ = std::make_unique<MediaLink>(facts_, engine_[0], kUnsent);
  }
  ~MediaLinkTest() override {
    link_->Stop(FinishReason::kAbort, OkStatus());
    close(engine_[0]);
    EndEngine();
  }

  static std::shared_ptr<RequestMedia> Video(int32_t choices = 1) {
    auto media = std::make_shared<RequestMedia>();
    MediaItem& item = media->items.emplace_back();
    item.kind = MediaKind::kVideo;
    item.field = "video_data";
    item.bytes = std::make_shared<const std::string>("VIDEO");
    media->choices = choices;
    return media;
  }
  Status Submit(StreamId stream, std::shared_ptr<const RequestMedia> media) {
    MediaLink::Work work;
    work.stream = stream;
    work.sink = &sink_;
    work.media = std::move(media);
    work.ids = std::make_shared<const std::vector<TokenId>>(1, 1);
    work.encode = [this](const MediaInputs&) { return std::string(frame_bytes_, 'f'); };
    work.send = [this](const std::string&, std::shared_ptr<void> held) {
      const MutexLock lock(&mutex_);
      sent_.push_back(std::move(held));
      return true;
    };
    return link_->Submit(std::move(work));
  }
  size_t sent() {
    const MutexLock lock(&mutex_);
    return sent_.size();
  }
  void EndEngine() {
    if (engine_[1] >= 0) close(engine_[1]);
    engine_[1] = -1;
  }
  // What libzmq does once a frame is written.
  void LetGo() {
    const MutexLock lock(&mutex_);
    for (auto& held : sent_) held.reset();
  }
  static void WaitUntil(const std::function<bool()>& so) {
    const TimePoint until = Clock::now() + kMediaTestTime;
    while (!so()) {
      ASSERT_LT(Clock::now(), until);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  Status EndOf(size_t count) {
    WaitUntil([&] { return sink_.ends().size() >= count; });
    return sink_.ends().back();
  }

  const std::string address_ = testing::TempDir() + "media-" + std::to_string(getpid()) + ".sock";
  FakeHelper helper_{address_};
  Facts facts_;
  int engine_[2] = {-1, -1};  // a pipe: it ends with the second
  EndsSink sink_;
  size_t frame_bytes_ = 10;
  Mutex mutex_;
  std::vector<std::shared_ptr<void>> sent_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<MediaLink> link_;
};

// It was UNAVAILABLE, which every front end takes for a reason to ask again: each time a process ended.
TEST_F(MediaLinkTest, MediaAtWhichTheirProcessEndsAreTheClientsFault) {
  ASSERT_TRUE(Submit(1, Video()).ok());
  EXPECT_FALSE(helper_.Receive().empty());
  helper_.Hang();
  const Status error = EndOf(1);
  EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(error), "video_data");
  ASSERT_TRUE(Submit(2, Video()).ok());
  EXPECT_FALSE(helper_.Receive().empty());
  helper_.SendInputs(100);
  WaitUntil([this] { return sent() == 1; });
}

// It was: an engine that ends takes its processes with it, and they may be seen to end first.
TEST_F(MediaLinkTest, TheEndOfTheEngineIsNotTheFaultOfTheMediaThatAreRead) {
  ASSERT_TRUE(Submit(1, Video()).ok());
  EXPECT_FALSE(helper_.Receive().empty());
  EndEngine();
  helper_.Hang();
  const Status error = EndOf(1);
  EXPECT_EQ(error.code(), StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(error), "");  // another engine may take it
}

// The next request was written to it, and blamed for its end.
TEST_F(MediaLinkTest, AProcessThatSaysThatItEndsIsAskedNothingMore) {
  ASSERT_TRUE(Submit(1, Video()).ok());
  EXPECT_FALSE(helper_.Receive().empty());
  helper_.Send(R"({"error":"it takes longer than 60 s","status":400,"ends":true})");
  EXPECT_EQ(EndOf(1).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(Submit(2, Video()).ok());
  EXPECT_TRUE(helper_.Receive().empty());
  helper_.Hang();
  EXPECT_FALSE(helper_.Receive().empty());
  helper_.SendInputs(100);
  WaitUntil([this] { return sent() == 1; });
  EXPECT_EQ(sink_.ends().size(), 1u);
}

TEST_F(MediaLinkTest, AProcessThatEndsBetweenTwoRequestsIsNobodysFault) {
  ASSERT_TRUE(Submit(1, Video()).ok());
  EXPECT_FALSE(helper_.Receive().empty());
  helper_.SendInputs(100);
  WaitUntil([this] { return sent() == 1; });
  helper_.Hang();
  ASSERT_TRUE(Submit(2, Video()).ok());
  EXPECT_FALSE(helper_.Receive().empty());
  helper_.SendInputs(100);
  WaitUntil([this] { return sent() == 2; });
}

TEST_F(MediaLinkTest, AnErrorSaysWhoseItIs) {
  ASSERT_TRUE(Submit(1, Video()).ok());
  helper_.Receive();
  helper_.Send(R"({"error":"no video stream","status":400})");
  Status error = EndOf(1);
  EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MessageOf(error), "the media cannot be read: no video stream");
  ASSERT_TRUE(Submit(2, Video()).ok());
  helper_.Receive();  // on the same connection
  helper_.Send(R"({"error":"CUDA out of memory","status":500})");
  error = EndOf(2);
  EXPECT_EQ(error.code(), StatusCode::kInternal);
  EXPECT_EQ(ReasonOf(error), kMediaFailed);
  ASSERT_TRUE(Submit(3, Video()).ok());
  helper_.Receive();
  helper_.Send("no object");
  EXPECT_EQ(ReasonOf(EndOf(3)), kMediaFailed);
}

// With n 128, 300 MB of an image became 39 GB on their way to the scheduler.
TEST_F(MediaLinkTest, ChoicesThatTakeMoreThanTheRequestMayAreRefusedTogether) {
  const auto media = Video(/*choices=*/3);
  media->max_made_bytes = 3000;
  for (StreamId stream : {1, 2, 3}) ASSERT_TRUE(Submit(stream, media).ok());
  helper_.Receive();
  helper_.SendInputs(996);  // and a head of 5
  const Status error = EndOf(3);
  EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(error), "n");
  EXPECT_EQ(sent(), 0u);
}

TEST_F(MediaLinkTest, FramesWaitForTheBytesBeforeThemToLeave) {
  frame_bytes_ = kUnsent / 2 + 1;
  const auto media = Video(/*choices=*/4);
  for (StreamId stream : {1, 2, 3, 4}) ASSERT_TRUE(Submit(stream, media).ok());
  helper_.Receive();
  helper_.SendInputs(100);
  WaitUntil([this] { return sent() == 2; });
  WaitUntil([this] { return link_->waiting() == 2; });
  EXPECT_TRUE(link_->Abort(1));  // also while it waits
  EXPECT_EQ(EndOf(1), OkStatus());
  EXPECT_EQ(sent(), 2u);
  LetGo();
  WaitUntil([this] { return sent() == 3; });
  WaitUntil([this] { return link_->waiting() == 0; });
}

// A batch was refused from its 66th prompt on, also by a server with nothing to do.
TEST_F(MediaLinkTest, ABatchOfManyPromptsWaitsForItsTurns) {
  for (StreamId stream = 1; stream <= 4096; ++stream) {
    ASSERT_TRUE(Submit(stream, Video()).ok()) << stream;
  }
  EXPECT_EQ(link_->waiting(), 4096);
  link_->AbortAll();
}

}  // namespace
}  // namespace portico::sglang
