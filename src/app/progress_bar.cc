#include "app/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/log.h"
#include "base/open_line.h"

namespace portico {
namespace {

constexpr int kWidth = 32;

}  // namespace

ProgressBar::ProgressBar() : terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() { EndLine(); }

void ProgressBar::EndLine() {
  if (!std::exchange(drawn_, false) || !terminal_) return;
  std::fputc('\n', stderr);
  NoteOpenLine(false);
}

void ProgressBar::Update(std::string_view stage, double fraction) {
  if (!LogEnabled(LogLevel::kInfo)) return;
  int percent = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * 100);
  if (!terminal_) percent -= percent % 25;
  if (stage != stage_) {
    EndLine();
    stage_ = stage;
    shown_ = -1;
  }
  if (percent == shown_) return;
  shown_ = percent;
  Draw(percent);
}

void ProgressBar::Draw(int percent) {
  drawn_ = true;
  if (!terminal_) {
    return LogInfo("{}: {} %", stage_, percent);
  }
  int full = percent * kWidth / 100;
  std::string bar(static_cast<size_t>(full), '#');
  bar.resize(kWidth, '.');
  std::fprintf(stderr, "\r%-16s [%s] %3d %%", stage_.c_str(), bar.c_str(), percent);
  std::fflush(stderr);
  NoteOpenLine(true);
}

}  // namespace portico
