#include "net/grpc/grpc_connection_callbacks.h"

#include <new>
#include <string>
#include <vector>

#include "net/grpc/grpc_connection.h"

namespace portico::net {
namespace {

std::string_view View(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

GrpcConnection& ConnectionOf(void* user) { return *static_cast<GrpcConnection*>(user); }

nghttp2_nv Field(std::string_view name, std::string_view value, uint8_t flags = 0) {
  auto bytes = [](std::string_view text) {
    return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), flags};
}

constexpr uint8_t kStatic = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;
// Differs in every request: in the table it would only push others out.
constexpr uint8_t kUnique = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_INDEX;

}  // namespace

struct GrpcConnectionCallbacks {
  static ssize_t Send(nghttp2_session*, const uint8_t* bytes, size_t size, int, void* user) {
    ConnectionOf(user).Send(View(bytes, size));
    return static_cast<ssize_t>(size);
  }

  static int SendData(nghttp2_session*, nghttp2_frame* frame, const uint8_t* head, size_t size,
                      nghttp2_data_source*, void* user) {
    constexpr size_t kFrameHead = 9;
    // The call may have left since it offered the bytes.
    GrpcClientCall* call = ConnectionOf(user).Find(frame->hd.stream_id);
    if (call == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return ConnectionOf(user).SendData(*call, View(head, kFrameHead), size);
  }

  static ssize_t OfferData(nghttp2_session*, int32_t stream, uint8_t*, size_t max, uint32_t* flags,
                           nghttp2_data_source*, void* user) {
    GrpcClientCall* call = ConnectionOf(user).Find(stream);
    if (call == nullptr) return NGHTTP2_ERR_DEFERRED;
    return GrpcConnection::OfferData(*call, max, flags);
  }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                      void* user) {
    if (GrpcClientCall* call = ConnectionOf(user).Find(frame->hd.stream_id)) {
      call->OnHeader(View(name, name_size), View(value, value_size));
    }
    return 0;
  }

  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    return ConnectionOf(user).OnFrame(*frame);
  }

  static int OnData(nghttp2_session*, uint8_t, int32_t stream, const uint8_t* bytes, size_t size,
                    void* user) {
    ConnectionOf(user).OnData(stream, View(bytes, size));
    return 0;
  }

  static int OnStreamClosed(nghttp2_session*, int32_t stream, uint32_t error, void* user) {
    GrpcConnection& connection = ConnectionOf(user);
    if (GrpcClientCall* call = connection.Find(stream)) connection.OnStreamClosed(*call, error);
    return 0;
  }

  static int OnNotSent(nghttp2_session*, const nghttp2_frame* frame, int, void* user) {
    ConnectionOf(user).OnNotSent(*frame);
    return 0;
  }

  static nghttp2_session_callbacks* Make() {
    nghttp2_session_callbacks* made = nullptr;
    if (nghttp2_session_callbacks_new(&made) != 0) return nullptr;
    nghttp2_session_callbacks_set_send_callback(made, Send);
    nghttp2_session_callbacks_set_send_data_callback(made, SendData);
    nghttp2_session_callbacks_set_on_header_callback(made, OnHeader);
    nghttp2_session_callbacks_set_on_frame_recv_callback(made, OnFrame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, OnData);
    nghttp2_session_callbacks_set_on_stream_close_callback(made, OnStreamClosed);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(made, OnNotSent);
    return made;
  }
};

nghttp2_session* NewGrpcClient(GrpcConnection* connection) {
  static nghttp2_session_callbacks* const callbacks = GrpcConnectionCallbacks::Make();
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

int32_t SubmitGrpcRequest(nghttp2_session* nghttp2, GrpcClientCall& call,
                          const GrpcRequestHead& head) {
  std::vector<nghttp2_nv> fields;
  fields.reserve(10 + head.options.metadata.size());
  fields.push_back(Field(":method", "POST", kStatic));
  fields.push_back(Field(":scheme", head.tls ? "https" : "http", kStatic));
  fields.push_back(Field(":path", head.options.path));
  fields.push_back(Field(":authority", head.authority));
  fields.push_back(Field("te", "trailers", kStatic));
  std::string timeout;
  if (head.deadline != TimePoint::max()) {
    timeout = FormatGrpcTimeout(head.deadline - Clock::now());
    fields.push_back(Field("grpc-timeout", timeout, kUnique));
  }
  fields.push_back(Field("content-type", "application/grpc", kStatic));
  if (head.options.encoding != GrpcEncoding::kIdentity) {
    fields.push_back(Field("grpc-encoding", GrpcEncodingName(head.options.encoding), kStatic));
  }
  fields.push_back(Field("grpc-accept-encoding", kGrpcAcceptEncoding, kStatic));
  fields.push_back(Field("user-agent", head.user_agent));
  for (const auto& [name, value] : head.options.metadata) fields.push_back(Field(name, value));

  nghttp2_data_provider body{};
  body.read_callback = GrpcConnectionCallbacks::OfferData;
  return nghttp2_submit_request(nghttp2, nullptr, fields.data(), fields.size(), &body, &call);
}

}  // namespace portico::net
