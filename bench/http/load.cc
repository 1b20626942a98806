// Load for HTTP servers with chat completions, or with given bodies, one thread. Prints one JSON object.
//   http_load --port P [--mode closed] --conns 32 --secs 5 [--stream]     each connection as fast as it goes
//   http_load --port P --mode streams --conns 2000 --secs 15 --ramp 3     each connection one stream, for their gaps
//   http_load --port P --conns 8 --path /v1/embeddings --bodies FILE      each line of the file once, in order
//   common: --model NAME --prompt-bytes 2048 --tokens 32 --ramp 0 (seconds in which connections are opened, evenly)
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "load_client.h"
#include "load_text.h"

namespace {

struct Options {
  int port = 30000;
  std::string mode = "closed";
  int conns = 32;
  double secs = 5;
  double ramp = 0;
  bool stream = false;
  std::string model = "demo";
  size_t prompt_bytes = 2048;
  int tokens = 32;
  std::string path;
  std::string bodies;  // a file with a JSON body a line
};

uint64_t Now() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "--stream") {
      options.stream = true;
      continue;
    }
    if (i + 1 == argc) break;
    std::string value = argv[++i];
    if (name == "--port") options.port = std::stoi(value);
    if (name == "--mode") options.mode = value;
    if (name == "--conns") options.conns = std::stoi(value);
    if (name == "--secs") options.secs = std::stod(value);
    if (name == "--ramp") options.ramp = std::stod(value);
    if (name == "--model") options.model = value;
    if (name == "--prompt-bytes") options.prompt_bytes = std::stoul(value);
    if (name == "--tokens") options.tokens = std::stoi(value);
    if (name == "--path") options.path = value;
    if (name == "--bodies") options.bodies = value;
  }
  if (options.mode == "streams") options.stream = true;
  return options;
}

double Percentile(std::vector<uint64_t>& sorted, double share) {
  if (sorted.empty()) return 0;
  return static_cast<double>(
      sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))]);
}

class Load {
 public:
  explicit Load(const Options& options)
      : options_(options),
        poll_(epoll_create1(0)),
        requests_(options.model, options.prompt_bytes, options.tokens, options.stream),
        given_(GivenRequests(options.path, options.bodies)),
        clients_(static_cast<size_t>(options.conns)),
        writing_(clients_.size()) {
    if (options_.mode != "streams") return;
    for (LoadClient& client : clients_) client.CollectGaps(&gaps_);
  }

  void Run() {
    start_ = Now();
    uint64_t end = given_.empty() ? start_ + Nanoseconds(options_.secs) : UINT64_MAX;
    bool closed = options_.mode == "closed";
    size_t opened = 0;
    std::vector<epoll_event> events(1024);
    for (uint64_t now = start_; now < end && !AllAnswered(); now = Now()) {
      size_t wanted = clients_.size();
      if (options_.ramp > 0) {
        double share = static_cast<double>(now - start_) / 1e9 / options_.ramp;
        wanted = std::min(wanted, static_cast<size_t>(share * static_cast<double>(wanted)) + 1);
      }
      while (opened < wanted) Start(clients_[opened++]);
      int wait = opened < clients_.size() ? 1 : 50;
      int count = epoll_wait(poll_, events.data(), static_cast<int>(events.size()), wait);
      for (int i = 0; i < count; ++i) {
        Handle(clients_[events[static_cast<size_t>(i)].data.u32], closed);
      }
    }
    seconds_ = static_cast<double>(Now() - start_) / 1e9;
  }

