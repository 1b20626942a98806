#include "engine/llama/model/llama_log.h"

#include <spdlog/spdlog.h>

#include <mutex>
#include <string_view>

#include "llama.h"

namespace portico::llama {
namespace {

constexpr size_t kMaxErrorBytes = 1000;

thread_local LlamaErrors* innermost = nullptr;

}  // namespace

void TakeLlamaError(const char* text) {
  if (innermost == nullptr) return;
  std::string& all = innermost->text_;
  for (const char* c = text; *c != '\0' && all.size() < kMaxErrorBytes; ++c) {
    all += *c == '\n' ? ' ' : *c;
  }
}

namespace {

void Log(ggml_log_level level, const char* text, void*) {
  if (level == GGML_LOG_LEVEL_ERROR) TakeLlamaError(text);
  std::string_view line(text);
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.remove_suffix(1);
  // Dots of a progress bar come one by one.
  if (line.size() > 1) spdlog::debug("libllama: {}", line);
}

// The process ends after this; libllama's own way would start a debugger for the stack.
void LogAbort(const char* message) { spdlog::critical("libllama aborts the process: {}", message); }

}  // namespace

void StartLlama() {
  static std::once_flag once;
  std::call_once(once, [] {
    llama_log_set(Log, nullptr);
    ggml_set_abort_callback(LogAbort);
    llama_backend_init();
  });
}

LlamaErrors::LlamaErrors() : outer_(innermost) { innermost = this; }

LlamaErrors::~LlamaErrors() { innermost = outer_; }

std::string LlamaErrors::Text() const {
  size_t end = text_.find_last_not_of(' ');
  return end == std::string::npos ? "no reason given" : text_.substr(0, end + 1);
}

}  // namespace portico::llama
