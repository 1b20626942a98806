#include "observe/profile/profile_files.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "base/events/record_reader.h"
#include "base/stable_sort.h"
#include "observe/profile/clocks.h"
#include "observe/profile/recorded.h"
#include "text/json.h"

namespace portico::observe {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxLine = 1 << 20;

bool IsTorchTrace(const std::string& name) {
  return name.ends_with(".trace.json") || name.ends_with(".trace.json.gz");
}

// The files of a folder in the order of their names.
std::vector<fs::path> FilesOf(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code gone;  // files go away while they are listed
    if (at->is_regular_file(gone)) files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<Json> ReadFacts(const fs::path& path) {
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  auto json = Json::Parse(text);
  if (!json.ok() || !json->is_object()) return std::nullopt;
  return *std::move(json);
}

bool IsFacts(const std::string& name) {
  return name.starts_with("run_") && name.ends_with(".json");
}

bool IsRecords(const std::string& name) {
  return name.starts_with("records_") && name.ends_with(".bin");
}

// "events_frontend_123.jsonl", "records_frontend_123.5.bin" → {"frontend", 123}
std::pair<std::string, int64_t> NameParts(std::string name) {
  const auto cut = [&name](size_t at) { name.resize(std::min(at, name.size())); };
  const bool records = IsRecords(name);
  cut(name.find_last_of('.'));
  if (records) cut(name.find_last_of('.'));
  const size_t first = name.find('_');
  const size_t last = name.find_last_of('_');
  if (first == std::string::npos || first == last) return {name, 0};
  int64_t pid = 0;
  for (const char c : name.substr(last + 1)) {
    if (c < '0' || c > '9') return {name.substr(first + 1), 0};
    pid = pid * 10 + (c - '0');
    if (pid > INT32_MAX) return {name.substr(first + 1), 0};
  }
  return {name.substr(first + 1, last - first - 1), pid};
}

class Reader {
 public:
  explicit Reader(Profile* profile) : profile_(*profile) {}

  Status ReadFile(const fs::path& path, bool steps) {
    const int32_t process = ProcessOf(path);
    std::ifstream file(path);
    if (!file) return Error(StatusCode::kNotFound, path.string() + " cannot be read");
    std::string line;
    while (std::getline(file, line)) {
      if (line.empty()) continue;
      const auto json =
          line.size() > kMaxLine ? StatusOr<Json>(InvalidArgument("", "long")) : Json::Parse(line);
      if (!json.ok() || !json->is_object() || json->GetString("event_name").empty()) {
        const bool is_being_written = file.eof() && HasRecords(path);  // they have the event
        if (!is_being_written) ++profile_.malformed;
        continue;
      }
      if (steps) {
        AddStep(*json, process);
      } else {
        AddEvent(*json, process);
      }
      if (profile_.events.size() + profile_.steps.size() > kMaxEvents) {
        return TooManyEvents();
      }
    }
    if (file.bad()) return Error(StatusCode::kUnavailable, path.string() + " cannot be read");
    return OkStatus();
  }

  // Before lines are read: a process removes its records when it has written all of them.
  Status OpenRecords(const fs::path& path) {
    auto records = events::internal::RecordsInput::Open(path.string());
    if (records.status().code() == StatusCode::kNotFound) return OkStatus();
    PORTICO_RETURN_IF_ERROR(records.status());
    records_.push_back(*std::move(records));
    return OkStatus();
  }
  Status AddRecords() {
    for (const events::internal::RecordsInput& records : records_) {
      const auto facts = records.ReadFacts();
      if (facts.status().code() == StatusCode::kInvalidArgument) {
        ++profile_.malformed;
        continue;
      }
      PORTICO_RETURN_IF_ERROR(facts.status());
      const int32_t process = ProcessOf(records.path());
      PORTICO_RETURN_IF_ERROR(AddRecorded(records, *facts, process, &profile_));
    }
    return OkStatus();
  }

 private:
  // Of the process that wrote the file.
  bool HasRecords(const fs::path& path) const {
    const auto parts = NameParts(path.filename().string());
    return std::any_of(records_.begin(), records_.end(), [&parts](const auto& records) {
      return NameParts(fs::path(records.path()).filename().string()) == parts;
    });
  }

  int32_t ProcessOf(const fs::path& path) {
    const auto [stage, pid] = NameParts(path.filename().string());
    const std::string key = fmt::format("{}_{}", stage, pid);
    const auto [at, added] = processes_.emplace(key, static_cast<int32_t>(processes_.size()));
    if (!added) return at->second;
    ProfileProcess process;
    process.stage = stage;
    process.pid = pid;
    if (const auto facts = ReadFacts(path.parent_path() / ("run_" + key + ".json"))) {
      process.host = facts->GetString("host");
      process.boot_id = facts->GetString("boot_id");
      process.monotonic_to_wall = facts->GetInt("monotonic_to_wall_ns", 0);
      process.ended = facts->GetBool("ended", false);
      process.dropped = static_cast<uint64_t>(facts->GetInt("dropped", 0));
      process.cut = static_cast<uint64_t>(facts->GetInt("cut", 0));
    }
    profile_.processes.push_back(std::move(process));
    return at->second;
  }

  void AddEvent(const Json& json, int32_t process) {
    ProfileEvent event;
    event.nanoseconds = json.GetInt("timestamp_ns", 0);
    event.request = profile_.words.Of(json.GetString("request_id"));
    const std::string stage = json.GetString("stage");
    event.stage = profile_.words.Of(stage.empty() ? "unknown" : stage);
    event.name = profile_.words.Of(json.GetString("event_name"));
    event.process = process;
    if (profile_.run_id.empty()) profile_.run_id = json.GetString("run_id");
    ++profile_.processes[static_cast<size_t>(process)].events;
    if (event.request == 0) return;  // of no request: sglang-omni leaves it out, too
    if (const Json* metadata = json.Find("metadata");
        metadata != nullptr && metadata->is_object()) {
      ReadMetadata(*metadata, &event);
    }
    profile_.events.push_back(event);
  }

  void ReadMetadata(const Json& metadata, ProfileEvent* event) {
    for (const auto& [name, value] : metadata.as_object()) {
      if (name == "from_stage" || name == "to_stage" || name == "entry_stage" || name == "next") {
        if (value.is_string()) event->peer = profile_.words.Of(value.as_string());
      } else if (name == "modality") {
        if (value.is_string()) event->modality = profile_.words.Of(value.as_string());
      } else if (name == "chunk_id") {
        if (value.is_int()) event->chunk = value.as_int();
      } else if (name == "monotonic_ns") {
        continue;
      } else if ((value.is_int() || value.is_bool()) && event->number < 0) {
        event->number = value.is_int() ? value.as_int() : value.as_bool() ? 1 : 0;
        event->what = profile_.words.Of(name);
      }
    }
  }

  void AddStep(const Json& json, int32_t process) {
    ProfileStep step;
    step.nanoseconds = json.GetInt("timestamp_ns", 0);
    step.stage = profile_.words.Of(json.GetString("stage"));
    step.name = profile_.words.Of(json.GetString("event_name"));
    step.process = process;
    if (const Json* metadata = json.Find("metadata")) {
      step.took = std::max<int64_t>(metadata->GetInt("duration_ns", 0), 0);
      step.batch = metadata->GetInt("batch_size", metadata->GetInt("deltas", 0));
    }
    profile_.steps.push_back(step);
  }

  Profile& profile_;
  std::map<std::string, int32_t> processes_;
  std::vector<events::internal::RecordsInput> records_;
};

// The folder with the events, and the folders where torch traces may lie.
std::pair<fs::path, std::vector<fs::path>> Folders(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path / "events", ignored)) return {path / "events", {path, path / "events"}};
  if (path.filename() == "events") return {path, {path.parent_path(), path}};
  return {path, {path}};
}

