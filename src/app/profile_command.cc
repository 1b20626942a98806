#include "app/profile_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/command_tools.h"
#include "app/server_client.h"
#include "app/text/text_command.h"
#include "base/clock.h"
#include "observe/profile/breakdown.h"
#include "observe/profile/html_report.h"
#include "observe/profile/perfetto.h"
#include "observe/profile/profile_files.h"
#include "observe/profile/text_report.h"
#include "text/json.h"

namespace portico {
namespace {

namespace fs = std::filesystem;

constexpr char kProfileExamples[] =
    R"(Writes report.txt, report.json, trace.json (for ui.perfetto.dev), timeline.svg and report.html, a page that needs no
network, and prints the text. Ctrl-C ends the recording early, and once more the wait for its last lines.
docs/profiling.md describes the events.

Examples:
  portico profile http://127.0.0.1:8000                 record for 10 s, then report
  portico profile http://127.0.0.1:8000 --seconds 60 --torch
  portico profile ~/.cache/portico/profiles/run_20260101_120000
)";

// How long the lines of other processes are waited for: without a new one, and at most.
constexpr Duration kLinePatience = std::chrono::seconds(5);
constexpr Duration kLinesPatience = std::chrono::seconds(60);

struct ProfileArguments {
  std::vector<std::string> sources;
  std::string api_key;
  std::string ca_file;
  std::string out;
  std::string run_id;
  std::string format = "text";
  double seconds = 10;
  size_t requests = 3;
  bool torch = false;
};

// Counts Ctrl-C; a signal's handler may do no more.
volatile std::sig_atomic_t interrupts = 0;

constexpr std::string_view kProfileCommand = "profile";

StatusOr<Json> Post(ServerClient& server, const std::string& path, const Json& body) {
  auto answer = server.Ask({.method = "POST",
                            .target = path,
                            .body = body.Dump(),
                            .content_type = "application/json",
                            .timeout = std::chrono::seconds(120)});
  if (!answer.ok()) {
    return Error(answer.status().code(),
                 fmt::format("{}: {}", server.url(), MessageOf(answer.status())));
  }
  auto json = Json::Parse(answer->body);
  if (answer->status == 200 && json.ok()) return json;
  std::string said;
  if (json.ok()) {
    if (const Json* error = json->Find("error")) said = error->GetString("message");
    while (said.ends_with('.')) said.pop_back();
  }
  return Error(
      StatusCode::kFailedPrecondition,
      fmt::format("POST {} returned {}{}{}{}", path, answer->status, said.empty() ? "" : ": ", said,
                  answer->status == 401 ? "; --api-key or PORTICO_API_KEY takes that key" : ""));
}

void AddFolder(const std::string& folder, std::vector<std::string>* folders) {
  std::error_code ignored;
  if (folder.empty() || !fs::is_directory(folder, ignored)) return;
  for (const std::string& known : *folders) {
    if (known == folder) return;
  }
  folders->push_back(folder);
}

// The folders with the events that can be read here: the server's, and its workers'.
std::vector<std::string> FoldersOf(const Json& answer) {
  std::vector<std::string> folders;
  AddFolder(answer.GetString("event_dir"), &folders);
  const Json* workers = answer.Find("workers");
  if (workers == nullptr || !workers->is_array()) return folders;
  for (const Json& worker : workers->as_array()) {
    if (worker.GetInt("status", 0) != 200) {
      std::fprintf(stderr, "worker %s does not record a profile: it returned %d\n",
                   worker.GetString("worker").c_str(),
                   static_cast<int>(worker.GetInt("status", 0)));
      continue;
    }
    const auto said = Json::Parse(worker.GetString("answer"));
    if (said.ok() && said->is_object()) AddFolder(said->GetString("event_dir"), &folders);
  }
  return folders;
}

void Wait(double seconds) {
  const TimePoint until =
      Clock::now() + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  while (interrupts == 0 && Clock::now() < until) usleep(50000);
}

// Of lines. Records of another run may grow for ever.
uintmax_t LineBytesOf(const std::string& folder) {
  uintmax_t bytes = 0;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    if (at->path().extension() != ".jsonl") continue;
    std::error_code gone;
    const uintmax_t size = at->file_size(gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

// Stage processes and workers are behind: they write lines of what they have recorded. One that was
// killed writes nothing any more. One more Ctrl-C than `before` ends it.
void AwaitLines(const std::vector<std::string>& folders, std::sig_atomic_t before) {
  const TimePoint last = Clock::now() + kLinesPatience;
  for (const std::string& folder : folders) {
    uintmax_t bytes = LineBytesOf(folder);
    TimePoint until = Clock::now() + kLinePatience;
    while (!observe::AllEnded(folder)) {
      const TimePoint now = Clock::now();
      if (interrupts != before || now >= std::min(until, last)) {
        const char* why = interrupts != before ? "interrupted"
                          : now >= last        ? "there are new lines after a minute"
                                               : "no new line has come for 5 s";
        std::fprintf(stderr, "not all processes have ended the recording in %s: %s\n",
                     folder.c_str(), why);
        break;
      }
      usleep(20000);
      if (const uintmax_t grown = LineBytesOf(folder); grown != bytes) {
        bytes = grown;
        until = Clock::now() + kLinePatience;
      }
    }
  }
}

StatusOr<std::vector<std::string>> Record(const ProfileArguments& arguments, ServerClient& server) {
  const std::string kind = arguments.torch ? "profile" : "request_profile";
  Json body(JsonObject{});
  if (!arguments.run_id.empty()) body.Set("run_id", arguments.run_id);
  PORTICO_ASSIGN_OR_RETURN(const Json started, Post(server, "/start_" + kind, body));
  const std::string run = started.GetString("run_id");
  std::fprintf(stderr, "recording %s for %g s into %s\n", run.c_str(), arguments.seconds,
               started.GetString("event_dir").c_str());
  Wait(arguments.seconds);
  const std::sig_atomic_t before = interrupts;
  PORTICO_RETURN_IF_ERROR(
      Post(server, "/stop_" + kind, Json(JsonObject{{"run_id", run}})).status());
  std::vector<std::string> folders = FoldersOf(started);
  if (folders.empty()) {
    return Error(StatusCode::kNotFound,
                 fmt::format("the events are on the server's machine, in {}: run `portico profile` "
                             "on that folder",
                             started.GetString("event_dir")));
  }
  AwaitLines(folders, before);
  return folders;
}

// "127.0.0.1:8000" without http://, where no file or folder has that name.
bool IsHostAndPort(const std::string& source) {
  std::error_code ignored;
  const size_t colon = source.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == source.size() ||
      source.find('/') != std::string::npos || fs::exists(source, ignored)) {
    return false;
  }
  return source.find_first_not_of("0123456789", colon + 1) == std::string::npos;
}

Status WriteFile(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.flush();
  if (file.good()) return OkStatus();
  return Error(StatusCode::kUnavailable, path.string() + " cannot be written");
}

// Beside the folder `events`, or where the events lie.
fs::path ReportFolder(const ProfileArguments& arguments, const std::vector<std::string>& sources) {
  if (!arguments.out.empty()) return arguments.out;
  fs::path first = sources.front();
  std::error_code ignored;
  if (fs::is_regular_file(first, ignored)) return first.parent_path();
  if (!first.has_filename()) first = first.parent_path();
  return first.filename() == "events" ? first.parent_path() : first;
}

Status Report(const ProfileArguments& arguments, const std::vector<std::string>& sources) {
  PORTICO_ASSIGN_OR_RETURN(const observe::Profile profile, observe::ReadProfile(sources));
  const observe::Breakdown breakdown = observe::BreakDown(profile);
  const fs::path folder = ReportFolder(arguments, sources);
  std::error_code failed;
  fs::create_directories(folder.empty() ? "." : folder, failed);
  const std::string text = observe::TextReport(profile, breakdown, arguments.requests);
  const std::string json = observe::JsonReport(profile, breakdown);
  std::vector<std::string> left_out;
  PORTICO_RETURN_IF_ERROR(WriteFile(folder / "report.txt", text));
  PORTICO_RETURN_IF_ERROR(WriteFile(folder / "report.json", json));
  PORTICO_RETURN_IF_ERROR(
      WriteFile(folder / "trace.json", observe::PerfettoTrace(profile, breakdown, &left_out)));
  PORTICO_RETURN_IF_ERROR(
      WriteFile(folder / "timeline.svg", observe::TimelinePicture(profile, breakdown)));
  PORTICO_RETURN_IF_ERROR(
      WriteFile(folder / "report.html", observe::HtmlReport(profile, breakdown)));
  for (const std::string& line : left_out) {
    std::fprintf(stderr, "not joined: %s\n", line.c_str());
  }
  std::fputs(arguments.format == "json" ? (json + "\n").c_str() : text.c_str(), stdout);
  std::fflush(stdout);  // before what follows on standard error, where both go to one pipe
  std::fprintf(stderr,
               "written to %s: report.txt report.json trace.json timeline.svg report.html\n",
               folder.c_str());
  return OkStatus();
}

}  // namespace

int ProfileCommand(int argc, char** argv) {
  ProfileArguments arguments;
  if (const char* key = std::getenv("PORTICO_API_KEY")) arguments.api_key = key;
  CLI::App app(
      "Profiles a server, or reads a profile, and reports where requests spend their time.",
      "portico profile");
  app.footer(kProfileExamples);
  app.add_option("SOURCE", arguments.sources,
                 "A server's address, or folders or files of events: Portico's or sglang-omni's")
      ->required();
  app.add_option("--seconds", arguments.seconds, "Length of the recording of a server, in seconds")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  app.add_option("--run-id", arguments.run_id,
                 "Name of the recording; by default the server chooses it");
  app.add_flag("--torch", arguments.torch,
               "Also starts the engine's profiler, and PyTorch's in Python stages");
  app.add_option("--out", arguments.out, "Folder for the reports; by default that of the events");
  app.add_option("--requests", arguments.requests,
                 "How many of the slowest requests get a timeline")
      ->capture_default_str();
  app.add_option("--format", arguments.format, "Format of the output")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option("--api-key", arguments.api_key,
                 "The server's (admin) key; by default the environment variable PORTICO_API_KEY");
  app.add_option("--ca-cert", arguments.ca_file,
                 "CA certificates (PEM) to trust for https, in addition to the system's");
  if (std::optional<int> status = ParseWords(&app, argc, argv)) return *status;
  const auto count = [](int) { interrupts = interrupts + 1; };
  std::signal(SIGINT, count);
  std::signal(SIGTERM, count);
  std::vector<std::string> sources = arguments.sources;
  if (IsHostAndPort(sources.front())) sources.front().insert(0, "http://");
  if (sources.front().find("://") != std::string::npos) {
    if (sources.size() > 1) {
      return Fail(kProfileCommand, "only one server can be profiled at a time", kUsageError);
    }
    const auto server = ServerClient::Open(sources.front(), arguments.api_key, arguments.ca_file);
    if (!server.ok()) return Fail(kProfileCommand, MessageOf(server.status()), kUsageError);
    auto recorded = Record(arguments, **server);
    if (!recorded.ok()) return Fail(kProfileCommand, MessageOf(recorded.status()));
    sources = *std::move(recorded);
  }
  const Status reported = Report(arguments, sources);
  return reported.ok() ? 0 : Fail(kProfileCommand, MessageOf(reported));
}

}  // namespace portico
