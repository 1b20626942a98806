#include "service/upstream/media_fetch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "net/http/http1_client.h"
#include "net/socket/host_addresses.h"
#include "net/tls/tls_client.h"
#include "service/upstream/held_bytes.h"

namespace portico {
namespace {

std::atomic<int> fetching{0};

// One of kMost.
class FetchPlace {
 public:
  FetchPlace() : taken_(fetching.fetch_add(1) < MediaFetch::kMost) {}
  ~FetchPlace() { fetching.fetch_sub(1); }
  FetchPlace(const FetchPlace&) = delete;
  FetchPlace& operator=(const FetchPlace&) = delete;
  bool taken() const { return taken_; }

 private:
  const bool taken_;
};

std::atomic<size_t> held_bytes{0};

Status Refuse(std::string message) {
  return Error(StatusCode::kInvalidArgument, std::move(message));
}
Status TooLarge(const MediaRules& rules) {
  if (rules.total_bytes == 0) return Refuse(fmt::format("has more than {} bytes", rules.max_bytes));
  return Refuse(fmt::format("is too large: all of its kind in a prompt have at most {} bytes",
                            rules.total_bytes));
}
Status Full() {
  return Error(StatusCode::kResourceExhausted, "waits for others: too much media is fetched now");
}

const StatusOr<std::unique_ptr<net::TlsClientContext>>& FetchTls() {
  static const auto* context = new StatusOr<std::unique_ptr<net::TlsClientContext>>(
      net::TlsClientContext::Load({.protocol = net::TlsProtocol::kHttp1}));
  return *context;
}

// What may be it; the decoder looks at the bytes.
bool MayBe(MediaKind kind, std::string_view content_type) {
  const std::string type = absl::AsciiStrToLower(absl::string_view(
      content_type.data(), std::min(content_type.find(';'), content_type.size())));
  if (type == "application/octet-stream" || type == "binary/octet-stream") return true;
  if (kind == MediaKind::kImage) return type.starts_with("image/");
  if (kind == MediaKind::kVideo) return type.starts_with("video/");
  return type.starts_with("audio/") || type.starts_with("video/") || type == "application/ogg";
}

bool IsRedirect(int status) {
  constexpr int kRedirects[] = {301, 302, 303, 307, 308};
  return std::find(std::begin(kRedirects), std::end(kRedirects), status) != std::end(kRedirects);
}

// The address that was checked is the one that is connected to.
class HttpFetch final : public MediaFetch, private net::HttpCallEvents {
 public:
  HttpFetch(net::Shard& shard, const MediaRules& rules, MediaUrl url, Done done)
      : shard_(shard), rules_(rules), url_(std::move(url)), done_(std::move(done)) {
    timer_ = shard_.After(place_.taken() ? rules_.timeout : Duration::zero(), [this] {
      if (!place_.taken()) return Finish(Full());
      Finish(Refuse(fmt::format("takes longer than {:.0f} s", Seconds(rules_.timeout))));
    });
    if (place_.taken()) LookUp();
  }

 private:
  void LookUp() {
    lookup_ = net::HostLookup::Start(shard_, url_.host, [this](auto found) {
      if (!found.ok()) return Finish(Refuse("cannot be reached"));
      if (Status host = CheckMediaHost(rules_, *found); !host.ok()) return Finish(host);
      addresses_ = *std::move(found);
      Ask();
    });
  }

  void Ask() {
    if (addresses_.empty()) return Finish(Refuse("cannot be reached"));
    net::ClientTarget target;
    target.host = addresses_.front();
    addresses_.erase(addresses_.begin());
    target.port = url_.port;
    if (url_.tls) {
      if (!FetchTls().ok()) return Finish(Refuse("cannot be reached by TLS"));
      target.tls = FetchTls()->get();
      target.tls_name = url_.host;
    }
    clients_.push_back(
        std::make_unique<net::Http1Client>(shard_, std::move(target), net::Http1ClientOptions{}));
    net::HttpCallRequest request;
    request.head = fmt::format(
        "GET {} HTTP/1.1\r\nhost: {}{}\r\nuser-agent: portico\r\naccept: {}/*, */*;q=0.5\r\n"
        "accept-encoding: identity\r\nconnection: close\r\n\r\n",
        url_.target, url_.host.find(':') == std::string::npos ? url_.host : "[" + url_.host + "]",
        url_.port == (url_.tls ? 443 : 80) ? "" : fmt::format(":{}", url_.port),
        NameOf(rules_.kind));
    call_ = clients_.back()->Start(std::move(request), *this, /*fresh=*/true);
  }

  void OnHead(net::ResponseHead& head) override {
    if (IsRedirect(head.status)) return Follow(std::string(head.Header("location")));
    if (head.status != 200) {
      return Finish(Refuse(fmt::format("cannot be fetched: its server returned {}", head.status)));
    }
    const std::string_view coding = head.Header("content-encoding");
    if (!MayBe(rules_.kind, head.Header("content-type")) ||
        (!coding.empty() && coding != "identity")) {
      return Finish(Refuse(
          fmt::format("is not {} according to its content-type", WordsOf(rules_.kind).phrase)));
    }
    if (head.length > static_cast<int64_t>(rules_.max_bytes)) return Finish(TooLarge(rules_));
    if (head.length > 0) bytes_.Expect(static_cast<size_t>(head.length));
  }

