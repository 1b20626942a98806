#include "service/control/profiling.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <utility>
#include <vector>

#include "base/cache_folder.h"

namespace portico {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxPath = 1024;
constexpr size_t kMaxRunId = 128;

ProfileOptions& Options() {
  static ProfileOptions* const options = new ProfileOptions();
  return *options;
}

// Relative paths are taken from where the program was started.
Status MakeFolder(std::string* directory) {
  std::error_code failed;
  const fs::path path = fs::absolute(*directory, failed);
  if (!failed) fs::create_directories(path, failed);
  if (failed || !fs::is_directory(path, failed) || access(path.c_str(), W_OK | X_OK) != 0) {
    return InvalidArgument("profile-dir",
                           fmt::format("--profile-dir: {} is not a folder that this process can "
                                       "write to",
                                       path.string()));
  }
  *directory = path.string();
  return OkStatus();
}

StatusOr<std::string> Folder() {
  if (!Options().directory.empty()) return Options().directory;
  const char* named = std::getenv("SGLANG_TORCH_PROFILER_DIR");
  if (named != nullptr && *named == '/') return std::string(named);
  auto cache = CacheFolder();
  if (cache.ok()) return *cache + "/profiles";
  return Error(StatusCode::kFailedPrecondition,
               "there is no folder for profiles: start the server with --profile-dir");
}

std::string NameOfNow() {
  const time_t now = time(nullptr);
  tm at{};
  localtime_r(&now, &at);
  return fmt::format("run_{:04}{:02}{:02}_{:02}{:02}{:02}", at.tm_year + 1900, at.tm_mon + 1,
                     at.tm_mday, at.tm_hour, at.tm_min, at.tm_sec);
}

// Names a run by the time and makes its folder below `folder`, which no other run has, of this process or another:
// mkdir() fails for all but one of those that try the same name.
StatusOr<std::string> ClaimRun(const std::string& folder) {
  constexpr int kMaxRunsOfASecond = 10000;
  const auto failure = [&folder](std::string_view why) {
    return Error(StatusCode::kFailedPrecondition,
                 fmt::format("the folder of a run cannot be made in {}: {}", folder, why),
                 "run_id");
  };
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return failure(failed.message());
  const std::string name = NameOfNow();
  for (int number = 0; number < kMaxRunsOfASecond; ++number) {
    const std::string id = number == 0 ? name : fmt::format("{}_{}", name, number);
    if (mkdir((fs::path(folder) / id).c_str(), 0777) == 0) return id;
    if (errno != EEXIST) return failure(std::generic_category().message(errno));
  }
  return failure("too many runs have begun in this second");
}

bool IsRunId(std::string_view id) {
  if (id.empty() || id.size() > kMaxRunId || id.front() == '.') return false;
  return std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

bool IsBelow(const fs::path& path, const fs::path& folder) {
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end() && rest != path.end();
}

// Symbolic links that exist are followed before the two are compared.
StatusOr<std::string> PathBelow(const std::string& folder, const std::string& path,
                                std::string_view field) {
  const auto bad = [&] {
    return InvalidArgument(
        field,
        fmt::format("{} must be below this server's folder of profiles, as a relative path is",
                    field));
  };
  if (path.size() > kMaxPath || path.find('\0') != std::string::npos) return bad();
  std::error_code failed;
  const fs::path root = fs::weakly_canonical(folder, failed);
  if (failed) return bad();
  const fs::path asked(path);
  const fs::path whole = fs::weakly_canonical(asked.is_absolute() ? asked : root / asked, failed);
  // "." and "a/" end in an empty name.
  const fs::path named = whole.has_filename() ? whole : whole.parent_path();
  if (failed || !IsBelow(named, root)) return bad();
  return named.string();
}

class Fields {
 public:
  explicit Fields(const Json& body) : body_(body) {}

  template <typename T>
  Status Take(std::string_view name, T* out) {
    const Json* value = body_.Find(name);
    if (value == nullptr || value->is_null()) return OkStatus();
    return Read(*value, name, out);
  }
  bool Has(std::string_view name) const {
    const Json* value = body_.Find(name);
    return value != nullptr && !value->is_null();
  }

 private:
  static Status Wrong(std::string_view name, std::string_view type) {
    return InvalidArgument(name, fmt::format("{} must be {}", name, type));
  }
  static Status Read(const Json& value, std::string_view name, std::string* out) {
    if (!value.is_string()) return Wrong(name, "a string");
    *out = value.as_string();
    return OkStatus();
  }
  static Status Read(const Json& value, std::string_view name, bool* out) {
    if (!value.is_bool()) return Wrong(name, "a boolean");
    *out = value.as_bool();
    return OkStatus();
  }
  static Status Read(const Json& value, std::string_view name, std::optional<bool>* out) {
    return Read(value, name, &out->emplace());
  }
  static Status Read(const Json& value, std::string_view name, std::optional<int64_t>* out) {
    if (!value.is_int() || value.as_int() < 0 || value.as_int() > INT32_MAX) {
      return Wrong(name, "an integer from 0 to 2147483647");
    }
    *out = value.as_int();
    return OkStatus();
  }
  static Status Read(const Json& value, std::string_view name, std::vector<std::string>* out) {
    if (!value.is_array()) return Wrong(name, "a list of strings");
    for (const Json& one : value.as_array()) {
      if (!one.is_string()) return Wrong(name, "a list of strings");
      out->push_back(one.as_string());
    }
    return OkStatus();
  }

  const Json& body_;
};

constexpr std::string_view kOurs[] = {"run_id", "event_dir", "trace_path_template", "enable_torch"};
constexpr std::string_view kEngines[] = {"output_dir", "start_step", "num_steps",
                                         "activities", "with_stack", "record_shapes"};
// Likewise, but false and an empty text ask for nothing.
constexpr std::string_view kEnginesFlags[] = {"merge_profiles", "profile_by_stage",
                                              "profile_prefix"};
// SGLang's, which this server does not pass on: refused unless they ask for nothing.
constexpr std::string_view kNotPassedOn[] = {"config", "detailed_annotations", "profile_id",
                                             "profile_stages"};

template <size_t N>
bool IsOneOf(std::string_view name, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool AsksForNothing(const Json& value) {
  return (value.is_bool() && !value.as_bool()) || (value.is_array() && value.as_array().empty()) ||
         (value.is_string() && value.as_string().empty());
}

Status CheckNames(const Json& body, bool events_only) {
  for (const auto& [name, value] : body.as_object()) {
    if (value.is_null() || IsOneOf(name, kOurs)) continue;
    if (!events_only && IsOneOf(name, kEngines)) continue;
    if (IsOneOf(name, kEnginesFlags) && (!events_only || AsksForNothing(value))) continue;
    if (IsOneOf(name, kNotPassedOn)) {
      if (AsksForNothing(value)) continue;
      return InvalidArgument(name, fmt::format("{} is not supported", name));
    }
    return InvalidArgument(name, fmt::format("a profile has no field {:.64}", name));
  }
  return OkStatus();
}

StatusOr<Json> ReadBody(std::string_view body) {
  if (body.empty()) return Json(JsonObject{});
  PORTICO_ASSIGN_OR_RETURN(Json value, Json::Parse(body));
  if (!value.is_object()) return InvalidArgument("", "the body must be a JSON object");
  return value;
}

StatusOr<std::string> ReadRunId(Fields& fields) {
  std::string id;
  PORTICO_RETURN_IF_ERROR(fields.Take("run_id", &id));
  if (!fields.Has("run_id") || IsRunId(id)) return id;
  return InvalidArgument(
      "run_id", fmt::format("run_id must be 1 to {} letters, digits, dots, dashes and underscores",
                            kMaxRunId));
}

StatusOr<events::RunOptions> ReadRun(Fields& fields) {
  PORTICO_ASSIGN_OR_RETURN(const std::string folder, Folder());
  events::RunOptions run;
  PORTICO_ASSIGN_OR_RETURN(run.run_id, ReadRunId(fields));
  const auto set_paths = [&]() -> Status {
    std::string directory = run.run_id + "/events";
    std::string trace = run.run_id + "/trace";
    PORTICO_RETURN_IF_ERROR(fields.Take("event_dir", &directory));
    PORTICO_RETURN_IF_ERROR(fields.Take("trace_path_template", &trace));
    PORTICO_ASSIGN_OR_RETURN(run.directory, PathBelow(folder, directory, "event_dir"));
    PORTICO_ASSIGN_OR_RETURN(run.trace_path_template,
                             PathBelow(folder, trace, "trace_path_template"));
    return OkStatus();
  };
  if (run.run_id.empty()) {
    // What is wrong with a path is told before a folder is made.
    run.run_id = NameOfNow();
    PORTICO_RETURN_IF_ERROR(set_paths());
    const bool elsewhere = fields.Has("event_dir") && fields.Has("trace_path_template");
    if (!elsewhere) {
      PORTICO_ASSIGN_OR_RETURN(run.run_id, ClaimRun(folder));
    }
  }
  PORTICO_RETURN_IF_ERROR(set_paths());
  run.stage = Options().stage;
  run.max_bytes = Options().max_bytes;
  return run;
}

StatusOr<StartProfileControl> ReadEngine(Fields& fields) {
  StartProfileControl control;
  PORTICO_RETURN_IF_ERROR(fields.Take("output_dir", &control.output_dir));
  if (!control.output_dir.empty()) {
    PORTICO_ASSIGN_OR_RETURN(const std::string folder, Folder());
    PORTICO_ASSIGN_OR_RETURN(control.output_dir,
                             PathBelow(folder, control.output_dir, "output_dir"));
  }
  PORTICO_RETURN_IF_ERROR(fields.Take("start_step", &control.start_step));
  PORTICO_RETURN_IF_ERROR(fields.Take("num_steps", &control.num_steps));
  PORTICO_RETURN_IF_ERROR(fields.Take("activities", &control.activities));
  PORTICO_RETURN_IF_ERROR(fields.Take("with_stack", &control.with_stack));
  PORTICO_RETURN_IF_ERROR(fields.Take("record_shapes", &control.record_shapes));
  PORTICO_RETURN_IF_ERROR(fields.Take("profile_by_stage", &control.by_stage));
  PORTICO_RETURN_IF_ERROR(fields.Take("merge_profiles", &control.merge));
  PORTICO_RETURN_IF_ERROR(fields.Take("profile_prefix", &control.prefix));
  if (!control.prefix.empty() && !IsRunId(control.prefix)) {
    return InvalidArgument("profile_prefix",
                           fmt::format("profile_prefix must be 1 to {} letters, digits, dots, "
                                       "dashes and underscores",
                                       kMaxRunId));
  }
  return control;
}

}  // namespace

Status SetProfileOptions(ProfileOptions options, Registry* registry) {
  if (!options.directory.empty()) PORTICO_RETURN_IF_ERROR(MakeFolder(&options.directory));
  Options() = std::move(options);
  events::SetHome(events::LabelOf(Options().stage));
  const auto count = [registry](std::string_view name, std::string_view help,
                                uint64_t events::Totals::* member) {
    registry->AddCallbackCounter(name, help,
                                 [member] { return static_cast<double>(events::Count().*member); });
  };
  count("portico_profile_runs_total", "Profiles that were started.", &events::Totals::runs);
  count("portico_profile_events_total", "Events that profiles have written.",
        &events::Totals::written);
  count("portico_profile_dropped_total", "Events that were lost because their ring was full.",
        &events::Totals::dropped);
  count("portico_profile_cut_total", "Events beyond the bound of a profile's files.",
        &events::Totals::cut);
  registry->AddCallbackGauge("portico_profile_running", "1 while a profile is recorded.",
                             [] { return events::On() ? 1.0 : 0.0; });
  return OkStatus();
}

StatusOr<ProfileRequest> ReadProfileStart(std::string_view text, bool events_only) {
  PORTICO_ASSIGN_OR_RETURN(const Json body, ReadBody(text));
  PORTICO_RETURN_IF_ERROR(CheckNames(body, events_only));
  Fields fields(body);
  const auto has = [&fields](std::string_view name) { return fields.Has(name); };
  const bool ours = std::any_of(std::begin(kOurs), std::end(kOurs), has);
  const auto asks = [&](std::string_view name) {
    return fields.Has(name) && !AsksForNothing(*body.Find(name));
  };
  const bool engines =
      !events_only && (std::any_of(std::begin(kEngines), std::end(kEngines), has) ||
                       std::any_of(std::begin(kEnginesFlags), std::end(kEnginesFlags), asks));
  ProfileRequest request;
  PORTICO_RETURN_IF_ERROR(fields.Take("enable_torch", &request.enable_torch));
  if (engines) {
    PORTICO_ASSIGN_OR_RETURN(request.engine, ReadEngine(fields));
  }
  // Last, as it may make a folder.
  if (ours || !engines) {
    PORTICO_ASSIGN_OR_RETURN(request.recorder, ReadRun(fields));
  }
  return request;
}

StatusOr<std::string> ReadProfileStop(std::string_view text) {
  PORTICO_ASSIGN_OR_RETURN(const Json body, ReadBody(text));
  for (const auto& [name, value] : body.as_object()) {
    if (value.is_null() || name == "run_id") continue;
    return InvalidArgument(name, fmt::format("the end of a profile has no field {:.64}", name));
  }
  Fields fields(body);
  return ReadRunId(fields);
}

std::atomic<bool>& EnginesAreProfiled() {
  static std::atomic<bool> profiled{false};
  return profiled;
}

std::string ProfileAnswer(const events::RunOptions& run, bool events_only, bool enable_torch) {
  Json answer(JsonObject{});
  answer.Set("run_id", run.run_id);
  if (!events_only) answer.Set("trace_path_template", run.trace_path_template);
  answer.Set("event_dir", run.directory);
  if (!events_only) answer.Set("enable_torch", enable_torch);
  return answer.Dump();
}

}  // namespace portico
