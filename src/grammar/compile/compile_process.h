// Grammars are compiled in processes of their own. The library cannot be interrupted, and some small grammars take it minutes
// and gigabytes; a process can be given limits by the kernel, and when it dies its memory and its processor are free at once.
//
// One small process, the parent of all that compile, is forked when the server has no threads yet. It keeps the vocabularies and
// forks again for each grammar, so that neither the server's memory is copied nor its locks. A compiling process ends by
// itself: by setitimer's signal, by RLIMIT_CPU or RLIMIT_AS, or with the parent of all, which ends when the server does.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "grammar/compile/grammar_text.h"
#include "grammar/compile/vocabulary.h"

namespace portico::grammar {

struct CompileLimits {
  std::chrono::milliseconds time{5000};
  int64_t memory_bytes = int64_t{1} << 30;  // beyond what the vocabulary takes
  int64_t result_bytes = int64_t{128} << 20;
  TextLimits text;
};

// Thread safe.
class CompileProcess {
 public:
  // Forks; best called before the program has threads.
  static StatusOr<std::unique_ptr<CompileProcess>> Start();
  // Runs a program, this one unless it is named, whose main hands `argument`, its only one, to ServeAsProgram(). From any
  // thread.
  static StatusOr<std::unique_ptr<CompileProcess>> StartProgram(
      const std::string& argument, const std::string& program = "/proc/self/exe");
  // The other side of StartProgram().
  [[noreturn]] static void ServeAsProgram();
  ~CompileProcess();
  CompileProcess(const CompileProcess&) = delete;
  CompileProcess& operator=(const CompileProcess&) = delete;

  // Ends what compiles; from now on everything fails with UNAVAILABLE or as too complex.
  void End() const;

  // Whether the process is there. One that is being killed may still seem to be.
  bool alive() const;

  // Makes a vocabulary, as Serialized() writes it, known as `name`.
  Status AddVocabulary(int32_t name, std::string_view serialized) const;

  // The compiled grammar, serialized as the library does it. Blocks, at most about a second longer than the limit.
  // INVALID_ARGUMENT: the text is refused, or took more time or memory than it may. UNAVAILABLE: the process has died.
  StatusOr<std::string> Compile(int32_t vocabulary, const GrammarText& text,
                                const CompileLimits& limits) const;

 private:
  CompileProcess(int control, pid_t pid) : control_(control), pid_(pid) {}
  // Asks it. Blocks until it answers, at most 10 seconds.
  bool Answers() const;
  Status Send(char what, int32_t vocabulary, int fd) const;

  const int control_;
  const pid_t pid_;
};

}  // namespace portico::grammar
