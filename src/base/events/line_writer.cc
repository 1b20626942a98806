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
  bool plain = true;
  for (const char c : text) plain &= static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
  out->push_back('"');
  if (plain) {
    out->append(text);
    out->push_back('"');
    return;
  }
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

void AppendInteger(int64_t value, std::string* out) {
  const fmt::format_int text(value);
  out->append(text.data(), text.size());
}

void AppendNumber(std::string_view name, int64_t value, bool is_bool, std::string* out) {
  out->push_back('"');
  out->append(name);
  out->append("\":");
  if (is_bool) {
    out->append(value != 0 ? "true" : "false");
  } else {
    AppendInteger(value, out);
  }
  out->push_back(',');
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
  return writer;
}

LineWriter::LineWriter(LineWriter&& other) noexcept
    : options_(std::move(other.options_)),
      prefix_(std::move(other.prefix_)),
      events_(std::exchange(other.events_, -1)),
      steps_(std::exchange(other.steps_, -1)),
      to_wall_(other.to_wall_),
      started_(other.started_),
      ended_(other.ended_),
      bytes_(other.bytes_),
      run_id_json_(std::move(other.run_id_json_)),
      pid_(other.pid_) {}

LineWriter::~LineWriter() {
  if (events_ >= 0) close(events_);
  if (steps_ >= 0) close(steps_);
}

// Of a line's 230 bytes about 60 are its own, and to look up a name costs a lock.
const LineWriter::Form& LineWriter::FormOf(const Line& line, const EventSpec& spec) {
  constexpr size_t kMostForms = 4096;
  const Details& details = line.details;
  const uint64_t key = uint64_t{static_cast<uint16_t>(line.event)} << 48 |
                       uint64_t{line.stage} << 32 | uint64_t{details.peer} << 16 | details.tag;
  if (const auto known = forms_.find(key); known != forms_.end()) return known->second;
  if (forms_.size() >= kMostForms) forms_.clear();
  Form form;
  form.before_time = fmt::format(",\"stage\":{},\"event_name\":\"{}\",\"timestamp_ns\":",
                                 JsonString(NameOf(line.stage)), spec.name);
  form.behind_time = fmt::format(",\"run_id\":{},\"pid\":{},\"metadata\":{{", run_id_json_, pid_);
  const auto add = [&form](std::string_view name, Label value) {
    if (value == 0) return;
    fmt::format_to(std::back_inserter(form.behind_time), "\"{}\":{},", name,
                   JsonString(NameOf(value)));
  };
  add(spec.peer, details.peer);
  add(spec.tag, details.tag);
  return forms_.emplace(key, std::move(form)).first->second;
}

void LineWriter::Add(const Line& line, std::string_view request_id) {
  const EventSpec& spec = SpecOf(line.event);
  const Form& form = FormOf(line, spec);
  const Details& details = line.details;
  std::string& out = spec.of_request ? event_lines_ : step_lines_;
  out += "{\"request_id\":";
  AppendString(request_id, &out);
  out += form.before_time;
  AppendInteger(line.nanoseconds + to_wall_, &out);
  out += form.behind_time;
  if (details.a != Details::kNothing) AppendNumber(spec.a, details.a, spec.a_is_bool, &out);
  if (details.b != Details::kNothing) AppendNumber(spec.b, details.b, false, &out);
  out += "\"monotonic_ns\":";
  AppendInteger(line.nanoseconds, &out);
  out += "}}\n";
  ++(spec.of_request ? event_count_ : step_count_);
  if (out.size() >= kFlushBytes) Flush();
}

void LineWriter::Flush() {
  FlushTo(&events_, "events", &event_lines_, &event_count_);
  FlushTo(&steps_, "steps", &step_lines_, &step_count_);
}

void LineWriter::FlushTo(int* fd, std::string_view word, std::string* lines, uint64_t* count) {
  if (lines->empty()) return;
  const uint64_t lines_now = std::exchange(*count, 0);
  (Write(fd, word, *lines) ? written_ : cut_) += lines_now;
  lines->clear();
}

bool LineWriter::Write(int* fd, std::string_view word, std::string_view bytes) {
  const bool full = bytes_ + static_cast<int64_t>(bytes.size()) > options_.max_bytes;
  if (full || failed_) {
    if (cut_ == 0 && full) {
      LogWarning("profile {}: the files have reached {} bytes; later events are only counted",
                 options_.run_id, options_.max_bytes);
    }
    return false;
  }
  if (*fd < 0) {
    auto opened = OpenToAppend(fmt::format("{}/{}{}.jsonl", options_.directory, word, prefix_));
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
  if (done == bytes.size()) return true;
  LogWarning("profile {}: {} cannot be written: {}; later events are only counted", options_.run_id,
             word, std::strerror(errno));
  failed_ = true;
  return false;
}

void LineWriter::NoteEnd() { ended_ = Read(CLOCK_MONOTONIC); }

void LineWriter::Close(uint64_t cut) {
  Flush();
  cut_ += cut;
}

// A name of its own: processes of several machines may share the folder and have the same number.
std::string LineWriter::RecordsPath() const {
  return fmt::format("{}/records{}.{}.bin", options_.directory, prefix_, started_ + to_wall_);
}

std::string LineWriter::FactsPath() const {
  return options_.directory + "/run" + prefix_ + ".json";
}

internal::RecordsHead LineWriter::Head() const { return {.pid = pid_, .to_wall = to_wall_}; }

void LineWriter::WriteFacts(bool ended, uint64_t dropped) {
  const std::string path = FactsPath();
  const std::string text = fmt::format(
      "{{\"run_id\":{},\"stage\":{},\"pid\":{},\"host\":{},\"boot_id\":{},\"started_ns\":{},"
      "\"monotonic_to_wall_ns\":{},\"ended\":{},\"ended_ns\":{},\"written\":{},\"dropped\":{},"
      "\"cut\":{}}}\n",
      run_id_json_, JsonString(options_.stage), pid_, JsonString(HostName()), JsonString(BootId()),
      started_ + to_wall_, to_wall_, ended, ended ? ended_ + to_wall_ : 0, written_, dropped, cut_);
  // Replaced as a whole: a reader sees the former or this one.
  const std::string next = path + ".next";
  const int fd = open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
  if (fd < 0) return;
  const bool whole = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  if (!whole || std::rename(next.c_str(), path.c_str()) != 0) unlink(next.c_str());
}

}  // namespace portico::events