// The files of the path that can be events; beside it, those of the folders around.
struct PathFiles {
  std::vector<fs::path> files;
  std::vector<fs::path> around;
};
StatusOr<PathFiles> FilesOfPath(const std::string& path) {
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) return PathFiles{{path}, {}};
  if (!fs::is_directory(path, ignored)) {
    return Error(StatusCode::kNotFound, path + ": there is no such file or folder");
  }
  fs::path given = path;
  if (!given.has_filename()) given = given.parent_path();  // "run/"
  const auto [folder, around] = Folders(given);
  PathFiles found{FilesOf(folder), {}};
  for (const fs::path& at : around) {
    for (fs::path& file : FilesOf(at)) found.around.push_back(std::move(file));
  }
  return found;
}

Status OpenRecordsOf(const std::string& path, Reader* reader) {
  PORTICO_ASSIGN_OR_RETURN(const PathFiles found, FilesOfPath(path));
  for (const fs::path& file : found.files) {
    if (IsRecords(file.filename().string())) PORTICO_RETURN_IF_ERROR(reader->OpenRecords(file));
  }
  return OkStatus();
}

Status ReadPath(const std::string& path, Reader* reader, Profile* profile) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    return IsRecords(fs::path(path).filename().string()) ? OkStatus()
                                                         : reader->ReadFile(path, false);
  }
  PORTICO_ASSIGN_OR_RETURN(const PathFiles found, FilesOfPath(path));
  for (const fs::path& file : found.files) {
    const std::string name = file.filename().string();
    if (IsFacts(name)) profile->ran = true;
    if (!name.ends_with(".jsonl")) continue;
    if (name.starts_with("events_")) PORTICO_RETURN_IF_ERROR(reader->ReadFile(file, false));
    if (name.starts_with("steps_")) PORTICO_RETURN_IF_ERROR(reader->ReadFile(file, true));
  }
  for (const fs::path& file : found.around) {
    if (IsTorchTrace(file.filename().string())) profile->torch_traces.push_back(file.string());
  }
  return OkStatus();
}

