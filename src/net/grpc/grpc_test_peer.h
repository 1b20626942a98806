// For tests of the gRPC client: a server whose every frame the test decides, on blocking sockets in
// the test's thread; and the client's side on its shard.
#pragma once

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <cerrno>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/grpc/grpc_channel.h"
#include "net/grpc/grpc_message.h"
#include "net/loop/test_server.h"

namespace portico::net {

// A listening socket. Connections wait in it until Accept().
class TestListener {
 public:
  explicit TestListener(int port = 0) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    int on = 1;
    setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    timeval limit = {kTestPatience, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 64), 0);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~TestListener() { Close(); }
  TestListener(const TestListener&) = delete;
  TestListener& operator=(const TestListener&) = delete;

  int port() const { return port_; }
  // -1 after kTestPatience.
  int Accept() { return accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC); }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
  int port_ = 0;
};

struct PeerRequest {
  Headers headers;
  std::string body;
  bool ended = false;
  bool closed = false;
  uint32_t error = 0;

  std::string Header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
    }
    return {};
  }
};

// The server's end of one connection.
class TestPeer {
 public:
  // `window`: of each stream, never extended; 0: the usual.
  explicit TestPeer(int fd, uint32_t max_streams = 100, uint32_t window = 0) : fd_(fd) {
    EXPECT_GE(fd, 0);
    timeval limit = {kTestPatience, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    nghttp2_session_callbacks* callbacks;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnClose);
    nghttp2_option* options;
    nghttp2_option_new(&options);
    nghttp2_option_set_no_auto_window_update(options, window > 0);
    nghttp2_session_server_new2(&session_, callbacks, this, options);
    nghttp2_option_del(options);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, max_streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window > 0 ? window : 1 << 20}};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, 2);
    nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, 64 << 20);
    Flush();
  }
  ~TestPeer() {
    nghttp2_session_del(session_);
    Close();
  }
  TestPeer(const TestPeer&) = delete;
  TestPeer& operator=(const TestPeer&) = delete;

  // Reads until `done`, the connection's end or kTestPatience of silence; the former's verdict.
  bool ReadUntil(const std::function<bool()>& done) {
    while (!done()) {
      char buffer[16384];
      const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
      if (got <= 0) {
        ended_ = got == 0 || errno != EAGAIN;
        return done();
      }
      nghttp2_session_mem_recv(session_, reinterpret_cast<uint8_t*>(buffer),
                               static_cast<size_t>(got));
      Flush();
    }
    return true;
  }
  // The nth request of the connection, from 0, once its head has come; its stream.
  int WaitForHead(size_t n = 0) {
    EXPECT_TRUE(ReadUntil([&] { return order_.size() > n; }));
    return order_.size() > n ? order_[n] : 0;
  }
  // Once all of it has come.
  int WaitForRequest(size_t n = 0) {
    const int id = WaitForHead(n);
    EXPECT_TRUE(ReadUntil([&] { return requests_[id].ended; }));
    return id;
  }
  void WaitForClose(int id) {
    EXPECT_TRUE(ReadUntil([&] { return requests_[id].closed; }));
  }
  PeerRequest& request(int id) { return requests_[id]; }
  size_t requests() const { return order_.size(); }
  bool ended() const { return ended_; }
  int goaways() const { return goaways_; }
  int pings() const { return pings_; }
  nghttp2_session* session() { return session_; }

  void Head(int id, Headers more = {}, std::string_view status = "200",
            std::string_view type = "application/grpc") {
    Headers headers = {{":status", std::string(status)}};
    if (!type.empty()) headers.emplace_back("content-type", type);
    headers.insert(headers.end(), more.begin(), more.end());
    auto fields = Fields(headers);
    nghttp2_data_provider body{};
    body.source.ptr = &bodies_[id];
    body.read_callback = ReadBody;
    nghttp2_submit_response(session_, id, fields.data(), fields.size(), &body);
    Flush();
  }
  void Data(int id, std::string_view bytes) {
    bodies_[id].bytes.append(bytes);
    nghttp2_session_resume_data(session_, id);
    Flush();
  }
  void Message(int id, std::string_view message) {
    std::string framed;
    AppendGrpcMessage(message, &framed);
    Data(id, framed);
  }
  void Trailers(int id, Headers trailers) {
    bodies_[id].trailers = std::move(trailers);
    bodies_[id].end = true;
    nghttp2_session_resume_data(session_, id);
    Flush();
  }
  // END_STREAM on DATA, without trailers.
  void EndData(int id) { Trailers(id, {}); }
  void TrailersOnly(int id, Headers more, std::string_view status = "200",
                    std::string_view type = "application/grpc") {
    Headers headers = {{":status", std::string(status)}};
    if (!type.empty()) headers.emplace_back("content-type", type);
    headers.insert(headers.end(), more.begin(), more.end());
    auto fields = Fields(headers);
    nghttp2_submit_response(session_, id, fields.data(), fields.size(), nullptr);
    Flush();
  }
  // Head, one message and grpc-status 0.
  void Answer(int id, std::string_view message) {
    Head(id);
    Message(id, message);
    Trailers(id, {{"grpc-status", "0"}});
  }
  void Reset(int id, uint32_t error) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, error);
    Flush();
  }
  void Goaway(int last, uint32_t error = 0, std::string_view text = {}) {
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, last, error,
                          reinterpret_cast<const uint8_t*>(text.data()), text.size());
    Flush();
  }
  void SetMaxStreams(uint32_t max) {
    const nghttp2_settings_entry setting = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, max};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &setting, 1);
    Flush();
  }
  void SendRaw(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  void Flush() {
    const uint8_t* bytes;
    ssize_t size;
    while ((size = nghttp2_session_mem_send(session_, &bytes)) > 0) {
      SendRaw({reinterpret_cast<const char*>(bytes), static_cast<size_t>(size)});
    }
  }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  struct Body {
    std::string bytes;
    Headers trailers;
    bool end = false;
  };

  static TestPeer& Of(void* user) { return *static_cast<TestPeer*>(user); }
  static std::vector<nghttp2_nv> Fields(const Headers& headers) {
    std::vector<nghttp2_nv> fields;
    auto bytes = [](const std::string& text) {
      return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
    };
    for (const auto& [name, value] : headers) {
      fields.push_back({bytes(name), bytes(value), name.size(), value.size(), 0});
    }
    return fields;
  }
  static ssize_t ReadBody(nghttp2_session* session, int32_t id, uint8_t* to, size_t max,
                          uint32_t* flags, nghttp2_data_source* source, void*) {
    auto* body = static_cast<Body*>(source->ptr);
    const size_t size = std::min(max, body->bytes.size());
    std::copy_n(body->bytes.data(), size, to);
    body->bytes.erase(0, size);
    if (size == 0 && !body->end) return NGHTTP2_ERR_DEFERRED;
    if (body->end && body->bytes.empty()) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (!body->trailers.empty()) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        auto fields = Fields(body->trailers);
        nghttp2_submit_trailer(session, id, fields.data(), fields.size());
      }
    }
    return static_cast<ssize_t>(size);
  }
  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                      void* user) {
    Of(user).requests_[frame->hd.stream_id].headers.emplace_back(
        std::string(reinterpret_cast<const char*>(name), name_size),
        std::string(reinterpret_cast<const char*>(value), value_size));
    return 0;
  }
  static int OnData(nghttp2_session*, uint8_t, int32_t id, const uint8_t* bytes, size_t size,
                    void* user) {
    Of(user).requests_[id].body.append(reinterpret_cast<const char*>(bytes), size);
    return 0;
  }
  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    TestPeer& peer = Of(user);
    if (frame->hd.type == NGHTTP2_HEADERS) peer.order_.push_back(frame->hd.stream_id);
    if (frame->hd.type == NGHTTP2_GOAWAY) ++peer.goaways_;
    if (frame->hd.type == NGHTTP2_PING && frame->hd.flags == 0) ++peer.pings_;
    if (frame->hd.stream_id != 0 && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
      peer.requests_[frame->hd.stream_id].ended = true;
    }
    return 0;
  }
  static int OnClose(nghttp2_session*, int32_t id, uint32_t error, void* user) {
    PeerRequest& request = Of(user).requests_[id];
    request.closed = true;
    request.error = error;
    return 0;
  }

  int fd_;
  nghttp2_session* session_ = nullptr;
  std::map<int, PeerRequest> requests_;
  std::map<int, Body> bodies_;
  std::vector<int> order_;
  int goaways_ = 0;
  int pings_ = 0;
  bool ended_ = false;
};

}  // namespace portico::net