  void Follow(const std::string& location) {
    if (redirects_++ == rules_.max_redirects) return Finish(Refuse("is redirected too often"));
    auto to = ReadRedirect(rules_, url_, location);
    if (!to.ok()) {
      return Finish(Refuse(fmt::format("is redirected, and {}", MessageOf(to.status()))));
    }
    call_.reset();
    url_ = *std::move(to);
    LookUp();
  }

  void OnBody(std::string_view bytes) override {
    if (bytes_.size() + bytes.size() > rules_.max_bytes) return Finish(TooLarge(rules_));
    if (!bytes_.Append(bytes)) Finish(Full());
  }
  void OnDone() override {
    if (bytes_.size() == 0) return Finish(Refuse("is empty"));
    Finish(bytes_.Take());
  }
  void OnFailed(net::CallFailure failure, const std::string&) override {
    call_.reset();
    if (failure == net::CallFailure::kConnect && !addresses_.empty()) return Ask();
    Finish(Refuse("cannot be reached"));
  }

  // The last that this does.
  void Finish(StatusOr<Bytes> result) {
    call_.reset();
    if (const Done done = std::exchange(done_, nullptr)) done(std::move(result));
  }

  net::Shard& shard_;
  const MediaRules& rules_;
  const FetchPlace place_;
  MediaUrl url_;
  Done done_;
  std::unique_ptr<net::Shard::Timer> timer_;
  std::unique_ptr<net::HostLookup> lookup_;
  std::vector<std::string> addresses_;  // that have not been tried
  std::vector<std::unique_ptr<net::Http1Client>> clients_;
  std::unique_ptr<net::Http1Call> call_;
  HeldBytes bytes_{held_bytes, kMostHeldBytes};
  int redirects_ = 0;
};

std::string RealPath(const std::string& path) {
  char real[PATH_MAX];
  return realpath(path.c_str(), real) == nullptr ? "" : real;
}

bool IsBelow(const std::string& path, const std::string& folder) {
  return !folder.empty() && path.starts_with(folder.ends_with('/') ? folder : folder + "/");
}

// What is not there and what lies elsewhere are refused alike.
StatusOr<MediaFetch::Bytes> ReadBelow(const MediaRules& rules, const std::string& path) {
  const Status no_file = Refuse("is not a file that this server may read");
  const std::string folder = RealPath(rules.local_folder);
  const std::string real = RealPath(path);
  if (!IsBelow(real, folder)) return no_file;
  const int fd = open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  if (fd < 0) return no_file;
  struct Closer {
    int fd;
    ~Closer() { close(fd); }
  } const closer{fd};
  struct stat about{};
  // A folder on the way may have become a link since.
  const std::string opened = RealPath(fmt::format("/proc/self/fd/{}", fd));
  if (!IsBelow(opened, folder) || fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) return no_file;
  if (about.st_size > static_cast<off_t>(rules.max_bytes)) return TooLarge(rules);
  HeldBytes bytes(held_bytes, MediaFetch::kMostHeldBytes);
  bytes.Expect(static_cast<size_t>(about.st_size));
  std::vector<char> block(size_t{1} << 20);
  while (bytes.size() < rules.max_bytes) {
    const ssize_t more =
        read(fd, block.data(), std::min(block.size(), rules.max_bytes - bytes.size()));
    if (more <= 0) break;
    if (!bytes.Append({block.data(), static_cast<size_t>(more)})) return Full();
  }
  if (bytes.size() == 0) return Refuse("is empty");
  return bytes.Take();
}

class FileFetch final : public MediaFetch {
 public:
  FileFetch(net::Shard& shard, CpuPool& pool, const MediaRules& rules, std::string path, Done done)
      : state_(std::make_shared<State>()) {
    state_->done = std::move(done);
    const auto tell = [&shard, state = state_](StatusOr<Bytes> result) {
      auto held = std::make_shared<StatusOr<Bytes>>(std::move(result));
      shard.Post([state, held] {
        if (const Done told = std::exchange(state->done, nullptr)) told(std::move(*held));
      });
    };
    CpuPool::Task read = [tell, rules, path = std::move(path)] { tell(ReadBelow(rules, path)); };
    if (!state_->place.taken() || !pool.Submit(std::move(read))) tell(Full());
  }
  ~FileFetch() override { state_->done = nullptr; }

 private:
  struct State {
    const FetchPlace place;
    Done done;  // the shard's
  };
  std::shared_ptr<State> state_;
};

}  // namespace

std::unique_ptr<MediaFetch> MediaFetch::Start(net::Shard& shard, CpuPool& pool,
                                              const MediaRules& rules, MediaUrl url, Done done) {
  if (!url.file.empty()) {
    return std::make_unique<FileFetch>(shard, pool, rules, std::move(url.file), std::move(done));
  }
  return std::make_unique<HttpFetch>(shard, rules, std::move(url), std::move(done));
}

int MediaFetch::Running() { return fetching.load(); }
size_t MediaFetch::Held() { return held_bytes.load(); }

}  // namespace portico
