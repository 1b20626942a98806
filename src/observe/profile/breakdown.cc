#include "observe/profile/breakdown.h"

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/stable_sort.h"

namespace portico::observe {
namespace {

struct IntervalKind {
  const char* begin;
  const char* end;
  bool of_sglang_omni;
  const char* stage = nullptr;  // of this one only
};

constexpr IntervalKind kKinds[] = {
    {"stage_input_received", "stage_complete", true},
    {"encoder_start", "encoder_end", true},
    {"preprocess_start", "preprocess_end", true},
    {"scheduler_request_build_start", "scheduler_request_build_end", true},
    {"scheduler_request_build_end", "scheduler_queue_enter", true},
    {"scheduler_queue_enter", "scheduler_prefill_start", true},
    {"scheduler_prefill_start", "scheduler_prefill_end", true},
    {"scheduler_prefill_end", "stage_complete", true},
    {"scheduler_prefill_start", "stage_first_stream_chunk_sent", true},
    {"scheduler_prefill_start", "scheduler_first_emit", true},
    {"scheduler_first_emit", "stage_complete", true},
    // Portico's own.
    {"request_admission", "terminal_response", false},
    {"socket_received", "write_start", false},
    {"socket_received", "write_end", false},
    {"render_start", "render_end", false},
    {"tokenize_start", "tokenize_end", false},
    {"detokenize_start", "detokenize_end", false},
    {"write_start", "write_end", false},
    {"scheduler_queue_enter", "stage_dispatch", false},
    {"stage_hop_sent", "stage_stream_chunk_received", false, "frontend"},
    {"stage_hop_sent", "stage_stream_chunk_received", false, "gateway"},
};

constexpr const char* kHopKinds[] = {"payload", "stream_chunk", "entry", "request", "first_byte"};
enum HopKinds : uint8_t { kPayload, kStreamChunk, kEntry, kRequest, kFirstByte };

Durations Sum(std::vector<double>* ms) {
  Durations sum;
  std::sort(ms->begin(), ms->end());
  sum.count = ms->size();
  if (ms->empty()) return sum;
  for (const double one : *ms) sum.total_ms += one;
  sum.avg_ms = sum.total_ms / static_cast<double>(ms->size());
  const auto at = [ms](double share) {
    const double place = static_cast<double>(ms->size() - 1) * share;
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, ms->size() - 1);
    return (*ms)[below] + ((*ms)[above] - (*ms)[below]) * (place - static_cast<double>(below));
  };
  sum.p50_ms = at(0.50);
  sum.p95_ms = at(0.95);
  sum.max_ms = ms->back();
  return sum;
}

double Milliseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e6; }

std::vector<Timeline> Timelines(const Profile& profile) {
  std::vector<Timeline> timelines;
  absl::flat_hash_map<uint32_t, size_t> at;
  for (size_t i = 0; i < profile.events.size(); ++i) {
    const ProfileEvent& event = profile.events[i];
    const auto [known, added] = at.emplace(event.request, timelines.size());
    if (added) timelines.push_back({event.request, {}, event.nanoseconds, 0});
    Timeline& timeline = timelines[known->second];
    timeline.events.push_back(static_cast<uint32_t>(i));
    timeline.end = event.nanoseconds;
  }
  return timelines;
}

// Of one request.
class Pairing {
 public:
  Pairing(const Profile& profile, Breakdown* out) : profile_(profile), out_(*out) {
    for (uint32_t kind = 0; kind < std::size(kKinds); ++kind) {
      opens_[profile.words.Find(kKinds[kind].begin)].push_back(kind);
      closes_[profile.words.Find(kKinds[kind].end)].push_back(kind);
    }
    opens_.erase(0);
    closes_.erase(0);
    const Words& words = profile.words;
    hop_sent_ = words.Find("stage_hop_sent");
    hop_failed_ = words.Find("stage_hop_failed");
    chunk_sent_ = words.Find("stage_stream_chunk_sent");
    input_received_ = words.Find("stage_input_received");
    chunk_received_ = words.Find("stage_stream_chunk_received");
    admission_ = words.Find("request_admission");
    socket_ = words.Find("socket_received");
    write_ = words.Find("write_start");
    coordinator_ = words.Find("coordinator");
    gateway_ = words.Find("gateway");
  }

