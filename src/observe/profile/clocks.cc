#include "observe/profile/clocks.h"

#include <cstdlib>
#include <limits>
#include <map>
#include <unordered_map>

namespace portico::observe {
namespace {

// What two readings of the two clocks may differ by without a step of the wall clock.
constexpr int64_t kSameReading = 100'000;

void Shift(Profile* profile, const std::vector<int64_t>& by) {
  for (ProfileEvent& event : profile->events) {
    event.nanoseconds += by[static_cast<size_t>(event.process)];
  }
  for (ProfileStep& step : profile->steps) {
    step.nanoseconds += by[static_cast<size_t>(step.process)];
  }
  for (size_t i = 0; i < by.size(); ++i) profile->processes[i].shifted += by[i];
}

void UndoSteps(Profile* profile) {
  std::map<std::string, int64_t> first;
  std::vector<int64_t> by(profile->processes.size(), 0);
  for (size_t i = 0; i < by.size(); ++i) {
    const ProfileProcess& process = profile->processes[i];
    if (process.boot_id.empty()) continue;
    const auto [at, added] = first.emplace(process.boot_id, process.monotonic_to_wall);
    const int64_t difference = at->second - process.monotonic_to_wall;
    if (std::abs(difference) > kSameReading) by[i] = difference;
  }
  Shift(profile, by);
}

// A request at the gateway and at a worker.
struct Exchange {
  int64_t sent = 0;      // by the gateway
  int64_t received = 0;  // by the worker
  int64_t answered = 0;  // by the worker
  int64_t arrived = 0;   // at the gateway
  int32_t gateway = -1;
  int32_t worker = -1;
  bool retried = false;
};

std::unordered_map<uint32_t, Exchange> Exchanges(const Profile& profile) {
  const Words& words = profile.words;
  const uint32_t gateway = words.Find("gateway");
  const uint32_t sent = words.Find("stage_hop_sent");
  const uint32_t received = words.Find("socket_received");
  const uint32_t answered = words.Find("write_start");
  const uint32_t arrived = words.Find("stage_stream_chunk_received");
  std::unordered_map<uint32_t, Exchange> exchanges;
  if (gateway == 0) return exchanges;
  for (const ProfileEvent& event : profile.events) {
    if (event.stage == gateway && event.name != sent && event.name != arrived) continue;
    if (event.name != sent && event.name != received && event.name != answered &&
        event.name != arrived) {
      continue;
    }
    Exchange& exchange = exchanges[event.request];
    if (event.stage == gateway) {
      exchange.gateway = event.process;
      if (event.name == sent) {
        exchange.retried = exchange.retried || exchange.sent != 0;
        exchange.sent = event.nanoseconds;
      } else if (exchange.arrived == 0) {
        exchange.arrived = event.nanoseconds;
      }
    } else if (event.name == received) {
      exchange.worker = event.process;
      exchange.received = event.nanoseconds;
    } else if (event.name == answered && exchange.answered == 0) {
      exchange.answered = event.nanoseconds;
    }
  }
  return exchanges;
}

void JoinHosts(Profile* profile) {
  struct Best {
    int64_t way = std::numeric_limits<int64_t>::max();
    int64_t offset = 0;
  };
  std::map<std::string, Best> hosts;
  for (const auto& [request, exchange] : Exchanges(*profile)) {
    if (exchange.gateway < 0 || exchange.worker < 0 || exchange.retried) continue;
    if (exchange.sent == 0 || exchange.answered == 0 || exchange.arrived == 0) continue;
    const auto& here = profile->processes[static_cast<size_t>(exchange.gateway)].boot_id;
    const auto& there = profile->processes[static_cast<size_t>(exchange.worker)].boot_id;
    if (here.empty() || there.empty() || here == there) continue;
    const int64_t out = exchange.received - exchange.sent;
    const int64_t back = exchange.arrived - exchange.answered;
    Best& best = hosts[there];
    if (out + back >= best.way) continue;
    best.way = out + back;
    best.offset = (out - back) / 2;
  }
  std::vector<int64_t> by(profile->processes.size(), 0);
  for (size_t i = 0; i < by.size(); ++i) {
    const auto host = hosts.find(profile->processes[i].boot_id);
    if (host != hosts.end()) by[i] = -host->second.offset;
  }
  Shift(profile, by);
}

}  // namespace

void AlignClocks(Profile* profile) {
  UndoSteps(profile);
  JoinHosts(profile);
}

}  // namespace portico::observe
