// Finds the last exception that a Python program's log shows: schedulers print why they fail, and do not tell their parent.
#pragma once

#include <string>
#include <string_view>

namespace portico::sglang {

class TracebackWatch {
 public:
  // The next line. Lines of other processes may lie between those of a traceback. True: last() is of it.
  bool Add(std::string_view line);
  // "ImportError: libcuda.so.1: cannot open shared object file", at most 300 characters; empty: none yet.
  const std::string& last() const { return last_; }

 private:
  enum class State { kOutside, kInside, kNeedsMessage };
  State state_ = State::kOutside;
  std::string last_;
};

}  // namespace portico::sglang