// Why nothing was found: what is no profile is told apart from one that nothing happened in.
std::string WhyEmpty(const Profile& profile) {
  if (profile.malformed > 0) {
    return fmt::format("none of {} lines is an event", profile.malformed);
  }
  if (profile.ran || !profile.processes.empty()) return "no request was recorded";
  return "it is not a profile: a profile has files events_*.jsonl, in the folder itself or in its "
         "subfolder `events`";
}

}  // namespace

uint32_t Words::Of(std::string_view word) {
  if (word.empty()) return 0;
  if (const auto at = ids_.find(word); at != ids_.end()) return at->second;
  const auto id = static_cast<uint32_t>(words_.size());
  ids_.emplace(words_.emplace_back(word), id);
  return id;
}

uint32_t Words::Find(std::string_view word) const {
  const auto at = ids_.find(word);
  return at == ids_.end() ? 0 : at->second;
}

StatusOr<Profile> ReadProfile(const std::vector<std::string>& paths) {
  Profile profile;
  Reader reader(&profile);
  for (const std::string& path : paths) {
    PORTICO_RETURN_IF_ERROR(OpenRecordsOf(path, &reader));
  }
  for (const std::string& path : paths) {
    PORTICO_RETURN_IF_ERROR(ReadPath(path, &reader, &profile));
  }
  PORTICO_RETURN_IF_ERROR(reader.AddRecords());
  if (profile.events.empty() && profile.steps.empty()) {
    return Error(StatusCode::kNotFound,
                 fmt::format("{} has no events: {}", fmt::join(paths, ", "), WhyEmpty(profile)));
  }
  AlignClocks(&profile);
  const auto earlier = [](const auto& a, const auto& b) { return a.nanoseconds < b.nanoseconds; };
  StableSort(&profile.events, earlier);
  StableSort(&profile.steps, earlier);
  return profile;
}

bool AllEnded(const std::string& folder) {
  for (const fs::path& file : FilesOf(folder)) {
    const std::string name = file.filename().string();
    if (!IsFacts(name)) continue;
    const auto facts = ReadFacts(file);
    if (!facts || !facts->GetBool("ended", false)) return false;
  }
  return true;
}

StatusOr<std::string> ReadMaybePacked(const std::string& path, size_t max_bytes) {
  const auto close = [](gzFile file) { gzclose(file); };
  const std::unique_ptr<gzFile_s, decltype(close)> file(gzopen(path.c_str(), "rb"), close);
  if (file == nullptr) return Error(StatusCode::kNotFound, path + " cannot be read");
  std::string text;
  std::string piece(1 << 20, '\0');
  while (true) {
    const int got = gzread(file.get(), piece.data(), static_cast<unsigned>(piece.size()));
    if (got < 0) return Error(StatusCode::kInvalidArgument, path + " is damaged");
    if (got == 0) return text;
    text.append(piece.data(), static_cast<size_t>(got));
    if (text.size() > max_bytes) {
      return Error(StatusCode::kResourceExhausted,
                   fmt::format("{} is longer than {} MB", path, max_bytes >> 20));
    }
  }
}

}  // namespace portico::observe
