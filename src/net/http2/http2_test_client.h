// For tests: a blocking HTTP/2 client on nghttp2, and frames made by hand.
#pragma once

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "net/http/exchange.h"
#include "net/loop/test_server.h"

namespace portico::net {

inline constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// A frame as RFC 9113, 4.1 lays it out.
inline std::string Frame(int type, int flags, uint32_t stream, std::string_view payload) {
  std::string frame;
  for (int shift : {16, 8, 0}) frame.push_back(static_cast<char>(payload.size() >> shift));
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  for (int shift : {24, 16, 8, 0}) frame.push_back(static_cast<char>(stream >> shift));
  return frame.append(payload);
}

// GET /a of authority x, from HPACK's static table and literals.
inline std::string GetBlock() { return std::string("\x82\x86\x44\x02/a\x41\x01x", 9); }

struct Http2Answer {
  int status = 0;
  Headers headers;
  Headers trailers;
  std::string body;
  bool closed = false;
  uint32_t error = 0;  // of the reset or close

  std::string Header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
    }
    return {};
  }
  std::string Trailer(std::string_view name) const {
    for (const auto& [key, value] : trailers) {
      if (key == name) return value;
    }
    return {};
  }
};

class Http2TestClient {
 public:
  // `window` > 0: of each stream, and never extended.
  explicit Http2TestClient(int port, uint32_t window = 0) : socket_(port) {
    nghttp2_session_callbacks* callbacks;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnClose);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
    nghttp2_option* options;
    nghttp2_option_new(&options);
    nghttp2_option_set_no_auto_window_update(options, window > 0);
    nghttp2_session_client_new2(&session_, callbacks, this, options);
    nghttp2_option_del(options);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window > 0 ? window : 1 << 20}};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, 1);
    nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, 64 << 20);
    Flush();
  }
  ~Http2TestClient() { nghttp2_session_del(session_); }
  Http2TestClient(const Http2TestClient&) = delete;
  Http2TestClient& operator=(const Http2TestClient&) = delete;

  // The stream's number. `end` false: more body may follow by Body().
  int Send(std::string_view method, std::string_view path, Headers headers = {},
           std::string body = {}, bool end = true) {
    headers.insert(headers.begin(), {{":method", std::string(method)},
                                     {":path", std::string(path)},
                                     {":scheme", "http"},
                                     {":authority", "x"}});
    std::vector<nghttp2_nv> fields;
    for (auto& [name, value] : headers) {
      fields.push_back({reinterpret_cast<uint8_t*>(name.data()),
                        reinterpret_cast<uint8_t*>(value.data()), name.size(), value.size(), 0});
    }
    auto pending = std::make_unique<Upload>(Upload{std::move(body), end});
    nghttp2_data_provider provider{};
    provider.source.ptr = pending.get();
    provider.read_callback = ReadUpload;
    bool bare = end && pending->bytes.empty();
    int id = nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(),
                                    bare ? nullptr : &provider, nullptr);
    uploads_[id] = std::move(pending);
    answers_[id];
    Flush();
    return id;
  }
  void Body(int id, std::string_view bytes, bool end) {
    uploads_[id]->bytes.append(bytes);
    uploads_[id]->end = end;
    nghttp2_session_resume_data(session_, id);
    Flush();
  }
  void Reset(int id, uint32_t error = NGHTTP2_CANCEL) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, error);
    Flush();
  }
  void Extend(int id, int bytes) {
    nghttp2_submit_window_update(session_, NGHTTP2_FLAG_NONE, id, bytes);
    Flush();
  }
  void Ping() {
    nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
    Flush();
  }

  // Until then no more than 100 streams are opened.
  void ReadSettings() {
    ReadUntil([this] { return settings_ > 0; });
  }
  // Reads until `done`, the connection's end or kTestPatience of silence; the former's verdict. `done` may become true without
  // a byte from the server.
  bool ReadUntil(const std::function<bool()>& done) {
    TimePoint end = Clock::now() + std::chrono::seconds(kTestPatience);
    while (!done()) {
      if (!socket_.Readable()) {
        if (Clock::now() >= end) return false;
        continue;
      }
      end = Clock::now() + std::chrono::seconds(kTestPatience);
      std::string bytes = socket_.ReadSome();
      if (bytes.empty()) {
        ended_ = true;
        return done();
      }
      nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(bytes.data()),
                               bytes.size());
      Flush();
    }
    return true;
  }
  const Http2Answer& Wait(int id) {
    ReadUntil([&] { return answers_[id].closed; });
    return answers_[id];
  }
  const Http2Answer& Ask(std::string_view method, std::string_view path, Headers headers = {},
                         std::string body = {}) {
    return Wait(Send(method, path, std::move(headers), std::move(body)));
  }
  const Http2Answer& answer(int id) { return answers_[id]; }
  // GOAWAYs seen, and what the last one said.
  int goaways() const { return goaways_; }
  uint32_t goaway_error() const { return goaway_error_; }
  int pongs() const { return pongs_; }
  int pings() const { return pings_; }
  bool ended() const { return ended_; }
  bool ReadToEnd() {
    ReadUntil([] { return false; });
    return ended_;
  }
  TestClient& socket() { return socket_; }
  nghttp2_session* session() { return session_; }

 private:
  struct Upload {
    std::string bytes;
    bool end;
  };

  void Flush() {
    const uint8_t* bytes;
    ssize_t size;
    while ((size = nghttp2_session_mem_send(session_, &bytes)) > 0) {
      socket_.Send({reinterpret_cast<const char*>(bytes), static_cast<size_t>(size)});
    }
  }
  static ssize_t ReadUpload(nghttp2_session*, int32_t, uint8_t* to, size_t max, uint32_t* flags,
                            nghttp2_data_source* source, void*) {
    auto* upload = static_cast<Upload*>(source->ptr);
    size_t size = std::min(max, upload->bytes.size());
    std::copy_n(upload->bytes.data(), size, to);
    upload->bytes.erase(0, size);
    if (size == 0 && !upload->end) return NGHTTP2_ERR_DEFERRED;
    if (upload->end && upload->bytes.empty()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(size);
  }
  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                      void* user) {
    Http2Answer& answer = static_cast<Http2TestClient*>(user)->answers_[frame->hd.stream_id];
    std::string key(reinterpret_cast<const char*>(name), name_size);
    std::string text(reinterpret_cast<const char*>(value), value_size);
    if (key == ":status") {
      answer.status = std::stoi(text);
    } else if (frame->headers.cat == NGHTTP2_HCAT_HEADERS) {
      answer.trailers.emplace_back(key, text);
    } else {
      answer.headers.emplace_back(key, text);
    }
    return 0;
  }
  static int OnData(nghttp2_session*, uint8_t, int32_t id, const uint8_t* bytes, size_t size,
                    void* user) {
    static_cast<Http2TestClient*>(user)->answers_[id].body.append(
        reinterpret_cast<const char*>(bytes), size);
    return 0;
  }
  static int OnClose(nghttp2_session*, int32_t id, uint32_t error, void* user) {
    Http2Answer& answer = static_cast<Http2TestClient*>(user)->answers_[id];
    answer.closed = true;
    answer.error = error;
    return 0;
  }
  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    auto& client = *static_cast<Http2TestClient*>(user);
    if (frame->hd.type == NGHTTP2_GOAWAY) {
      ++client.goaways_;
      client.goaway_error_ = frame->goaway.error_code;
    } else if (frame->hd.type == NGHTTP2_SETTINGS) {
      ++client.settings_;
    } else if (frame->hd.type == NGHTTP2_PING) {
      ++((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0 ? client.pongs_ : client.pings_);
    }
    return 0;
  }

  TestClient socket_;
  nghttp2_session* session_ = nullptr;
  std::map<int, std::unique_ptr<Upload>> uploads_;
  std::map<int, Http2Answer> answers_;
  int settings_ = 0;
  int goaways_ = 0;
  int pongs_ = 0;
  int pings_ = 0;
  uint32_t goaway_error_ = 0;
  bool ended_ = false;
};

}  // namespace portico::net
