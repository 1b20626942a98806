// The floor: a hand-written epoll server that reads whole requests without understanding them and sends recorded
// bytes. What a real server costs above it is what that server does itself.
//   http_raw_server PORT WHOLE STREAM [ITL_MS]
// WHOLE: a file with the bytes of a whole answer. STREAM: a file of frames, each a decimal size, a line feed and so
// many bytes; a request with "stream":true gets each frame in a send of its own, at once or one every ITL_MS.
// GET /v1/models names the model "demo": a gateway may send nothing to a worker that names none.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct Client {
  int fd;
  std::string in;     // an unfinished request
  size_t frame = 0;   // of the stream, the next to send
  size_t bucket = 0;  // of `streaming`
  size_t place = 0;   // in the bucket
  bool streams = false;
};

constexpr std::string_view kModels =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 72\r\n\r\n"
    R"({"object":"list","data":[{"id":"demo","object":"model","created":1234}]})";

std::string whole;
std::vector<std::string> frames;
// By the millisecond of the period at which a stream is due: as in the mock engine, each keeps the rhythm in which it
// began.
std::vector<std::vector<Client*>> streaming;
size_t tick = 0;
char buffer[64 << 10];

std::string ReadFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path);
    std::exit(1);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

void ReadFrames(const char* path) {
  std::string all = ReadFile(path);
  for (size_t at = 0; at < all.size();) {
    char* end;
    size_t size = std::strtoul(all.c_str() + at, &end, 10);
    at = static_cast<size_t>(end - all.c_str()) + 1;
    frames.push_back(all.substr(at, size));
    at += size;
  }
}

// The recorded answers are small and the load generator reads them: a short send is a broken run.
void Send(const Client& client, std::string_view bytes) {
  ssize_t sent = send(client.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0 && static_cast<size_t>(sent) != bytes.size()) {
    std::fprintf(stderr, "short send\n");
    std::exit(1);
  }
}

void StopStreaming(Client* client) {
  if (!client->streams) return;
  client->streams = false;
  std::vector<Client*>& bucket = streaming[client->bucket];
  bucket[client->place] = bucket.back();
  bucket[client->place]->place = client->place;
  bucket.pop_back();
}

void Answer(Client* client, std::string_view request) {
  bool stream = memmem(request.data(), request.size(), "\"stream\":true", 13) != nullptr;
  if (request.starts_with("GET /v1/models ")) {
    Send(*client, kModels);
  } else if (!stream) {
    Send(*client, whole);
  } else if (streaming.empty()) {
    for (const std::string& frame : frames) Send(*client, frame);
  } else {
    client->frame = 0;
    client->streams = true;
    client->bucket = tick % streaming.size();
    client->place = streaming[client->bucket].size();
    streaming[client->bucket].push_back(client);
  }
}

// The size of the first request in `in`, or 0 while it is not whole.
size_t RequestSize(std::string_view in) {
  size_t head = in.find("\r\n\r\n");
  if (head == std::string_view::npos) return 0;
  head += 4;
  static constexpr char kLength[] = "content-length: ";
  const void* at = memmem(in.data(), head, kLength, sizeof kLength - 1);
  size_t body = at == nullptr
                    ? 0
                    : std::strtoul(static_cast<const char*>(at) + sizeof kLength - 1, nullptr, 10);
  return in.size() < head + body ? 0 : head + body;
}

bool OnReadable(Client* client) {
  ssize_t got = recv(client->fd, buffer, sizeof buffer, 0);
  if (got <= 0) return got < 0 && errno == EAGAIN;
  std::string_view in(buffer, static_cast<size_t>(got));
  if (!client->in.empty()) {
    client->in.append(in);
    in = client->in;
  }
  while (size_t size = RequestSize(in)) {
    Answer(client, in.substr(0, size));
    in.remove_prefix(size);
  }
  client->in = std::string(in);
  return true;
}

void SendNextFrames() {
  std::vector<Client*>& due = streaming[++tick % streaming.size()];
  for (size_t i = 0; i < due.size();) {
    Client* client = due[i];
    Send(*client, frames[client->frame++]);
    if (client->frame < frames.size()) {
      ++i;
    } else {
      StopStreaming(client);
    }
  }
}

int Listen(int port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd, 4096) != 0) {
    std::perror("listen");
    std::exit(1);
  }
  return fd;
}

void Watch(int poll, int fd, void* what) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.ptr = what;
  epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s PORT WHOLE STREAM [ITL_MS]\n", argv[0]);
    return 2;
  }
  whole = ReadFile(argv[2]);
  ReadFrames(argv[3]);
  int poll = epoll_create1(0);
  int listener = Listen(std::atoi(argv[1]));
  Watch(poll, listener, &listener);
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  if (argc > 4 && std::atoi(argv[4]) > 0) {
    streaming.resize(static_cast<size_t>(std::atoi(argv[4])));
    itimerspec every = {{0, 1000000}, {0, 1}};
    timerfd_settime(timer, 0, &every, nullptr);
    Watch(poll, timer, &timer);
  }
  std::vector<epoll_event> events(512);
  for (;;) {
    int count = epoll_wait(poll, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      void* what = events[static_cast<size_t>(i)].data.ptr;
      if (what == &listener) {
        int fd;
        while ((fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK)) >= 0) {
          int on = 1;
          setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
          Watch(poll, fd, new Client{fd, {}});
        }
      } else if (what == &timer) {
        uint64_t ticks;
        if (read(timer, &ticks, sizeof ticks) != sizeof ticks) continue;
        for (; ticks > 0; --ticks) SendNextFrames();
      } else {
        auto* client = static_cast<Client*>(what);
        if (OnReadable(client)) continue;
        StopStreaming(client);
        close(client->fd);
        delete client;
      }
    }
  }
}
