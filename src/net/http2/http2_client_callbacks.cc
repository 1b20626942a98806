#include "net/http2/http2_client_callbacks.h"

#include <new>
#include <string_view>

namespace portico::net {
namespace {

std::string_view ViewOf(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

struct Http2ClientCallbacks {
  static Http2Connection& Of(void* user) { return *static_cast<Http2Connection*>(user); }

  static ssize_t Send(nghttp2_session*, const uint8_t* bytes, size_t size, int, void* user) {
    Of(user).socket_->Output().append(ViewOf(bytes, size));
    return static_cast<ssize_t>(size);
  }
  static int SendData(nghttp2_session*, nghttp2_frame* frame, const uint8_t* head, size_t size,
                      nghttp2_data_source*, void* user) {
    constexpr size_t kFrameHead = 9;
    Http2Call* call = Of(user).Find(frame->hd.stream_id);
    if (call == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return Of(user).SendBody(*call, ViewOf(head, kFrameHead), size);
  }
  static ssize_t OfferBody(nghttp2_session*, int32_t stream, uint8_t*, size_t max, uint32_t* flags,
                           nghttp2_data_source*, void* user) {
    Http2Call* call = Of(user).Find(stream);
    return call == nullptr ? ssize_t{NGHTTP2_ERR_DEFERRED} : Of(user).OfferBody(*call, max, flags);
  }
  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                      void* user) {
    if (Http2Call* call = Of(user).Find(frame->hd.stream_id)) {
      Of(user).OnHeader(*call, ViewOf(name, name_size), ViewOf(value, value_size));
    }
    return 0;
  }
  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Of(user).OnFrame(*frame);
    return 0;
  }
  static int OnData(nghttp2_session*, uint8_t, int32_t stream, const uint8_t* bytes, size_t size,
                    void* user) {
    Of(user).OnData(stream, ViewOf(bytes, size));
    return 0;
  }
  static int OnStreamClosed(nghttp2_session*, int32_t stream, uint32_t error, void* user) {
    if (Http2Call* call = Of(user).Find(stream)) Of(user).OnStreamClosed(*call, error);
    return 0;
  }
  static int OnNotSent(nghttp2_session*, const nghttp2_frame* frame, int, void* user) {
    if (frame->hd.type != NGHTTP2_HEADERS) return 0;
    for (Http2Call* call : Of(user).calls_) {
      if (call->stream_ != frame->hd.stream_id) continue;
      Of(user).OnStreamClosed(*call, NGHTTP2_REFUSED_STREAM);
      break;
    }
    return 0;
  }

  static nghttp2_session* NewSession(Http2Connection* connection) {
    static nghttp2_session_callbacks* const callbacks = [] {
      nghttp2_session_callbacks* made = nullptr;
      if (nghttp2_session_callbacks_new(&made) != 0) return made;
      nghttp2_session_callbacks_set_send_callback(made, Send);
      nghttp2_session_callbacks_set_send_data_callback(made, SendData);
      nghttp2_session_callbacks_set_on_header_callback(made, OnHeader);
      nghttp2_session_callbacks_set_on_frame_recv_callback(made, OnFrame);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, OnData);
      nghttp2_session_callbacks_set_on_stream_close_callback(made, OnStreamClosed);
      nghttp2_session_callbacks_set_on_frame_not_send_callback(made, OnNotSent);
      return made;
    }();
    static nghttp2_option* const options = [] {
      nghttp2_option* made = nullptr;
      if (nghttp2_option_new(&made) != 0) return made;
      nghttp2_option_set_no_auto_window_update(made, 1);
      nghttp2_option_set_no_closed_streams(made, 1);
      return made;
    }();
    nghttp2_session* made = nullptr;
    if (callbacks == nullptr || options == nullptr ||
        nghttp2_session_client_new2(&made, callbacks, connection, options) != 0) {
      throw std::bad_alloc();
    }
    return made;
  }
};

nghttp2_session* NewHttp2ClientSession(Http2Connection* connection) {
  return Http2ClientCallbacks::NewSession(connection);
}

nghttp2_data_provider Http2ClientBody() {
  nghttp2_data_provider body{};
  body.read_callback = Http2ClientCallbacks::OfferBody;
  return body;
}

}  // namespace portico::net