  void Print() {
    std::vector<uint64_t> gaps;
    uint64_t live_events = 0;
    uint64_t streaming = 0;
    for (const LoadClient& client : clients_) {
      if (client.first() != 0) gaps.push_back(client.largest_gap());
      live_events += client.busy() ? client.events() : 0;
      streaming += client.busy() && client.first() != 0 ? 1 : 0;
    }
    std::sort(gaps.begin(), gaps.end());
    std::sort(gaps_.begin(), gaps_.end());
    std::sort(latencies_.begin(), latencies_.end());
    std::printf(
        "{\"requests\": %lu, \"seconds\": %.3f, \"events\": %lu, \"errors\": %lu, \"bytes\": %lu, "
        "\"p50_us\": %.1f, \"p99_us\": %.1f, \"open_streams\": %lu, \"streams_seen\": %zu, "
        "\"gap_max_ms\": %.1f, \"gap_p99_ms\": %.1f, \"gap_p50_ms\": %.1f, \"all_gaps\": %zu, "
        "\"all_gaps_p999_ms\": %.1f}\n",
        done_, seconds_, events_ + live_events, errors_, bytes_, Percentile(latencies_, 0.5) / 1e3,
        Percentile(latencies_, 0.99) / 1e3, streaming, gaps.size(), Percentile(gaps, 1) / 1e6,
        Percentile(gaps, 0.99) / 1e6, Percentile(gaps, 0.5) / 1e6, gaps_.size(),
        Percentile(gaps_, 0.999) / 1e6);
  }

 private:
  static uint64_t Nanoseconds(double seconds) { return static_cast<uint64_t>(seconds * 1e9); }

  void Watch(LoadClient& client, int how, uint32_t what) {
    epoll_event event = {};
    event.events = what;
    event.data.u32 = static_cast<uint32_t>(&client - clients_.data());
    epoll_ctl(poll_, how, client.fd(), &event);
  }

  // Of given requests each is sent once.
  bool NothingLeft() const { return !given_.empty() && next_ == given_.size(); }
  bool AllAnswered() const { return !given_.empty() && done_ + lost_ == given_.size(); }
  std::string NextRequest() { return given_.empty() ? requests_.Next() : given_[next_++]; }

  void Start(LoadClient& client) {
    if (NothingLeft()) return;
    if (!client.Open(options_.port)) {
      ++errors_;
      return;
    }
    client.Begin(NextRequest(), Now());
    writing_[static_cast<size_t>(&client - clients_.data())] = true;
    Watch(client, EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT);
  }

  void Handle(LoadClient& client, bool again) {
    size_t index = static_cast<size_t>(&client - clients_.data());
    if (writing_[index] && !client.Flush()) {
      writing_[index] = false;
      Watch(client, EPOLL_CTL_MOD, EPOLLIN);
    }
    switch (client.Read(Now())) {
      case LoadClient::Event::kWaiting:
        return;
      case LoadClient::Event::kFailed:
        if (given_.empty() || client.busy()) ++errors_;
        if (client.busy()) ++lost_;
        client.Close();
        if (again) Start(client);
        return;
      case LoadClient::Event::kDone:
        break;
    }
    uint64_t now = Now();
    if (client.status() != 200) ++errors_;
    ++done_;
    events_ += client.events();
    bytes_ += client.body_bytes();
    latencies_.push_back(now - client.began());
    if (!again || NothingLeft()) return;
    if (client.closing()) {
      client.Close();
      return Start(client);
    }
    client.Begin(NextRequest(), now);
    if (!client.Flush()) return;
    writing_[index] = true;
    Watch(client, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
  }

  Options options_;
  int poll_;
  ChatRequests requests_;
  const std::vector<std::string> given_;
  size_t next_ = 0;  // of given_
  std::vector<LoadClient> clients_;
  std::vector<bool> writing_;  // waits for room in its socket
  uint64_t start_ = 0;
  double seconds_ = 0;
  uint64_t done_ = 0;
  uint64_t events_ = 0;
  uint64_t errors_ = 0;
  uint64_t lost_ = 0;  // requests without an answer
  uint64_t bytes_ = 0;
  std::vector<uint64_t> latencies_;
  std::vector<uint64_t> gaps_;  // of all streams
};

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  Load load(Parse(argc, argv));
  load.Run();
  load.Print();
}
