// Two independent halves of a load at once.
#pragma once

#include <system_error>
#include <thread>

namespace portico::tokenizer {

// Runs `beside` in a thread of its own while `here` runs, or after it where that is not `worth_it` or the system has
// no thread to give. Both must not throw.
template <typename Beside, typename Here>
void RunBeside(bool worth_it, Beside beside, Here here) {
  std::thread thread;
  if (worth_it) {
    try {
      thread = std::thread(beside);
    } catch (const std::system_error&) {
      thread = std::thread();
    }
  }
  here();
  if (thread.joinable()) {
    thread.join();
  } else {
    beside();
  }
}

}  // namespace portico::tokenizer
