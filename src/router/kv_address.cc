#include "router/kv_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"

namespace portico::router {
namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kIpc = "ipc://";
constexpr std::string_view kWildcards[] = {"*", "0.0.0.0", "::", "[::]"};
constexpr const char* kDefaultEndpoint = "tcp://*:5557";  // of both servers
constexpr int kMaxRanks = 256;
constexpr size_t kMaxTopic = 1024;
constexpr int kMaxPort = 65535;
// Of the server's own business.
constexpr std::string_view kNotOurs[] = {"enable_kv_cache_events", "buffer_steps", "hwm",
                                         "max_queue_size", "format"};

struct TcpPlace {
  std::string_view host;
  int port = 0;
};

// Port 0: it is none.
TcpPlace TcpPlaceOf(std::string_view endpoint) {
  if (!endpoint.starts_with(kTcp)) return {};
  endpoint.remove_prefix(kTcp.size());
  const size_t colon = endpoint.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return {};
  TcpPlace place{.host = endpoint.substr(0, colon)};
  const bool number = absl::SimpleAtoi(std::string(endpoint.substr(colon + 1)), &place.port);
  if (!number || place.port < 1 || place.port > kMaxPort) place.port = 0;
  if (place.host.find_first_of(" /;@") != std::string_view::npos) place.port = 0;
  return place;
}

bool IsWildcard(std::string_view host) {
  return std::find(std::begin(kWildcards), std::end(kWildcards), host) != std::end(kWildcards);
}

Status CheckEndpoint(std::string_view member, const std::string& endpoint, int ranks) {
  const bool ipc = endpoint.starts_with(kIpc) && endpoint.size() > kIpc.size();
  const int port = TcpPlaceOf(endpoint).port;
  if (!ipc && port == 0) {
    return InvalidArgument(
        member, fmt::format("{}: `{}` is not tcp://host:port or ipc://path", member, endpoint));
  }
  if (ranks > 1 && (ipc || port + ranks - 1 > kMaxPort)) {
    return InvalidArgument(
        member, fmt::format("{}: `{}` has no ports for {} ranks", member, endpoint, ranks));
  }
  return OkStatus();
}

StatusOr<KvAddress> Checked(KvAddress address) {
  PORTICO_RETURN_IF_ERROR(CheckEndpoint("endpoint", address.endpoint, address.ranks));
  if (address.topic.size() > kMaxTopic) {
    return InvalidArgument("topic", fmt::format("topic has more than {} bytes", kMaxTopic));
  }
  if (!address.replay.empty()) {
    PORTICO_RETURN_IF_ERROR(CheckEndpoint("replay_endpoint", address.replay, address.ranks));
  }
  return address;
}

Status ReadMember(const std::string& key, const Json& value, KvAddress* address) {
  if (std::find(std::begin(kNotOurs), std::end(kNotOurs), key) != std::end(kNotOurs)) {
    return OkStatus();
  }
  if (key == "publisher") {
    if (value.is_string() && value.as_string() == "zmq") return OkStatus();
    return InvalidArgument(key, "publisher must be zmq");
  }
  if (key == "bind") {
    if (value.is_null() || (value.is_bool() && value.as_bool())) return OkStatus();
    return InvalidArgument(key, "bind: only publishers that bind can be followed");
  }
  if (key == "dp_size") {
    if (value.is_int() && value.as_int() >= 1 && value.as_int() <= kMaxRanks) {
      address->ranks = static_cast<int>(value.as_int());
      return OkStatus();
    }
    return InvalidArgument(key, fmt::format("dp_size must be in 1..{}", kMaxRanks));
  }
  std::string* text = key == "endpoint"          ? &address->endpoint
                      : key == "replay_endpoint" ? &address->replay
                      : key == "topic"           ? &address->topic
                                                 : nullptr;
  if (text == nullptr) return InvalidArgument(key, fmt::format("there is no `{}`", key));
  if (key == "replay_endpoint" && value.is_null()) return OkStatus();
  if (!value.is_string()) return InvalidArgument(key, fmt::format("{} must be a string", key));
  *text = value.as_string();
  return OkStatus();
}

int PortOf(const Json& object, std::string_view key) {
  const int64_t port = object.GetInt(key, 0);
  return port >= 1 && port <= kMaxPort ? static_cast<int>(port) : 0;
}

// SGLang's descriptor.
KvAddress FromDescriptor(const Json& events) {
  KvAddress address;
  const int port = PortOf(events, "endpoint_port_base");
  const int replay = PortOf(events, "replay_endpoint_port_base");
  if (events.GetString("publisher", "zmq") != "zmq" || port == 0) return {};
  address.endpoint = fmt::format("tcp://*:{}", port);
  if (replay != 0) address.replay = fmt::format("tcp://*:{}", replay);
  address.topic = events.GetString("topic");
  address.ranks = static_cast<int>(std::clamp<int64_t>(events.GetInt("dp_size", 1), 1, kMaxRanks));
  return address;
}

}  // namespace

StatusOr<KvAddress> ReadKvAddress(const Json& value) {
  if (value.is_string()) return ParseKvAddress(value.as_string());
  if (!value.is_object()) {
    return Error(StatusCode::kInvalidArgument, "it must be an endpoint or an object");
  }
  KvAddress address;
  address.endpoint = kDefaultEndpoint;
  for (const auto& [key, member] : value.as_object()) {
    PORTICO_RETURN_IF_ERROR(ReadMember(key, member, &address));
  }
  return Checked(std::move(address));
}

StatusOr<KvAddress> ParseKvAddress(std::string_view text) {
  if (text.starts_with('{')) {
    PORTICO_ASSIGN_OR_RETURN(const Json json, Json::Parse(text));
    return ReadKvAddress(json);
  }
  KvAddress address;
  address.endpoint = std::string(text);
  return Checked(std::move(address));
}

KvAddress KvAddressOfServer(const Json& info) {
  if (const Json* events = info.Find("kv_events"); events != nullptr && events->is_object()) {
    auto checked = Checked(FromDescriptor(*events));
    return checked.ok() ? *std::move(checked) : KvAddress{};
  }
  // Older releases: what the server was started with.
  const Json* arguments = info.Find("server_args");
  if (arguments == nullptr || !arguments->is_object()) arguments = &info;
  const Json* config = arguments->Find("kv_events_config");
  if (config == nullptr || (!config->is_string() && !config->is_object())) return {};
  auto read = ReadKvAddress(*config);
  // With an address of its own it connects, instead of being connected to.
  if (!read.ok() || !IsWildcard(TcpPlaceOf(read->endpoint).host)) return {};
  KvAddress address = *std::move(read);
  address.endpoint = fmt::format("tcp://*:{}", TcpPlaceOf(address.endpoint).port);
  const int replay = TcpPlaceOf(address.replay).port;
  address.replay = replay == 0 ? "" : fmt::format("tcp://*:{}", replay);
  address.ranks =
      static_cast<int>(std::clamp<int64_t>(arguments->GetInt("dp_size", 1), 1, kMaxRanks));
  auto checked = Checked(std::move(address));
  return checked.ok() ? *std::move(checked) : KvAddress{};
}

std::string KvEndpointOf(const std::string& endpoint, const std::string& host, int rank) {
  const TcpPlace place = TcpPlaceOf(endpoint);
  if (place.port == 0) return endpoint;
  std::string at(place.host);
  if (IsWildcard(at)) at = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return fmt::format("tcp://{}:{}", at, place.port + rank);
}

}  // namespace portico::router
