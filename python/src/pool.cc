#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "tokenizer.h"

namespace portico::python {
namespace {

constexpr size_t kMaxQueued = 4096;

size_t Threads() {
  const char* wanted = std::getenv("TOKENIZERS_PARALLELISM");
  std::string_view word = wanted == nullptr ? "" : wanted;
  for (std::string_view no : {"off", "false", "f", "no", "n", "0"}) {
    if (word == no) return 1;
  }
  if (const char* threads = std::getenv("PORTICO_THREADS")) {
    return static_cast<size_t>(std::clamp(std::atol(threads), 1l, 1024l));
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

// Never destroyed: threads may still wait in it when the process ends. A forked child has none of its parent's
// threads and makes its own.
struct Shared {
  std::mutex mutex;
  CpuPool* pool = nullptr;
  bool made = false;
};
Shared* shared = new Shared;

}  // namespace

CpuPool* Pool() {
  static const int once = pthread_atfork(nullptr, nullptr, [] { shared = new Shared; });
  static_cast<void>(once);
  std::lock_guard lock(shared->mutex);
  if (!shared->made) {
    size_t threads = Threads();
    if (threads > 1) shared->pool = new CpuPool(threads - 1, kMaxQueued, "portico");
    shared->made = true;
  }
  return shared->pool;
}

}  // namespace portico::python
