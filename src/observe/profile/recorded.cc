#include "observe/profile/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "base/events/event.h"
#include "base/events/recorder.h"
#include "base/events/request_names.h"

namespace portico::observe {
namespace {

// The events of one file of records.
class RecordedEvents {
 public:
  RecordedEvents(int64_t pid, int64_t to_wall, int32_t process, Profile* profile)
      : names_(pid), to_wall_(to_wall), process_(process), profile_(*profile) {
    for (const ProfileEvent& event : profile->events) {
      if (event.process == process) lines_[KeyOf(event)].push_back(event.request);
    }
    for (const ProfileStep& step : profile->steps) {
      if (step.process == process) ++step_lines_[KeyOf(step)];
    }
  }

  Status AddAll(const events::internal::RecordsInput& records) {
    const auto take = [this](const events::Line& line, std::string_view request_id) {
      too_many_ = too_many_ || profile_.events.size() + profile_.steps.size() >= kMaxEvents;
      if (too_many_) return;
      if (events::SpecOf(line.event).of_request) {
        AddEvent(EventOf(line, request_id));
      } else {
        AddStep(StepOf(line));
      }
    };
    PORTICO_RETURN_IF_ERROR(records.Read(&names_, take));
    return too_many_ ? TooManyEvents() : OkStatus();
  }

 private:
  // Without the request: a line has its name also where only a former run was told it.
  using EventKey = std::tuple<int64_t, uint32_t, uint32_t, uint32_t, uint32_t, int64_t, int64_t>;
  static EventKey KeyOf(const ProfileEvent& event) {
    return {event.nanoseconds, event.stage, event.name,  event.peer,
            event.modality,    event.chunk, event.number};
  }
  using StepKey = std::tuple<int64_t, uint32_t, uint32_t, int64_t, int64_t>;
  static StepKey KeyOf(const ProfileStep& step) {
    return {step.nanoseconds, step.stage, step.name, step.took, step.batch};
  }

  void AddEvent(ProfileEvent event) {
    if (HasLine(event)) return;
    if (const auto told = told_.find(event.request); told != told_.end()) {
      event.request = told->second;
    }
    ++profile_.processes[static_cast<size_t>(process_)].events;
    profile_.events.push_back(event);
  }

  void AddStep(const ProfileStep& step) {
    const auto line = step_lines_.find(KeyOf(step));
    if (line == step_lines_.end() || line->second == 0) return profile_.steps.push_back(step);
    --line->second;
  }

  // A line stands for one event: threads may record equal ones.
  bool HasLine(const ProfileEvent& event) {
    const auto line = lines_.find(KeyOf(event));
    if (line == lines_.end() || line->second.empty()) return false;
    auto& requests = line->second;
    auto request = std::find(requests.begin(), requests.end(), event.request);
    if (request == requests.end()) {
      request = requests.begin();
      const bool made = names_.IsMade(profile_.words.At(event.request));
      if (made && requests.size() == 1) told_.emplace(event.request, *request);
    }
    requests.erase(request);
    return true;
  }

  ProfileEvent EventOf(const events::Line& line, std::string_view request_id) {
    const events::EventSpec& spec = events::SpecOf(line.event);
    const events::Details& details = line.details;
    ProfileEvent event;
    event.nanoseconds = line.nanoseconds + to_wall_;
    event.request = profile_.words.Of(request_id);
    event.stage = profile_.words.Of(events::NameOf(line.stage));
    event.name = profile_.words.Of(spec.name);
    event.process = process_;
    event.peer = profile_.words.Of(events::NameOf(details.peer));
    event.modality = profile_.words.Of(events::NameOf(details.tag));
    for (const auto& [name, value] : {std::pair(spec.a, details.a), std::pair(spec.b, details.b)}) {
      if (value == events::Details::kNothing) continue;
      if (name == "chunk_id") {
        event.chunk = value;
      } else if (event.number < 0) {
        event.number = value;
        event.what = profile_.words.Of(name);
      }
    }
    return event;
  }

  ProfileStep StepOf(const events::Line& line) {
    ProfileStep step;
    step.nanoseconds = line.nanoseconds + to_wall_;
    step.stage = profile_.words.Of(events::NameOf(line.stage));
    step.name = profile_.words.Of(events::SpecOf(line.event).name);
    step.process = process_;
    step.took = std::max<int64_t>(line.details.b, 0);
    step.batch = std::max<int64_t>(line.details.a, 0);
    return step;
  }

  events::RequestNames names_;
  const int64_t to_wall_;
  const int32_t process_;
  Profile& profile_;
  bool too_many_ = false;
  // The requests of lines that are there.
  absl::flat_hash_map<EventKey, absl::InlinedVector<uint32_t, 2>> lines_;
  absl::flat_hash_map<StepKey, uint32_t> step_lines_;
  // What lines call a request whose name the records do not have.
  absl::flat_hash_map<uint32_t, uint32_t> told_;
};

}  // namespace

Status AddRecorded(const events::internal::RecordsInput& records,
                   const events::internal::RecordsFacts& facts, int32_t process, Profile* profile) {
  if (profile->run_id.empty()) profile->run_id = facts.run_id;
  RecordedEvents events(facts.head.pid, facts.head.to_wall, process, profile);
  return events.AddAll(records);
}

Status TooManyEvents() {
  return Error(StatusCode::kResourceExhausted,
               fmt::format("the profile has more than {} events", kMaxEvents));
}

}  // namespace portico::observe
