#include "base/events/line_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/log.h"

namespace portico::events {
namespace {

constexpr size_t kFlushBytes = 64 << 10;

int64_t Read(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// The difference of the two clocks, from the closest of some readings.
int64_t MonotonicToWall() {
  int64_t best = INT64_MAX;
  int64_t difference = 0;
  for (int i = 0; i < 5; ++i) {
    const int64_t before = Read(CLOCK_MONOTONIC);
    const int64_t wall = Read(CLOCK_REALTIME);
    const int64_t after = Read(CLOCK_MONOTONIC);
    if (after - before >= best) continue;
    best = after - before;
    difference = wall - (before + (after - before) / 2);
  }
  return difference;
}

// A JSON string. Bytes that are no ASCII go through.
void AppendString(std::string_view text, std::string* out) {
  out->push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(*out), "\\u{:04x}", static_cast<int>(c));
    } else {
      out->push_back(c);
    }
  }
  out->push_back('"');
}

std::string JsonString(std::string_view text) {
  std::string out;
  AppendString(text, &out);
  return out;
}

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

// A stage's name as part of a file's.
std::string ForFileName(std::string_view stage) {
  std::string name(stage.substr(0, 64));
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.';
    if (!plain) c = '_';
  }
  return name.empty() ? "portico" : name;
}

StatusOr<int> OpenToAppend(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);
  if (fd >= 0) return fd;
  return Error(StatusCode::kFailedPrecondition,
               fmt::format("{} cannot be written: {}", path, std::strerror(errno)), "event_dir");
}

void AppendNumber(std::string_view name, int64_t value, bool is_bool, std::string* out) {
  auto to = std::back_inserter(*out);
  if (is_bool) {
    fmt::format_to(to, "\"{}\":{},", name, value != 0);
  } else {
    fmt::format_to(to, "\"{}\":{},", name, value);
  }
}

}  // namespace

StatusOr<LineWriter> LineWriter::Open(const RunOptions& options) {
  std::error_code failed;
  std::filesystem::create_directories(options.directory, failed);
  if (failed) {
    return Error(
        StatusCode::kFailedPrecondition,
        fmt::format("the folder {} cannot be made: {}", options.directory, failed.message()),
        "event_dir");
  }
  LineWriter writer;
  writer.options_ = options;
  writer.pid_ = getpid();
  writer.prefix_ = fmt::format("_{}_{}", ForFileName(options.stage), writer.pid_);
  writer.to_wall_ = MonotonicToWall();
  writer.started_ = Read(CLOCK_MONOTONIC);
  writer.run_id_json_ = JsonString(options.run_id);
  PORTICO_ASSIGN_OR_RETURN(writer.events_,
                           OpenToAppend(options.directory + "/events" + writer.prefix_ + ".jsonl"));
  writer.WriteFacts(false, 0);
  return writer;
}

LineWriter::LineWriter(LineWriter&& other) noexcept
    : options_(std::move(other.options_)),
      prefix_(std::move(other.prefix_)),
      events_(std::exchange(other.events_, -1)),
      steps_(std::exchange(other.steps_, -1)),
      to_wall_(other.to_wall_),
      started_(other.started_),
      run_id_json_(std::move(other.run_id_json_)),
      pid_(other.pid_) {}

LineWriter::~LineWriter() {
  if (events_ >= 0) close(events_);
  if (steps_ >= 0) close(steps_);
}

void LineWriter::Add(const Line& line, std::string_view request_id) {
  const EventSpec& spec = SpecOf(line.event);
  std::string& out = spec.of_request ? event_lines_ : step_lines_;
  out += "{\"request_id\":";
  AppendString(request_id, &out);
  out += ",\"stage\":";
  AppendString(NameOf(line.stage), &out);
  fmt::format_to(std::back_inserter(out),
                 ",\"event_name\":\"{}\",\"timestamp_ns\":{},\"run_id\":{},\"pid\":{},"
                 "\"metadata\":{{",
                 spec.name, line.nanoseconds + to_wall_, run_id_json_, pid_);
  const Details& details = line.details;
  if (details.peer != 0) {
    fmt::format_to(std::back_inserter(out), "\"{}\":", spec.peer);
    AppendString(NameOf(details.peer), &out);
    out += ',';
  }
  if (details.tag != 0) {
    fmt::format_to(std::back_inserter(out), "\"{}\":", spec.tag);
    AppendString(NameOf(details.tag), &out);
    out += ',';
  }
  if (details.a != Details::kNothing) AppendNumber(spec.a, details.a, spec.a_is_bool, &out);
  if (details.b != Details::kNothing) AppendNumber(spec.b, details.b, false, &out);
  fmt::format_to(std::back_inserter(out), "\"monotonic_ns\":{}}}}}\n", line.nanoseconds);
  ++(spec.of_request ? event_count_ : step_count_);
  if (out.size() >= kFlushBytes) Flush();
}

void LineWriter::Flush() {
  FlushTo(&events_, "events", &event_lines_, &event_count_);
  FlushTo(&steps_, "steps", &step_lines_, &step_count_);
}

void LineWriter::FlushTo(int* fd, const std::string& word, std::string* lines, uint64_t* count) {
  if (lines->empty()) return;
  const uint64_t lines_now = std::exchange(*count, 0);
  const std::string bytes = std::exchange(*lines, {});
  const bool full = bytes_ + static_cast<int64_t>(bytes.size()) > options_.max_bytes;
  if (full || failed_) {
    if (cut_ == 0 && full) {
      LogWarning("profile {}: the files have reached {} bytes; later events are only counted",
                 options_.run_id, options_.max_bytes);
    }
    cut_ += lines_now;
    return;
  }
  if (*fd < 0) {
    auto opened = OpenToAppend(options_.directory + "/" + word + prefix_ + ".jsonl");
    *fd = opened.ok() ? *opened : -1;
  }
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = write(*fd, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    done += static_cast<size_t>(wrote);
  }
  bytes_ += static_cast<int64_t>(done);
  if (done == bytes.size()) {
    written_ += lines_now;
    return;
  }
  LogWarning("profile {}: {} cannot be written: {}; later events are only counted", options_.run_id,
             word, std::strerror(errno));
  failed_ = true;
  cut_ += lines_now;
}

void LineWriter::Close(uint64_t dropped) {
  Flush();
  WriteFacts(true, dropped);
}

void LineWriter::WriteFacts(bool ended, uint64_t dropped) {
  const std::string path = options_.directory + "/run" + prefix_ + ".json";
  const int64_t now = Read(CLOCK_MONOTONIC);
  const std::string text = fmt::format(
      "{{\"run_id\":{},\"stage\":{},\"pid\":{},\"host\":{},\"boot_id\":{},\"started_ns\":{},"
      "\"monotonic_to_wall_ns\":{},\"ended\":{},\"ended_ns\":{},\"written\":{},\"dropped\":{},"
      "\"cut\":{}}}\n",
      run_id_json_, JsonString(options_.stage), pid_, JsonString(HostName()), JsonString(BootId()),
      started_ + to_wall_, to_wall_, ended, ended ? now + to_wall_ : 0, written_, dropped, cut_);
  // Replaced as a whole: a reader sees the former or this one.
  const std::string next = path + ".next";
  const int fd = open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
  if (fd < 0) return;
  const bool whole = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  if (!whole || std::rename(next.c_str(), path.c_str()) != 0) unlink(next.c_str());
}

}  // namespace portico::events
