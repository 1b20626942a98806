#include "router/worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "absl/strings/numbers.h"

namespace portico::router {
namespace {

std::atomic<uint64_t> g_next_number{1};

Status Bad(std::string_view url, std::string_view why) {
  return Error(StatusCode::kInvalidArgument, fmt::format("worker `{}`: {}", url, why));
}

Status ReadScheme(std::string_view scheme, WorkerSpec* spec) {
  if (scheme == "http" || scheme == "https") {
    spec->protocol = Protocol::kHttp;
  } else if (scheme == "grpc" || scheme == "grpcs") {
    spec->protocol = Protocol::kGrpc;
  } else {
    return Bad(spec->url, "its scheme is not http, https, grpc or grpcs");
  }
  spec->tls = scheme.ends_with("s");
  return OkStatus();
}

}  // namespace

bool IsHeaderKey(std::string_view key) {
  return std::all_of(key.begin(), key.end(), [](char c) { return c >= ' ' && c < 0x7f; });
}

StatusOr<WorkerSpec> ParseWorkerUrl(std::string_view url) {
  WorkerSpec spec;
  spec.url = std::string(url);
  for (const char c : url) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) return Bad(url, "it has a space");
  }
  std::string_view rest = url;
  const size_t scheme = rest.find("://");
  if (scheme != std::string_view::npos) {
    PORTICO_RETURN_IF_ERROR(ReadScheme(rest.substr(0, scheme), &spec));
    rest.remove_prefix(scheme + 3);
  } else {
    spec.protocol = Protocol::kUnknown;
  }
  const size_t slash = rest.find_first_of("/?#");
  std::string_view place = rest.substr(0, slash);
  if (slash != std::string_view::npos) {
    std::string_view path = rest.substr(slash);
    if (path.find_first_of("?#") != std::string_view::npos) return Bad(url, "it has a query");
    while (path.ends_with('/')) path.remove_suffix(1);
    spec.path_prefix = std::string(path);
    if (spec.protocol == Protocol::kGrpc && !path.empty()) {
      return Bad(url, "it has a path, which gRPC does not use");
    }
  }
  if (place.find('@') != std::string_view::npos) return Bad(url, "it has a user name");
  std::string_view port;
  if (place.starts_with('[')) {
    const size_t end = place.find(']');
    if (end == std::string_view::npos) return Bad(url, "the bracket of its address is not closed");
    spec.host = std::string(place.substr(1, end - 1));
    port = place.substr(end + 1);
    if (!port.empty() && !port.starts_with(':')) return Bad(url, "its port is not a number");
    if (!port.empty()) port.remove_prefix(1);
  } else {
    const size_t colon = place.rfind(':');
    if (place.find(':') != colon) {
      const bool is_list = place.find(',') != std::string_view::npos;
      return Bad(url, is_list ? "it has a comma; --worker-urls takes URLs with spaces between them"
                              : "an IPv6 address stands in brackets");
    }
    spec.host = std::string(place.substr(0, colon));
    if (colon != std::string_view::npos) port = place.substr(colon + 1);
  }
  if (spec.host.empty()) return Bad(url, "it has no host");
  if (port.empty()) {
    if (place.ends_with(':')) return Bad(url, "its port is not a number");
    spec.port = spec.tls ? 443 : 80;
    if (spec.protocol != Protocol::kHttp) return Bad(url, "it has no port");
  } else if (!absl::SimpleAtoi(std::string(port), &spec.port) || spec.port < 1 ||
             spec.port > 65535) {
    return Bad(url, "its port is not in 1..65535");
  }
  return spec;
}

Status CheckPairWorker(const WorkerSpec& spec, bool dp_aware) {
  const auto refuse = [&](std::string_view why) {
    return InvalidArgument(
        "url", fmt::format("worker {}: {} workers {}", spec.url, RoleName(spec.role), why));
  };
  if (spec.protocol == Protocol::kUnknown) {
    return refuse("need a scheme: http://, https://, grpc:// or grpcs://");
  }
  // How decode would learn which rank has the cache of each of several prompts.
  if (spec.protocol == Protocol::kGrpc && dp_aware) {
    return refuse("of gRPC have no field for the rank: --dp-aware is for those of HTTP");
  }
  return OkStatus();
}

