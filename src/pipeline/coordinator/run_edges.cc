// How the parts and the ends of one request get from a stage to those behind it.
//
// A stage waits for payloads: those of its `wait_for`, else what comes by `next`. Where there are
// such, what other stages stream to it is held until all of them have ended, unless it accepts that
// early. Where nothing is held, parts go on as they come. A stream back to a stage before it is one
// more stream there: it never holds up the stage that sends it, so that a full queue on one side of
// the cycle empties, and the stage that it goes to ends by itself.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "pipeline/config/config_graph.h"
#include "pipeline/coordinator/request_run.h"

namespace portico::pipeline {

void RequestRun::Connect(size_t from, size_t to, bool goes_back) {
  const StageConfig& source = nodes_[from].host->config();
  Node& target = nodes_[to];
  const StageConfig& config = target.host->config();
  Edge edge{.to = to, .streams = HasName(source.stream_to, config.name), .goes_back = goes_back};
  edge.payload = config.wait_for.empty() ? HasName(source.next, config.name)
                                         : HasName(config.wait_for, source.name);
  edge.hop = target.host->HopFrom(source.name);
  nodes_[from].behind.push_back(edge);
  target.sources.push_back(from);
  if (goes_back) {
    ++target.open_behind;
  } else {
    ++target.open_sources;
    ++target.chosen_sources;
  }
  if (edge.payload) {
    ++target.open_payloads;
    ++target.chosen_payloads;
    target.takes_payloads = true;
  }
  const bool several = target.takes_payloads && target.chosen_payloads < target.sources.size();
  target.tells_ends = target.host->stage().sees_ends() &&
                      (target.waits_for_all || several || target.open_behind > 0);
}

bool RequestRun::Emit(size_t node, Part part, std::string_view target) {
  const MutexLock lock(&mutex_);
  return EmitLocked(node, std::move(part), target);
}

bool RequestRun::EmitLocked(size_t node, Part part, std::string_view target) {
  Node& from = nodes_[node];
  if (ended_ || from.ended) return false;
  from.moved = Clock::now();
  for (size_t i = 0; i < from.behind.size(); ++i) {
    const Edge& edge = from.behind[i];
    if (!target.empty() && NameOf(edge.to) != target) continue;
    events_.Sent(node, i, edge.to, edge.streams, part);
    const bool last = !target.empty() || i + 1 == from.behind.size();
    Status arrived = Arrive(edge, node, last ? std::move(part) : part);
    if (arrived.ok()) continue;
    FailSoon(std::move(arrived));
    return false;
  }
  return true;
}

void RequestRun::Choose(size_t node, std::vector<std::string> targets) {
  const MutexLock lock(&mutex_);
  if (!ended_ && !nodes_[node].ended) nodes_[node].chosen = std::move(targets);
}

void RequestRun::EndStreams(size_t node, std::vector<std::string> targets) {
  const MutexLock lock(&mutex_);
  if (!ended_ && !nodes_[node].ended) nodes_[node].told = std::move(targets);
}

bool RequestRun::LeavesOut(size_t node, const Edge& edge) const {
  if (edge.to == kClient) return false;
  const auto& names = edge.streams ? nodes_[node].told : nodes_[node].chosen;
  return names && !HasName(*names, NameOf(edge.to));
}

void RequestRun::WaitFor(size_t node, std::vector<std::string> sources) {
  std::sort(sources.begin(), sources.end());
  const MutexLock lock(&mutex_);
  Node& at = nodes_[node];
  if (ended_ || at.ended) return;
  if (at.awaited) {
    if (*at.awaited == sources) return;
    return FailSoon(Error(StatusCode::kInternal,
                          fmt::format("stage `{}` began anew and waits for other sources than "
                                      "before",
                                      NameOf(node))));
  }
  at.awaited = std::move(sources);
  for (const size_t source : at.sources) {
    if (!Drops(node, source)) continue;
    std::erase_if(at.input, [&](const Given& given) {
      if (given.source != source) return false;
      if (given.part) at.input_bytes -= PartBytes(*given.part);
      return true;
    });
    std::erase_if(at.held, [&](const auto& held) {
      if (held.source != source) return false;
      at.held_bytes -= PartBytes(*held.part);
      return true;
    });
    if (nodes_[source].ended) continue;
    --at.open_sources;
    --at.open_payloads;
  }
  if (at.open_payloads == 0) Gather(node);
  Schedule(node);
  for (const size_t source : at.sources) Schedule(source);
}

bool RequestRun::Drops(size_t node, size_t source) const {
  const Node& to = nodes_[node];
  if (to.ended) return true;
  return to.awaited && HasName(to.host->config().wait_for, NameOf(source)) &&
         !HasName(*to.awaited, NameOf(source));
}

bool RequestRun::PassesNow(const Edge& edge) const {
  const Node& to = nodes_[edge.to];
  const StageConfig& config = to.host->config();
  if (!edge.streams) return false;
  if (!edge.payload) return to.open_payloads == 0 || config.accepts_early;
  // A function gathers them where it runs, portico.in_order here.
  return !to.waits_for_all || (config.accepts_early && StageConfig::IsPythonPath(config.merge_fn));
}

Status RequestRun::Arrive(const Edge& edge, size_t source, Part part) {
  const size_t bytes = PartBytes(part);
  if (edge.to == kClient) {
    if (const auto* sound = std::get_if<EncodedPart>(&part)) {
      audio_.Came(nodes_[source].moved, sound->seconds);
    }
    answer_bytes_ += bytes;
    answer_.push_back({source, std::move(part), nodes_[source].moved, edge.hop});
    Notify();
    return OkStatus();
  }
  if (Drops(edge.to, source)) return OkStatus();
  Node& to = nodes_[edge.to];
  if (PassesNow(edge)) {
    to.input_bytes += bytes;
    if (edge.goes_back && to.input_bytes > kHeldBytes) {
      return Error(StatusCode::kResourceExhausted,
                   fmt::format("more than {} MB wait for stage `{}`, which does not take what is "
                               "streamed back to it",
                               kHeldBytes >> 20, NameOf(edge.to)));
    }
    to.input.push_back({source, std::move(part), nodes_[source].moved, edge.hop});
    Schedule(edge.to);
    return OkStatus();
  }
  to.held_bytes += bytes;
  if (to.held_bytes > kHeldBytes) {
    const std::string_view way_out = edge.streams && !edge.payload
                                         ? "let it can_accept_stream_before_payload"
                                         : "let the stages before it stream_to it";
    return Error(StatusCode::kResourceExhausted,
                 fmt::format("more than {} MB wait for stage `{}`; {}", kHeldBytes >> 20,
                             NameOf(edge.to), way_out));
  }
  to.held.push_back({source, std::move(part), {}, edge.hop});
  return OkStatus();
}

void RequestRun::PassOver(size_t node) {
  Node& at = nodes_[node];
  if (std::exchange(at.ended, true)) return;
  at.input.clear();
  at.held.clear();
  at.input_bytes = 0;
  if (at.run != nullptr) at.run->Abort();
  EndNode(node);
  for (const Edge& edge : at.behind) SourceEnded(edge, node, /*left_out=*/true);
  for (const size_t source : at.sources) Schedule(source);  // there is room for it now
}

void RequestRun::Release(size_t node, size_t source) {
  Node& to = nodes_[node];
  if (to.held.empty()) return;
  const TimePoint now = Clock::now();
  for (Given& held : to.held) {
    if (held.source != source) continue;
    const size_t bytes = PartBytes(*held.part);
    to.held_bytes -= bytes;
    to.input_bytes += bytes;
    held.sent = now;
    to.input.push_back(std::move(held));
  }
  std::erase_if(to.held, [source](const Given& held) { return held.source == source; });
}

void RequestRun::TellEnd(size_t node, size_t source) {
  Node& to = nodes_[node];
  if (to.tells_ends) to.input.push_back({source, std::nullopt});
}

void RequestRun::Gather(size_t node) {
  Node& to = nodes_[node];
  if (std::exchange(to.gathered, true)) return;
  if (to.waits_for_all) events_.Gathered(node);
  for (const std::string& name : to.host->config().wait_for) {
    for (const size_t source : to.sources) {
      if (NameOf(source) == name) Release(node, source);
    }
  }
  TellEnd(node, kGathered);
  for (const size_t source : to.sources) Release(node, source);
  for (const size_t source : std::exchange(to.held_ends, {})) TellEnd(node, source);
}

void RequestRun::SourceEnded(const Edge& edge, size_t source, bool left_out) {
  if (edge.to == kClient) {
    if (--open_terminals_ > 0) return;
    ended_ = true;
    audio_.Report(true, audio_metrics_);
    events_.Ended(source, true);
    Notify();
    return;
  }
  if (Drops(edge.to, source)) return;
  Node& to = nodes_[edge.to];
  --(edge.goes_back ? to.open_behind : to.open_sources);
  if (edge.payload) --to.open_payloads;
  if (left_out) {
    std::erase_if(to.held, [&](const auto& held) {
      if (held.source != source) return false;
      to.held_bytes -= PartBytes(*held.part);
      return true;
    });
    if (!edge.goes_back) --to.chosen_sources;
    if (edge.payload) --to.chosen_payloads;
    if (!edge.goes_back && (to.takes_payloads ? to.chosen_payloads == 0 : to.chosen_sources == 0)) {
      return PassOver(edge.to);
    }
  }
  const StageConfig& config = to.host->config();
  if (edge.payload) {
    // In their order in `wait_for` when the last one has ended, or one by one to the function that tells which are waited for.
    if (!to.waits_for_all || !config.wait_for_fn.empty()) {
      Release(edge.to, source);
      if (!left_out) TellEnd(edge.to, source);
    } else if (!left_out) {
      to.held_ends.push_back(source);  // Gather() passes it on
    }
    if (to.open_payloads == 0) Gather(edge.to);
  } else if (!left_out) {
    if (to.open_payloads > 0 && !config.accepts_early) {
      to.held_ends.push_back(source);
    } else {
      TellEnd(edge.to, source);
    }
  }
  Schedule(edge.to);
}

}  // namespace portico::pipeline
