// Where libllama's log lines go: to ours at debug level, and its last words before it ends the process as critical.
#pragma once

#include <string>

namespace portico::llama {

// Starts libllama once a process and takes over its log. Thread safe; call before anything else of
// libllama.
void StartLlama();

// Collects the errors that libllama reports on this thread while the object lives, so that a Status
// can quote them. Objects nest; the innermost collects.
class LlamaErrors {
 public:
  LlamaErrors();
  ~LlamaErrors();
  LlamaErrors(const LlamaErrors&) = delete;
  LlamaErrors& operator=(const LlamaErrors&) = delete;

  // The errors on one line, or "no reason given".
  std::string Text() const;

 private:
  friend void TakeLlamaError(const char* text);
  std::string text_;
  LlamaErrors* outer_;
};

}  // namespace portico::llama
