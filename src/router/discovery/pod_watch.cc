#include "router/discovery/pod_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace portico::router {
namespace {

constexpr size_t kMaxList = 64 << 20;  // of one page
constexpr size_t kMaxLine = 8 << 20;
constexpr int kPage = 250;  // pods
constexpr int kWatchSeconds = 300;
constexpr Duration kListPatience = std::chrono::seconds(30);
constexpr Duration kWatchPatience = std::chrono::seconds(kWatchSeconds + 30);
constexpr Duration kFirstPause = std::chrono::milliseconds(500);
constexpr Duration kLongestPause = std::chrono::seconds(30);

std::string Escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    escaped += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return escaped;
}

}  // namespace

PodWatch::PodWatch(net::Shard& shard, net::Http1Client& client, const ClusterOptions& cluster,
                   PodWatchOptions options, std::function<void()> on_change,
                   std::function<void()> on_failure)
    : shard_(shard),
      client_(client),
      cluster_(cluster),
      options_(std::move(options)),
      on_change_(std::move(on_change)),
      on_failure_(std::move(on_failure)) {}

void PodWatch::List() {
  listing_.clear();
  version_.clear();
  Ask(Step::kList, fmt::format("&limit={}", kPage));
}

void PodWatch::Watch() {
  Ask(Step::kWatch,
      fmt::format("&watch=true&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}",
                  kWatchSeconds, Escape(version_)));
}

void PodWatch::Ask(Step step, const std::string& query) {
  step_ = step;
  status_ = 0;
  bytes_.clear();
  const auto token = ReadToken(cluster_);
  if (!token.ok()) return Fail(std::string(MessageOf(token.status())));
  const bool ipv6 = cluster_.host.find(':') != std::string::npos;
  const std::string space = options_.space.empty() ? "" : "/namespaces/" + Escape(options_.space);
  net::HttpCallRequest request;
  request.head = fmt::format(
      "GET /api/v1{}/pods?labelSelector={}{} HTTP/1.1\r\nhost: {}{}{}:{}\r\n"
      "authorization: Bearer {}\r\naccept: application/json\r\nuser-agent: portico\r\n\r\n",
      space, Escape(options_.selector), query, ipv6 ? "[" : "", cluster_.host, ipv6 ? "]" : "",
      cluster_.port, *token);
  timer_ = shard_.After(step == Step::kList ? kListPatience : kWatchPatience, [this] {
    call_.reset();
    Fail("it does not answer");
  });
  call_ = client_.Start(std::move(request), *this);
}

void PodWatch::Fail(const std::string& why) {
  call_.reset();
  on_failure_();
  if (failures_++ == 0) {
    LogWarning("Kubernetes: pods of {} cannot be watched: {}; the workers stay as they are",
               options_.selector, why);
  }
  const auto grown = kFirstPause * (1 << std::min(failures_ - 1, 6));
  Later(std::min<Duration>(grown, kLongestPause));
}

void PodWatch::Later(Duration pause) {
  timer_ = shard_.After(pause, [this] { version_.empty() ? List() : Watch(); });
}

void PodWatch::OnHead(net::ResponseHead& head) {
  status_ = head.status;
  if (status_ != 200 || failures_ == 0) return;
  LogInfo("Kubernetes: pods of {} are watched again", options_.selector);
  failures_ = 0;
}

void PodWatch::OnBody(std::string_view bytes) {
  bytes_.append(bytes);
  if (step_ == Step::kWatch && status_ == 200) {
    size_t begin = 0;
    for (size_t end = bytes_.find('\n'); end != std::string::npos; end = bytes_.find('\n', begin)) {
      const std::string line = bytes_.substr(begin, end - begin);
      begin = end + 1;
      if (!line.empty()) TakeEvent(line);
      if (call_ == nullptr) return;  // the watch is over
    }
    bytes_.erase(0, begin);
  }
  const bool list = step_ == Step::kList;
  if (bytes_.size() > (list ? kMaxList : kMaxLine)) Fail("its answer is too long");
}

void PodWatch::TakeEvent(std::string_view line) {
  auto event = ReadPodEvent(line);
  if (!event.ok()) return Fail(std::string(MessageOf(event.status())));
  switch (event->kind) {
    case PodEvent::Kind::kExpired:
      call_.reset();
      version_.clear();
      return Later(Duration::zero());
    case PodEvent::Kind::kError:
      version_.clear();
      return Fail(event->message);
    case PodEvent::Kind::kBookmark:
      version_ = event->version;
      return;
    case PodEvent::Kind::kThere: {
      version_ = event->version;
      const std::string uid = event->pod.uid;
      pods_[uid] = std::move(event->pod);
      return on_change_();
    }
    case PodEvent::Kind::kGone:
      version_ = event->version;
      pods_.erase(event->pod.uid);
      return on_change_();
  }
}

void PodWatch::TakePage() {
  auto page = ReadPodPage(bytes_);
  if (!page.ok()) return Fail(std::string(MessageOf(page.status())));
  for (Pod& pod : page->pods) {
    const std::string uid = pod.uid;
    listing_[uid] = std::move(pod);
  }
  if (!page->more.empty()) {
    return Ask(Step::kList, fmt::format("&limit={}&continue={}", kPage, Escape(page->more)));
  }
  pods_ = std::exchange(listing_, {});
  version_ = page->version;
  listed_ = true;
  on_change_();
  Watch();
}

void PodWatch::OnDone() {
  call_.reset();
  timer_.reset();
  if (status_ == 410) {  // the version, or the list's next page, is too old
    version_.clear();
    return Later(Duration::zero());
  }
  if (status_ != 200) {
    const bool denied = status_ == 401 || status_ == 403;
    return Fail(
        fmt::format("it answers {}{}", status_,
                    denied ? "; the service account must be allowed to list and watch pods" : ""));
  }
  if (step_ == Step::kList) return TakePage();
  Later(std::chrono::milliseconds(100));  // a server that ends each watch at once
}

void PodWatch::OnFailed(net::CallFailure, const std::string& why) {
  call_.reset();
  Fail(why);
}

}  // namespace portico::router