std::string_view ProtocolName(Protocol protocol) {
  switch (protocol) {
    case Protocol::kHttp:
      return "http";
    case Protocol::kGrpc:
      return "grpc";
    case Protocol::kUnknown:
      return "unknown";
  }
  return "unknown";
}

std::string_view HealthName(Health health) {
  switch (health) {
    case Health::kUnknown:
      return "unknown";
    case Health::kHealthy:
      return "healthy";
    case Health::kUnhealthy:
      return "unhealthy";
    case Health::kStalled:
      return "stalled";
  }
  return "unknown";
}

std::string_view AttemptFailureName(AttemptFailure failure) {
  switch (failure) {
    case AttemptFailure::kConnect:
      return "connect";
    case AttemptFailure::kLost:
      return "lost";
    case AttemptFailure::kMalformed:
      return "malformed";
    case AttemptFailure::kStatus:
      return "status";
    case AttemptFailure::kStalled:
      return "stalled";
  }
  return "lost";
}

std::string_view MalformedName(Malformed kind) {
  return kind == Malformed::kAnswer ? "answer" : "models";
}

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kPrefill:
      return "prefill";
    case Role::kDecode:
      return "decode";
    case Role::kRegular:
      return "regular";
  }
  return "regular";
}

std::string_view ServerUrl(const WorkerSpec& spec) {
  const std::string_view url = spec.url;
  return spec.dp_rank < 0 ? url : url.substr(0, url.rfind('@'));
}

Worker::Worker(WorkerSpec spec)
    : spec_(std::move(spec)),
      number_(g_next_number.fetch_add(1, std::memory_order_relaxed)),
      id_(fmt::format("w{}", number_)),
      added_(Clock::now()),
      models_(spec_.models),
      api_key_(spec_.api_key),
      labels_(spec_.labels),
      has_key_(!spec_.api_key.empty()),
      max_requests_(spec_.max_requests),
      priority_(spec_.priority),
      cost_(spec_.cost),
      protocol_(spec_.protocol) {
  NoteLife(added_);
}

void Worker::Change(const WorkerChange& change) {
  if (change.draining) SetDraining(*change.draining);
  if (change.max_requests) max_requests_.store(*change.max_requests, std::memory_order_relaxed);
  if (change.priority) priority_.store(*change.priority, std::memory_order_relaxed);
  if (change.cost) cost_.store(*change.cost, std::memory_order_relaxed);
  const MutexLock lock(&mutex_);
  if (change.api_key) {
    api_key_ = *change.api_key;
    has_key_.store(!api_key_.empty(), std::memory_order_relaxed);
  }
  for (const auto& [name, value] : change.labels) {
    std::erase_if(labels_, [&of = name](const auto& label) { return label.first == of; });
    if (value) labels_.emplace_back(name, *value);
  }
}

void Worker::ChangeLike(const Worker& other) {
  SetDraining(other.draining());
  std::string key = other.api_key();
  auto labels = other.labels();
  max_requests_.store(other.max_requests(), std::memory_order_relaxed);
  priority_.store(other.priority(), std::memory_order_relaxed);
  cost_.store(other.cost(), std::memory_order_relaxed);
  LikePauseOf(other);
  NoteAsleep(other.asleep_.load(std::memory_order_relaxed));
  SetUpdating(other.updating_.load(std::memory_order_relaxed));
  const MutexLock lock(&mutex_);
  api_key_ = std::move(key);
  has_key_.store(!api_key_.empty(), std::memory_order_relaxed);
  labels_ = std::move(labels);
}

std::string Worker::api_key() const {
  if (!has_key_.load(std::memory_order_relaxed)) return {};
  const MutexLock lock(&mutex_);
  return api_key_;
}

std::vector<std::pair<std::string, std::string>> Worker::labels() const {
  const MutexLock lock(&mutex_);
  return labels_;
}

void Worker::SetReport(const ReportedLoad& load) {
  const MutexLock lock(&mutex_);
  report_ = load;
  report_.own_requests = requests();
}

