// portico-media, the program beside this one that speaks libav's formats (media_helper/README.md).
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace portico::media {

// One run of it. One thread at a time; destroying it ends the program.
class Helper {
 public:
  // UNAVAILABLE: it is not beside this program, nor where PORTICO_MEDIA says.
  static Status Installed();
  // RESOURCE_EXHAUSTED: kMost of them run.
  static constexpr int kMost = 64;
  static StatusOr<std::unique_ptr<Helper>> Start(const std::vector<std::string>& words);
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  // Gives it `in` and appends what it has written meanwhile. DEADLINE_EXCEEDED: it has taken
  // nothing for ten seconds.
  Status Write(std::string_view in, std::string* out);
  // Nothing more goes in: appends the rest, at most `most` bytes in all, and waits for the end; the
  // exit status, or 128 and more for a signal.
  StatusOr<int> Finish(std::string* out, size_t most);

 private:
  Helper(pid_t pid, int fd) : pid_(pid), fd_(fd) {}
  // Waits for it to take or to give; false: for too long.
  bool Poll(short events, short* ready) const;
  // Appends what is there. False: it has ended its output.
  bool Drain(std::string* out);
  int Reap(bool kill_it);

  pid_t pid_;
  int fd_;
};

}  // namespace portico::media
