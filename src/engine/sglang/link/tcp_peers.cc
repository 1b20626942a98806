#include "engine/sglang/link/tcp_peers.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/sglang/launch/listeners.h"

namespace portico::sglang {
namespace {

// Fields of a line; the states are those of include/net/tcp_states.h.
enum TableField { kLocal = 1, kRemote = 2, kState = 3, kUser = 7, kInode = 9 };
constexpr std::string_view kEstablished = "01";
constexpr std::string_view kCloseWait = "08";
constexpr std::string_view kLastAck = "09";
constexpr std::string_view kListening = "0A";
constexpr std::string_view kMappedV4 = "0000000000000000FFFF0000";  // ::ffff:0:0/96

struct TableConnection {
  std::string_view local;  // ADDRESS:PORT, in hexadecimal digits
  std::string_view remote;
  std::string_view state;
  uint32_t user = 0;
  bool has_process = false;
};

// What is between the separators, without what is empty.
std::vector<std::string_view> SplitText(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool ReadPeerNumber(std::string_view text, int base, uint32_t* number) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *number, base);
  return error == std::errc() && rest == end;
}

// An IPv6 socket that speaks IPv4 is written with the address of the other end.
std::string_view WithoutMapping(std::string_view end) {
  if (end.starts_with(kMappedV4)) end.remove_prefix(kMappedV4.size());
  return end;
}

std::optional<TableConnection> ReadTableLine(std::string_view line) {
  const std::vector<std::string_view> fields = SplitText(line, ' ');
  if (fields.size() <= kInode) return std::nullopt;
  TableConnection found;
  if (!ReadPeerNumber(fields[kUser], 10, &found.user)) return std::nullopt;  // the heading
  found.local = WithoutMapping(fields[kLocal]);
  found.remote = WithoutMapping(fields[kRemote]);
  found.state = fields[kState];
  found.has_process = fields[kInode] != "0";
  return found;
}

std::optional<uint16_t> PortOf(std::string_view end) {
  const size_t colon = end.rfind(':');
  uint32_t port = 0;
  if (colon == std::string_view::npos || !ReadPeerNumber(end.substr(colon + 1), 16, &port)) {
    return std::nullopt;
  }
  return static_cast<uint16_t>(port);
}

bool IsOneOf(std::string_view end, const std::vector<uint16_t>& ports) {
  const auto port = PortOf(end);
  return port.has_value() && std::find(ports.begin(), ports.end(), *port) != ports.end();
}

// As libzmq writes it; an IPv6 socket writes IPv4 peers as ::ffff:1.2.3.4.
std::string PlainAddress(const std::string& address) {
  constexpr std::string_view kMapped = "::ffff:";
  in6_addr v6{};
  char text[INET6_ADDRSTRLEN];
  if (inet_pton(AF_INET6, address.c_str(), &v6) != 1 ||
      inet_ntop(AF_INET6, &v6, text, sizeof(text)) == nullptr) {
    return address;
  }
  const std::string_view plain(text);
  const bool mapped = plain.starts_with(kMapped) && plain.find('.') != std::string_view::npos;
  return std::string(mapped ? plain.substr(kMapped.size()) : plain);
}

bool ListsPeer(const char* list, std::string_view address) {
  const std::string peer = PlainAddress(std::string(address));
  for (std::string_view each : SplitText(list == nullptr ? "" : list, ',')) {
    const size_t begin = std::min(each.find_first_not_of(' '), each.size());
    each = each.substr(begin, each.find_last_not_of(' ') + 1 - begin);
    if (!each.empty() && PlainAddress(std::string(each)) == peer) return true;
  }
  return false;
}

constexpr std::chrono::seconds kUnclearForLong{10};
constexpr std::chrono::seconds kAsksAgainWithin{30};
// Of each second.
constexpr Duration kMostReading = std::chrono::milliseconds(100);

std::string ReadTables() {
  std::stringstream text;
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const std::ifstream file(path, std::ios::binary);
    if (file) text << file.rdbuf();
    text.clear();  // an empty file fails the stream
  }
  return text.str();
}

}  // namespace