void Worker::LikePauseOf(const Worker& other) {
  bool paused = false;
  PauseReading reading = PauseReading::kInference;
  PauseDoubt doubt;
  {
    const MutexLock lock(&other.mutex_);
    paused = other.paused_.load(std::memory_order_relaxed);
    reading = other.pause_reading_;
    doubt = other.pause_doubt_;
  }
  if (paused) BeginPause(reading);
  if (doubt.number != 0) DoubtPause(doubt.been_down);
}

PauseBefore Worker::BeginPause(PauseReading reading) {
  const MutexLock lock(&mutex_);
  ++pause_changes_;
  return {.paused = paused_.exchange(true, std::memory_order_relaxed),
          .reading = std::exchange(pause_reading_, reading),
          .doubt = std::exchange(pause_doubt_, {})};
}

void Worker::RefusePause(const PauseBefore& before) {
  const MutexLock lock(&mutex_);
  if (!before.paused) return GoOn();
  pause_reading_ = before.reading;
  if (before.doubt.number != 0) Doubt(before.doubt.been_down);
}

void Worker::EndPause() {
  const MutexLock lock(&mutex_);
  GoOn();
}

void Worker::GoOn() {
  ++pause_changes_;
  pause_doubt_ = {};
  asleep_.store(0, std::memory_order_relaxed);
  paused_.store(false, std::memory_order_relaxed);
}

void Worker::DoubtPause(bool been_down) {
  const MutexLock lock(&mutex_);
  Doubt(been_down);
}

void Worker::Doubt(bool been_down) {
  // It may have been told to go on meanwhile.
  if (!paused_.load(std::memory_order_relaxed)) return;
  pause_doubt_ = {.number = ++pause_doubts_,
                  .reading = pause_reading_,
                  .been_down = been_down || pause_doubt_.been_down};
}

PauseDoubt Worker::pause_doubt() const {
  const MutexLock lock(&mutex_);
  return pause_doubt_;
}

bool Worker::SettlePause(const PauseDoubt& doubt, bool paused) {
  const MutexLock lock(&mutex_);
  if (pause_doubt_.number != doubt.number) return false;
  pause_doubt_ = {};
  if (!paused) GoOn();
  return !paused;
}

SurePause Worker::sure_pause() const {
  const MutexLock lock(&mutex_);
  const bool sure = paused() && pause_doubt_.number == 0 &&
                    !updating_.load(std::memory_order_relaxed) &&
                    controls_.load(std::memory_order_relaxed) == 0;
  return {.number = sure ? pause_changes_ : 0, .reading = pause_reading_};
}

bool Worker::EndSurePause(const SurePause& pause) {
  const MutexLock lock(&mutex_);
  const bool same = paused() && pause_changes_ == pause.number && pause_doubt_.number == 0 &&
                    controls_.load(std::memory_order_relaxed) == 0;
  if (same) GoOn();
  return same;
}

void Worker::EndControl() {
  const MutexLock lock(&mutex_);
  controls_.fetch_sub(1, std::memory_order_relaxed);
  ++pause_changes_;
}

std::string Worker::trouble() const {
  const MutexLock lock(&mutex_);
  return trouble_;
}

void Worker::SetTrouble(std::string_view why) {
  const MutexLock lock(&mutex_);
  trouble_ = why;
}

ReportedLoad Worker::report() const {
  const MutexLock lock(&mutex_);
  return report_;
}

KvAddress Worker::kv_address() const {
  const MutexLock lock(&mutex_);
  return kv_address_;
}

void Worker::SetKvAddress(KvAddress address) {
  const MutexLock lock(&mutex_);
  kv_address_ = std::move(address);
}

std::vector<std::string> Worker::models() const {
  const MutexLock lock(&mutex_);
  return models_;
}

void Worker::SetModels(std::vector<std::string> models) {
  const MutexLock lock(&mutex_);
  models_ = std::move(models);
}

std::vector<ModelCard> Worker::cards() const {
  const MutexLock lock(&mutex_);
  return cards_;
}

void Worker::SetCards(std::vector<ModelCard> cards) {
  const MutexLock lock(&mutex_);
  cards_ = std::move(cards);
}

}  // namespace portico::router
