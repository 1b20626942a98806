#include "net/http2/http2_callbacks.h"

namespace portico::net {
namespace {

std::string_view View(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

Http2Session& SessionOf(void* user) { return *static_cast<Http2Session*>(user); }

}  // namespace

struct Http2Callbacks {
  static Http2Stream* StreamOf(nghttp2_session* nghttp2, int32_t id) {
    return static_cast<Http2Stream*>(nghttp2_session_get_stream_user_data(nghttp2, id));
  }

  static ssize_t Send(nghttp2_session*, const uint8_t* bytes, size_t size, int, void* user) {
    int result = SessionOf(user).Send(View(bytes, size));
    return result == 0 ? static_cast<ssize_t>(size) : result;
  }

  static int SendData(nghttp2_session*, nghttp2_frame*, const uint8_t* frame_head, size_t size,
                      nghttp2_data_source* source, void* user) {
    return SessionOf(user).SendData(*static_cast<Http2Stream*>(source->ptr), frame_head, size);
  }

  static int OnBeginFrame(nghttp2_session*, const nghttp2_frame_hd* head, void* user) {
    return SessionOf(user).OnBeginFrame(*head);
  }

  static int OnBeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    return SessionOf(user).OnBeginHeaders(frame->hd.stream_id,
                                          frame->headers.cat == NGHTTP2_HCAT_REQUEST);
  }

  static int OnHeader(nghttp2_session* nghttp2, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                      void* user) {
    Http2Stream* stream = StreamOf(nghttp2, frame->hd.stream_id);
    if (stream == nullptr) return 0;
    return SessionOf(user).OnHeader(*stream, View(name, name_size), View(value, value_size));
  }

  // RFC 9113, 8.2.1: a request with such a field is malformed.
  static int OnInvalidHeader(nghttp2_session*, const nghttp2_frame*, const uint8_t*, size_t,
                             const uint8_t*, size_t, uint8_t, void*) {
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }

  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    return SessionOf(user).OnFrame(*frame);
  }

  static int OnData(nghttp2_session* nghttp2, uint8_t, int32_t id, const uint8_t* bytes,
                    size_t size, void* user) {
    Http2Stream* stream = StreamOf(nghttp2, id);
    if (stream == nullptr) {
      nghttp2_session_consume(nghttp2, id, size);
      return 0;
    }
    return SessionOf(user).OnData(*stream, View(bytes, size));
  }

  static int OnFrameSent(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    SessionOf(user).OnFrameSent(*frame);
    return 0;
  }

  static int OnStreamClosed(nghttp2_session* nghttp2, int32_t id, uint32_t, void* user) {
    if (Http2Stream* stream = StreamOf(nghttp2, id)) SessionOf(user).OnStreamClosed(*stream);
    return 0;
  }

  static ssize_t OfferData(nghttp2_session*, int32_t, uint8_t*, size_t max, uint32_t* flags,
                           nghttp2_data_source* source, void* user) {
    return SessionOf(user).OfferData(*static_cast<Http2Stream*>(source->ptr), max, flags);
  }

  static nghttp2_session_callbacks* Make() {
    nghttp2_session_callbacks* made = nullptr;
    if (nghttp2_session_callbacks_new(&made) != 0) return nullptr;
    nghttp2_session_callbacks_set_send_callback(made, Send);
    nghttp2_session_callbacks_set_send_data_callback(made, SendData);
    nghttp2_session_callbacks_set_on_begin_frame_callback(made, OnBeginFrame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(made, OnBeginHeaders);
    nghttp2_session_callbacks_set_on_header_callback(made, OnHeader);
    nghttp2_session_callbacks_set_on_invalid_header_callback(made, OnInvalidHeader);
    nghttp2_session_callbacks_set_on_frame_recv_callback(made, OnFrame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, OnData);
    nghttp2_session_callbacks_set_on_frame_send_callback(made, OnFrameSent);
    nghttp2_session_callbacks_set_on_stream_close_callback(made, OnStreamClosed);
    return made;
  }
};

nghttp2_session* NewHttp2Server(Http2Session* session) {
  static nghttp2_session_callbacks* const callbacks = Http2Callbacks::Make();
  static nghttp2_option* const options = [] {
    nghttp2_option* made = nullptr;
    if (nghttp2_option_new(&made) != 0) return made;
    nghttp2_option_set_no_auto_window_update(made, 1);
    nghttp2_option_set_no_closed_streams(made, 1);
    // Behind the session's own count, which acts at once and not at the end of the turn.
    nghttp2_option_set_stream_reset_rate_limit(made, 2000, 200);
    return made;
  }();
  if (callbacks == nullptr || options == nullptr) return nullptr;
  nghttp2_session* made = nullptr;
  if (nghttp2_session_server_new2(&made, callbacks, session, options) != 0) return nullptr;
  return made;
}

nghttp2_data_provider Http2Body(Http2Stream* stream) {
  nghttp2_data_provider body{};
  body.source.ptr = stream;
  body.read_callback = Http2Callbacks::OfferData;
  return body;
}

}  // namespace portico::net
