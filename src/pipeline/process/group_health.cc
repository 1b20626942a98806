// How the processes of a group are: what health says of them, and when one must end.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "pipeline/process/group_state.h"

namespace portico::pipeline {
namespace {

constexpr Duration kAbortPatience = std::chrono::seconds(30);

}  // namespace

std::vector<std::string> ProcessGroup::Problems() const {
  const MutexLock lock(&mutex_);
  const TimePoint now = Clock::now();
  int down = 0, quiet = 0;
  Duration longest{};
  for (const auto& process : processes_) {
    if (process->state != State::kUp) {
      ++down;
    } else if (now - process->heard > kUnanswered) {
      ++quiet;
      longest = std::max(longest, now - process->heard);
    }
  }
  if (down + quiet == 0) return {};
  std::vector<std::string> names;
  for (const StageConfig* stage : options_.stages) names.push_back(stage->name);
  const std::string stages = fmt::format("stage {}", fmt::join(names, ", "));
  std::vector<std::string> problems;
  if (down > 0) {
    problems.push_back(fmt::format("{}: {} of {} processes {}", stages, down, processes_.size(),
                                   options_.restart ? "start again" : "have ended"));
  }
  if (quiet > 0) {
    problems.push_back(fmt::format("{}: {} of {} processes have answered nothing for {:.0f} s",
                                   stages, quiet, processes_.size(), Seconds(longest)));
  }
  return problems;
}

std::string ProcessGroup::Tick(Process& process, TimePoint now) {
  const Duration passed = now - std::exchange(process.ticked, now);
  if (process.state == State::kStarting) {
    if (now - process.started <= kStartPatience) return "";
    return fmt::format("it was not ready within {:.0f} s", Seconds(kStartPatience));
  }
  const uint64_t progress = process.channel->progress();
  if (std::exchange(process.progress, progress) != progress) process.heard = now;
  // From the question on: between two, nothing is to be heard, however long this thread was kept from asking.
  const bool unanswered = process.asked > process.heard;
  // While this thread stood still, the process may have, too: a container that was frozen. It gets the time behind that.
  if (unanswered && passed > 2 * period_) process.asked += passed - period_;
  if (unanswered && now - process.asked > silence_) {
    return fmt::format("it has answered nothing for {:.1f} s", Seconds(now - process.heard));
  }
  if (now - process.pinged > std::min<Duration>(silence_ / 4, kUnanswered / 4)) {
    process.pinged = now;
    if (!unanswered) process.asked = now;
    Send(process, NumberMessage(MessageKind::kPing, 0, 1));
  }
  for (const auto& [id, call] : process.calls) {
    if (call->aborted && now - call->aborted_at > kAbortPatience) {
      return fmt::format("it does not end a request that was aborted {:.0f} s ago",
                         Seconds(kAbortPatience));
    }
  }
  return "";
}

}  // namespace portico::pipeline
