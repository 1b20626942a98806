#include "observe/profile/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "text/json.h"
#include "text/json_writer.h"

namespace portico::observe {
namespace {

// Process numbers of joined traces, so that they are nobody else's.
constexpr int64_t kTorchPids = 1'000'000'000;

class Writer {
 public:
  Writer(const Profile& profile, std::string* out) : profile_(profile), writer_(out) {
    base_ = INT64_MAX;
    if (!profile.events.empty()) base_ = profile.events.front().nanoseconds;
    for (const ProfileStep& step : profile.steps) {
      base_ = std::min(base_, step.nanoseconds - step.took);
    }
    writer_.BeginObject().Key("displayTimeUnit").String("ms").Key("traceEvents").BeginArray();
  }

  std::string_view Word(uint32_t id) const { return profile_.words.At(id); }
  int64_t Pid(int32_t process) const {
    const int64_t pid = profile_.processes[static_cast<size_t>(process)].pid;
    return pid == 0 ? process + 1 : pid;
  }
  double Microseconds(int64_t nanoseconds) const {
    return static_cast<double>(nanoseconds - base_) / 1e3;
  }
  int64_t base() const { return base_; }

  JsonWriter& Begin(std::string_view phase, std::string_view name, int64_t nanoseconds,
                    int32_t process) {
    writer_.BeginObject().Key("ph").String(phase).Key("name").String(name);
    writer_.Key("ts").Double(Microseconds(nanoseconds)).Key("pid").Int(Pid(process));
    return writer_;
  }

  void ProcessNames() {
    for (size_t i = 0; i < profile_.processes.size(); ++i) {
      const ProfileProcess& process = profile_.processes[i];
      Name("process_name", Pid(static_cast<int32_t>(i)), 0,
           fmt::format("{} {}{}{}", process.stage, process.pid, process.host.empty() ? "" : " on ",
                       process.host));
    }
  }
  void Name(std::string_view what, int64_t pid, int64_t tid, std::string_view name) {
    writer_.BeginObject().Key("ph").String("M").Key("name").String(what).Key("pid").Int(pid);
    writer_.Key("tid").Int(tid).Key("args").BeginObject().Key("name").String(name);
    writer_.EndObject().EndObject();
  }

  void Add(const Interval& interval) {
    const std::string name =
        fmt::format("{} {}", Word(interval.stage), IntervalBegin(interval.kind));
    for (const bool begins : {true, false}) {
      Begin(begins ? "b" : "e", name, begins ? interval.begin : interval.end, interval.process)
          .Key("cat")
          .String("request")
          .Key("tid")
          .Int(0)
          .Key("id")
          .String(Word(interval.request))
          .EndObject();
    }
  }

  void Add(const ProfileEvent& event) {
    Begin("n", fmt::format("{} {}", Word(event.stage), Word(event.name)), event.nanoseconds,
          event.process)
        .Key("cat")
        .String("request")
        .Key("tid")
        .Int(0)
        .Key("id")
        .String(Word(event.request))
        .Key("args")
        .BeginObject()
        .Key("peer")
        .String(Word(event.peer))
        .Key("modality")
        .String(Word(event.modality))
        .Key("chunk_id")
        .Int(event.chunk)
        .EndObject()
        .EndObject();
  }

  void Add(const Hop& hop, int64_t number) {
    const std::string name = fmt::format("{} → {}", Word(hop.from), Word(hop.to));
    Begin("s", name, hop.begin, hop.from_process)
        .Key("cat")
        .String("hop")
        .Key("tid")
        .Int(0)
        .Key("id")
        .Int(number)
        .EndObject();
    Begin("f", name, hop.end, hop.to_process)
        .Key("bp")
        .String("e")
        .Key("cat")
        .String("hop")
        .Key("tid")
        .Int(0)
        .Key("id")
        .Int(number)
        .EndObject();
  }

  void Add(const ProfileStep& step) {
    const int64_t track = step.stage;
    if (tracks_.emplace(Pid(step.process), track).second) {
      Name("thread_name", Pid(step.process), track, fmt::format("{} steps", Word(step.stage)));
    }
    Begin("X", Word(step.name), step.nanoseconds - step.took, step.process)
        .Key("dur")
        .Double(static_cast<double>(step.took) / 1e3)
        .Key("tid")
        .Int(track)
        .Key("args")
        .BeginObject()
        .Key("batch_size")
        .Int(step.batch)
        .EndObject()
        .EndObject();
  }

  // Chrome's JSON as PyTorch writes it: microseconds since baseTimeNanoseconds, or since 1970.
  Status AddTorch(const std::string& path, int64_t number) {
    PORTICO_ASSIGN_OR_RETURN(const std::string text, ReadMaybePacked(path, kMaxTorchBytes));
    PORTICO_ASSIGN_OR_RETURN(Json trace, Json::Parse(text));
    Json* events = trace.Find("traceEvents");
    if (events == nullptr || !events->is_array()) {
      return InvalidArgument("", path + " has no traceEvents");
    }
    const double shift = static_cast<double>(trace.GetInt("baseTimeNanoseconds", 0) - base_) / 1e3;
    for (Json& event : events->as_array()) {
      if (!event.is_object()) continue;
      const Json* at = event.Find("ts");
      if (at != nullptr && at->is_number()) event.Set("ts", at->as_double() + shift);
      const Json* pid = event.Find("pid");
      if (pid != nullptr && pid->is_int()) {
        event.Set("pid", kTorchPids * (number + 1) + pid->as_int());
      }
      writer_.Raw(event.Dump());
    }
    return OkStatus();
  }

  void End() { writer_.EndArray().EndObject(); }

 private:
  const Profile& profile_;
  JsonWriter writer_;
  int64_t base_ = 0;
  std::set<std::pair<int64_t, int64_t>> tracks_;
};

}  // namespace

std::string PerfettoTrace(const Profile& profile, const Breakdown& breakdown,
                          std::vector<std::string>* left_out) {
  std::string out;
  Writer writer(profile, &out);
  writer.ProcessNames();
  for (const Interval& interval : breakdown.intervals) writer.Add(interval);
  for (const ProfileEvent& event : profile.events) writer.Add(event);
  int64_t number = 0;
  for (const Hop& hop : breakdown.hops) writer.Add(hop, ++number);
  for (const ProfileStep& step : profile.steps) writer.Add(step);
  for (size_t i = 0; i < profile.torch_traces.size(); ++i) {
    const Status joined = writer.AddTorch(profile.torch_traces[i], static_cast<int64_t>(i));
    if (!joined.ok()) left_out->push_back(std::string(MessageOf(joined)));
  }
  writer.End();
  return out;
}

}  // namespace portico::observe
