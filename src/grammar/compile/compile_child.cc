#include "grammar/compile/compile_child.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <xgrammar/xgrammar.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "grammar/compile/grammar_pack.h"
#include "grammar/compile/grammar_text.h"
#include "grammar/compile/socket_io.h"
#include "grammar/compile/vocabulary.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PORTICO_SHADOW_MEMORY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PORTICO_SHADOW_MEMORY 1
#endif
#endif

namespace portico::grammar {
namespace {

struct Known {
  Vocabulary vocabulary;
  xgrammar::TokenizerInfo tokens;
};

#ifndef PORTICO_SHADOW_MEMORY
int64_t AddressSpace() {
  int64_t pages = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    long long read = 0;
    if (std::fscanf(file, "%lld", &read) == 1) pages = read;
    std::fclose(file);
  }
  return pages * sysconf(_SC_PAGESIZE);
}
#endif

void SetLimits(const CompileHead& head) {
  rlimit cpu;
  cpu.rlim_cur = static_cast<rlim_t>(head.time_ms / 1000 + 1);
  cpu.rlim_max = cpu.rlim_cur;
  setrlimit(RLIMIT_CPU, &cpu);
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
#ifndef PORTICO_SHADOW_MEMORY  // the sanitizers map terabytes
  rlimit memory;
  memory.rlim_cur = static_cast<rlim_t>(AddressSpace() + head.memory_bytes);
  memory.rlim_max = memory.rlim_cur;
  setrlimit(RLIMIT_AS, &memory);
#endif
  itimerval timer{};
  timer.it_value.tv_sec = head.time_ms / 1000;
  timer.it_value.tv_usec = head.time_ms % 1000 * 1000;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

void Reply(int fd, Answer answer, std::string_view text) {
  const char code = static_cast<char>(answer);
  if (WriteAll(fd, {&code, 1})) WriteAll(fd, text);
}

// In a process of its own.
[[noreturn]] void CompileAndExit(int fd, const Known* known) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string request;
  CompileHead head;
  if (!ReadAll(fd, &request) || request.size() < sizeof head || known == nullptr) _exit(2);
  std::memcpy(&head, request.data(), sizeof head);
  request.erase(0, sizeof head);
  SetLimits(head);
  try {
    const GrammarText text{static_cast<GrammarKind>(head.kind), std::move(request),
                           head.closed_objects != 0, head.compact != 0};
    const auto compiled = CompileText(text, known->vocabulary, known->tokens, head.text);
    if (compiled.ok()) {
      const std::string bytes = PackGrammar(*compiled, SpaceRuleOf(text));
      if (static_cast<int64_t>(bytes.size()) > head.result_bytes) {
        Reply(fd, Answer::kTooLarge, "");
      } else {
        Reply(fd, Answer::kGood, bytes);
      }
    } else if (compiled.status().code() == StatusCode::kResourceExhausted) {
      Reply(fd, Answer::kMemory, "");
    } else {
      Reply(fd, Answer::kRefused, MessageOf(compiled.status()));
    }
  } catch (const std::bad_alloc&) {
    Reply(fd, Answer::kMemory, "");
  } catch (const std::exception& e) {
    Reply(fd, Answer::kRefused, e.what());
  }
  _exit(0);
}

void TakeVocabulary(int fd, int32_t name, std::map<int32_t, std::unique_ptr<Known>>* known) {
  std::string bytes;
  try {
    if (!ReadAll(fd, &bytes)) return;
    auto vocabulary = ReadVocabulary(bytes);
    if (!vocabulary.ok()) return Reply(fd, Answer::kRefused, MessageOf(vocabulary.status()));
    xgrammar::TokenizerInfo tokens = MakeTokenizerInfo(*vocabulary);
    (*known)[name] = std::make_unique<Known>(*std::move(vocabulary), std::move(tokens));
    Reply(fd, Answer::kGood, "");
  } catch (const std::exception& e) {
    Reply(fd, Answer::kRefused, e.what());
  }
}

}  // namespace

void ServeCompilations(int control) {
  prctl(PR_SET_NAME, "portico-grammar");
  // Requests that run come before those that wait for a grammar.
  setpriority(PRIO_PROCESS, 0, 5);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGALRM, SIG_DFL);
  signal(SIGCHLD, SIG_IGN);  // nobody waits for them
  signal(SIGINT, SIG_IGN);   // a terminal sends it to all; the end of the control socket counts
  signal(SIGTERM, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  std::map<int32_t, std::unique_ptr<Known>> known;
  for (;;) {
    Message message;
    int fd = -1;
    if (!ReceiveFd(control, &message, sizeof message, &fd)) _exit(0);
    if (message.what == 'V') {
      TakeVocabulary(fd, message.vocabulary, &known);
    } else if (message.what == 'P') {
      Reply(fd, Answer::kGood, "");
    } else if (message.what == 'C' && fork() == 0) {
      close(control);
      const auto found = known.find(message.vocabulary);
      CompileAndExit(fd, found == known.end() ? nullptr : found->second.get());
    }
    close(fd);
  }
}

}  // namespace portico::grammar
