// What a server without a gRPC layer costs: nghttp2 in an epoll loop, on one thread, that answers every request with
// messages made once.
//   grpc_raw_server PORT MESSAGES MESSAGE_BYTES STEP_MS     MESSAGES to each stream, one a step; 0: all at once
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <unordered_map>

namespace {

int messages;
int step_ms;
std::string message;  // with its prefix

struct Stream {
  std::string output;
  int left = 0;
  bool deferred = false;
};

struct Connection {
  int fd = -1;
  nghttp2_session* session = nullptr;
  std::unordered_map<int, Stream> streams;

  ~Connection() {
    nghttp2_session_del(session);
    close(fd);
  }

  void Write(int id, Stream& stream) {
    stream.output += message;
    --stream.left;
    if (stream.deferred) nghttp2_session_resume_data(session, id);
    stream.deferred = false;
  }

  bool Send() {
    std::string out;
    const uint8_t* bytes;
    ssize_t size;
    while ((size = nghttp2_session_mem_send(session, &bytes)) > 0) {
      out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
    }
    // The load generator always reads, so that blocking is short.
    for (size_t sent = 0; sent < out.size();) {
      const ssize_t done = send(fd, out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
      if (done <= 0) return false;
      sent += static_cast<size_t>(done);
    }
    return nghttp2_session_want_read(session) != 0;
  }
};

nghttp2_nv Field(const char* name, size_t name_size, const char* value, size_t value_size) {
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name)),
          reinterpret_cast<uint8_t*>(const_cast<char*>(value)), name_size, value_size,
          NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

ssize_t Read(nghttp2_session* session, int32_t id, uint8_t* to, size_t max, uint32_t* flags,
             nghttp2_data_source*, void* user) {
  Stream& stream = static_cast<Connection*>(user)->streams[id];
  const size_t size = std::min(max, stream.output.size());
  std::copy_n(stream.output.data(), size, to);
  stream.output.erase(0, size);
  if (stream.left == 0 && stream.output.empty()) {
    const nghttp2_nv status = Field("grpc-status", 11, "0", 1);
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    nghttp2_submit_trailer(session, id, &status, 1);
  } else if (size == 0) {
    stream.deferred = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  return static_cast<ssize_t>(size);
}

int OnFrame(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
  if (frame->hd.stream_id == 0 || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
  auto* connection = static_cast<Connection*>(user);
  const int id = frame->hd.stream_id;
  Stream& stream = connection->streams[id];
  stream.left = messages;
  if (step_ms == 0) {
    while (stream.left > 0) connection->Write(id, stream);
  }
  const nghttp2_nv head[] = {Field(":status", 7, "200", 3),
                             Field("content-type", 12, "application/grpc", 16)};
  nghttp2_data_provider body{};
  body.read_callback = Read;
  return nghttp2_submit_response(session, id, head, 2, &body);
}

int OnClose(nghttp2_session*, int32_t id, uint32_t, void* user) {
  static_cast<Connection*>(user)->streams.erase(id);
  return 0;
}

std::unique_ptr<Connection> Accept(int listener) {
  auto connection = std::make_unique<Connection>();
  connection->fd = accept(listener, nullptr, nullptr);
  int on = 1;
  setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  nghttp2_session_callbacks* callbacks;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnClose);
  nghttp2_session_server_new(&connection->session, callbacks, connection.get());
  nghttp2_session_callbacks_del(callbacks);
  const nghttp2_settings_entry setting = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1024};
  nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, &setting, 1);
  return connection;
}

void Serve(int listener) {
  const int loop = epoll_create1(0);
  const int clock = timerfd_create(CLOCK_MONOTONIC, 0);
  auto watch = [&](int fd) {
    epoll_event event = {EPOLLIN, {.fd = fd}};
    epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
  };
  watch(listener);
  if (step_ms > 0) {
    const timespec step = {step_ms / 1000, step_ms % 1000 * 1000000L};
    const itimerspec every = {step, step};
    timerfd_settime(clock, 0, &every, nullptr);
    watch(clock);
  }
  std::unordered_map<int, std::unique_ptr<Connection>> connections;
  static char buffer[64 << 10];
  for (;;) {
    epoll_event events[64];
    const int count = epoll_wait(loop, events, 64, -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == listener) {
        auto connection = Accept(listener);
        watch(connection->fd);
        connections[connection->fd] = std::move(connection);
      } else if (fd == clock) {
        uint64_t steps;
        if (read(clock, &steps, sizeof steps) < 0) continue;
        for (auto& [_, connection] : connections) {
          for (auto& [id, stream] : connection->streams) {
            if (stream.left > 0) connection->Write(id, stream);
          }
          connection->Send();
        }
      } else if (auto found = connections.find(fd); found != connections.end()) {
        Connection& connection = *found->second;
        const ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        const bool alive =
            got > 0 &&
            nghttp2_session_mem_recv(connection.session, reinterpret_cast<uint8_t*>(buffer),
                                     static_cast<size_t>(got)) >= 0 &&
            connection.Send();
        if (!alive) connections.erase(found);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  messages = std::atoi(argv[2]);
  const auto size = static_cast<uint32_t>(std::atoi(argv[3]));
  step_ms = std::atoi(argv[4]);
  message = {0, 0, 0, static_cast<char>(size >> 8), static_cast<char>(size)};
  message.append(size, 'x');
  signal(SIGPIPE, SIG_IGN);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(argv[1])));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return 1;
  if (listen(listener, 1024) != 0) return 1;
  Serve(listener);
}