  // Before Add() is called with any: which workers a process may be. A request may be with several
  // workers at a time, and what a worker records of it does not say by which name it was asked.
  void Learn(const Timeline& timeline) {
    if (gateway_ == 0) return;
    std::vector<uint32_t> asked;
    for (const uint32_t place : timeline.events) {
      const ProfileEvent& event = profile_.events[place];
      if (event.stage == gateway_ && event.name == hop_sent_) {
        asked.push_back(event.peer);
      } else if (event.stage == gateway_ &&
                 (event.name == chunk_received_ || event.name == hop_failed_)) {
        std::erase(asked, event.peer);
      } else if (event.stage != gateway_ && event.name == socket_) {
        const auto [known, added] = names_.emplace(event.process, asked);
        if (added) continue;
        std::erase_if(known->second, [&](uint32_t name) {
          return std::find(asked.begin(), asked.end(), name) == asked.end();
        });
      }
    }
  }

  void Add(const Timeline& timeline) {
    open_.clear();
    sent_.clear();
    calls_.clear();
    for (const uint32_t place : timeline.events) {
      const ProfileEvent& event = profile_.events[place];
      Intervals(event);
      Hops(event);
      if (gateway_ != 0) Workers(event);
    }
  }

 private:
  struct Mark {
    int64_t at = 0;
    int32_t process = 0;
  };
  // Of a gateway to a worker, until its answer has begun.
  struct Call {
    uint32_t worker;
    Mark sent;
    int32_t process = -1;  // of the worker; -1: it has not come there, or that cannot be told
    Mark answered{};       // at: 0 until then
  };

  bool Concerns(uint32_t kind, uint32_t stage) const {
    const char* only = kKinds[kind].stage;
    return only == nullptr || profile_.words.At(stage) == only;
  }

  // Intervals between two events of one peer: there may be several at a time.
  uint32_t PeerOf(const ProfileEvent& event) const {
    return event.name == hop_sent_ || event.name == chunk_received_ ? event.peer : 0;
  }

  void Intervals(const ProfileEvent& event) {
    if (const auto kinds = opens_.find(event.name); kinds != opens_.end()) {
      for (const uint32_t kind : kinds->second) {
        if (Concerns(kind, event.stage)) {
          open_[{event.stage, kind, PeerOf(event)}].push_back({event.nanoseconds, event.process});
        }
      }
    }
    if (event.name == hop_failed_) {  // what comes from that peer later is of another attempt
      std::erase_if(open_, [&](const auto& one) {
        return event.peer != 0 && std::get<2>(one.first) == event.peer;
      });
    }
    const auto kinds = closes_.find(event.name);
    if (kinds == closes_.end()) return;
    for (const uint32_t kind : kinds->second) {
      const auto begun = open_.find({event.stage, kind, PeerOf(event)});
      if (begun == open_.end() || begun->second.empty()) continue;
      out_.intervals.push_back({event.request, event.stage, kind, event.process,
                                begun->second.front().at, event.nanoseconds});
      begun->second.pop_front();
    }
  }

  void Hops(const ProfileEvent& event) {
    if (event.name == hop_sent_) {
      sent_[{event.stage, event.peer, kPayload, -1}].push_back({event.nanoseconds, event.process});
    } else if (event.name == chunk_sent_) {
      sent_[{event.stage, event.peer, kStreamChunk, event.chunk}].push_back(
          {event.nanoseconds, event.process});
    } else if (event.name == admission_ && event.peer != 0) {
      sent_[{event.stage, event.peer, kEntry, -1}].push_back({event.nanoseconds, event.process});
    } else if (event.name == input_received_ && event.peer != 0) {
      const bool first = event.peer == coordinator_;
      Arrived(event, first ? kEntry : kPayload, -1);
    } else if (event.name == chunk_received_ && event.peer != 0) {
      Arrived(event, kStreamChunk, event.chunk);
    }
  }

  void Arrived(const ProfileEvent& event, HopKinds kind, int64_t chunk) {
    const auto sent = sent_.find({event.peer, event.stage, kind, chunk});
    if (sent == sent_.end() || sent->second.empty()) return;
    const Mark mark = sent->second.front();
    sent->second.pop_front();
    out_.hops.push_back({event.request, event.peer, event.stage, kind, mark.process, event.process,
                         mark.at, event.nanoseconds});
  }