PeerUsers UsersConnected(std::string_view tables, const std::vector<uint16_t>& ports, uid_t user) {
  using Ends = std::pair<std::string_view, std::string_view>;
  absl::flat_hash_set<std::string_view> listeners;
  absl::flat_hash_set<Ends> own;  // as the peer sees them
  std::vector<TableConnection> connections;
  // Tables have thousands of lines, and most are of other ports.
  std::vector<std::string> ends;
  for (const uint16_t port : ports) ends.push_back(fmt::format(":{:04X} ", port));
  for (const std::string_view line : SplitText(tables, '\n')) {
    const bool counts = std::any_of(ends.begin(), ends.end(), [&](const std::string& end) {
      return line.find(end) != std::string_view::npos;
    });
    if (!counts) continue;
    if (auto found = ReadTableLine(line)) connections.push_back(*found);
  }
  for (const TableConnection& each : connections) {
    if (each.state == kListening && IsOneOf(each.local, ports)) listeners.insert(each.local);
  }
  for (const TableConnection& each : connections) {
    // One that is closed on its side has no process any more; one that the listener's side has closed gets nothing.
    if (!listeners.contains(each.remote) || !each.has_process) continue;
    if (each.state == kCloseWait || each.state == kLastAck) continue;
    if (each.user != user) return PeerUsers::kOthers;
    own.emplace(each.local, each.remote);
  }
  for (const TableConnection& each : connections) {
    if (each.state != kEstablished || !listeners.contains(each.local)) continue;
    if (!own.contains(Ends(each.remote, each.local))) return PeerUsers::kUnclear;
  }
  return own.empty() ? PeerUsers::kUnclear : PeerUsers::kOne;
}

bool UnclearPeers::Add(PeerUsers found, TimePoint now) {
  if (told_) return false;
  if (found != PeerUsers::kUnclear) {
    since_ = {};
    return false;
  }
  // Who is refused asks again within seconds: after a pause it is another peer's beginning.
  if (since_ == TimePoint{} || now - last_ > kAsksAgainWithin) since_ = now;
  last_ = now;
  told_ = now - since_ >= kUnclearForLong;
  return told_;
}

PeerUsers OwnUserConnected(const std::vector<uint16_t>& ports) {
  return UsersConnected(ReadTables(), ports, geteuid());
}

bool ListenersAreVisible(const std::vector<uint16_t>& ports) {
  const std::string tables = ReadTables();
  std::vector<uint16_t> missing = ports;
  for (const std::string_view line : SplitText(tables, '\n')) {
    const auto found = ReadTableLine(line);
    if (!found || found->state != kListening || found->user != geteuid()) continue;
    const auto port = PortOf(found->local);
    if (port.has_value()) std::erase(missing, *port);
  }
  return missing.empty();
}

StatusOr<std::function<bool(std::string_view)>> AdmissionTo(
    const std::vector<std::string>& addresses) {
  if (!std::all_of(addresses.begin(), addresses.end(), IsLoopbackAddress)) {
    return [warned = false](std::string_view peer) mutable {
      const bool listed = ListsPeer(std::getenv("SGLANG_ZMQ_ALLOWED_PEERS"), peer);
      if (!listed && !std::exchange(warned, true)) {
        LogWarning(
            "connections of {}, which SGLANG_ZMQ_ALLOWED_PEERS does not list, are refused; if "
            "SGLang's schedulers run there, be it on this machine, list it",
            peer);
      }
      return listed;
    };
  }
  std::vector<uint16_t> ports;
  for (const std::string& address : addresses) {
    uint32_t port = 0;
    if (!ReadPeerNumber(std::string_view(address).substr(address.rfind(':') + 1), 10, &port) ||
        port > UINT16_MAX) {
      return Error(StatusCode::kInvalidArgument, fmt::format("{} has no port", address));
    }
    ports.push_back(static_cast<uint16_t>(port));
  }
  if (!ListenersAreVisible(ports)) {
    return Error(StatusCode::kFailedPrecondition,
                 "this system does not show in /proc/net/tcp whose processes are connected to "
                 "SGLang's TCP sockets; use --sglang-transport ipc");
  }
  return [ports, warned = false, unclear = UnclearPeers(), second = TimePoint{},
          spent = Duration{}](std::string_view) mutable {
    // The tables have all connections of the machine, and who connects again and again must not keep this thread from its
    // other work. A peer that is refused tries again.
    const TimePoint began = Clock::now();
    if (began - second >= std::chrono::seconds(1)) {
      second = began;
      spent = {};
    }
    if (spent > kMostReading) return false;
    PeerUsers users = OwnUserConnected(ports);
    // The tables are read in pieces, and one may have one end of a connection alone.
    if (users == PeerUsers::kUnclear) users = OwnUserConnected(ports);
    spent += Clock::now() - began;
    if (users == PeerUsers::kOthers && !std::exchange(warned, true)) {
      LogWarning(
          "a process of another user has connected to SGLang's TCP sockets; while it is, no "
          "connection to them is accepted");
    }
    if (unclear.Add(users, Clock::now())) {
      LogWarning(
          "/proc/net/tcp has not shown for 10 s whose process is connecting to SGLang's TCP "
          "sockets; it is refused, and if it is SGLang's, use --sglang-transport ipc");
    }
    return users == PeerUsers::kOne;
  };
}

}  // namespace portico::sglang