  // From a gateway to the servers of workers and back.
  void Workers(const ProfileEvent& event) {
    if (event.stage == gateway_) {
      if (event.name == hop_sent_) {
        calls_.push_back({event.peer, {event.nanoseconds, event.process}});
      } else if (event.name == chunk_received_ || event.name == hop_failed_) {
        const auto call = std::find_if(calls_.begin(), calls_.end(),
                                       [&](const Call& one) { return one.worker == event.peer; });
        if (call == calls_.end()) return;
        if (event.name == chunk_received_ && call->answered.at != 0) {
          out_.hops.push_back({event.request, event.peer, gateway_, kFirstByte,
                               call->answered.process, event.process, call->answered.at,
                               event.nanoseconds});
        }
        calls_.erase(call);
      }
    } else if (event.name == socket_) {
      Call* call = CallOf(event.process);
      if (call == nullptr) return;
      call->process = event.process;
      out_.hops.push_back({event.request, gateway_, call->worker, kRequest, call->sent.process,
                           event.process, call->sent.at, event.nanoseconds});
    } else if (event.name == write_) {
      for (Call& call : calls_) {
        if (call.process == event.process) call.answered = {event.nanoseconds, event.process};
      }
    }
  }

  // The call that has come to `process`, or null if that cannot be told.
  Call* CallOf(int32_t process) {
    const auto known = names_.find(process);
    Call* only = nullptr;
    int count = 0;
    for (Call& call : calls_) {
      if (call.process >= 0) continue;
      if (known != names_.end() && known->second.size() == 1 &&
          known->second.front() == call.worker) {
        return &call;
      }
      only = &call;
      ++count;
    }
    return count == 1 ? only : nullptr;
  }

  const Profile& profile_;
  Breakdown& out_;
  absl::flat_hash_map<uint32_t, std::vector<uint32_t>> opens_;
  absl::flat_hash_map<uint32_t, std::vector<uint32_t>> closes_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::deque<Mark>> open_;
  std::map<std::tuple<uint32_t, uint32_t, uint8_t, int64_t>, std::deque<Mark>> sent_;
  uint32_t hop_sent_, hop_failed_, chunk_sent_, input_received_, chunk_received_, admission_;
  uint32_t socket_, write_, coordinator_, gateway_;
  std::vector<Call> calls_;
  absl::flat_hash_map<int32_t, std::vector<uint32_t>> names_;  // of workers that a process may be
};

template <typename Row>
void MostTimeFirst(std::vector<Row>* rows) {
  StableSort(
      rows, [](const Row& a, const Row& b) { return a.durations.total_ms > b.durations.total_ms; });
}

void MakeRows(const Profile& profile, Breakdown* out) {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<double>> stages;
  for (const Interval& interval : out->intervals) {
    stages[{interval.stage, interval.kind}].push_back(Milliseconds(interval.end - interval.begin));
  }
  for (auto& [key, ms] : stages) {
    const IntervalKind& kind = kKinds[key.second];
    out->stages.push_back({profile.words.At(key.first), std::string(kind.begin) + "->" + kind.end,
                           kind.of_sglang_omni, Sum(&ms)});
  }
  std::map<std::tuple<uint32_t, uint32_t, uint8_t>, std::vector<double>> hops;
  for (const Hop& hop : out->hops) {
    hops[{hop.from, hop.to, hop.kind}].push_back(Milliseconds(hop.end - hop.begin));
  }
  for (auto& [key, ms] : hops) {
    const auto& [from, to, kind] = key;
    out->hop_rows.push_back({profile.words.At(from), profile.words.At(to), kHopKinds[kind],
                             kind == kPayload || kind == kStreamChunk, Sum(&ms)});
  }
  std::map<std::pair<uint32_t, uint32_t>, std::pair<std::vector<double>, double>> steps;
  for (const ProfileStep& step : profile.steps) {
    auto& [ms, batch] = steps[{step.stage, step.name}];
    ms.push_back(Milliseconds(step.took));
    batch += static_cast<double>(step.batch);
  }
  for (auto& [key, values] : steps) {
    auto& [ms, batch] = values;
    const double count = static_cast<double>(ms.size());
    out->steps.push_back(
        {profile.words.At(key.first), profile.words.At(key.second), batch / count, Sum(&ms)});
  }
  MostTimeFirst(&out->stages);
  MostTimeFirst(&out->hop_rows);
  MostTimeFirst(&out->steps);
}

}  // namespace

const char* IntervalBegin(uint32_t kind) { return kKinds[kind].begin; }
const char* IntervalEnd(uint32_t kind) { return kKinds[kind].end; }

Breakdown BreakDown(const Profile& profile) {
  Breakdown out;
  out.timelines = Timelines(profile);
  Pairing pairing(profile, &out);
  for (const Timeline& timeline : out.timelines) pairing.Learn(timeline);
  for (const Timeline& timeline : out.timelines) pairing.Add(timeline);
  MakeRows(profile, &out);
  return out;
}

}  // namespace portico::observe
