#include "base/child_process.h"

#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

extern char** environ;  // POSIX leaves its declaration to the program

namespace portico {

int StartChild(ChildProgram program, pid_t* pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (program.no_input) {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", 0, 0);
  }
  for (const auto& [ours, theirs] : program.descriptors) {
    posix_spawn_file_actions_adddup2(&actions, ours, theirs);
  }
  posix_spawn_file_actions_addclosefrom_np(&actions, program.last + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              (program.own_group ? POSIX_SPAWN_SETPGROUP : 0)));
  std::vector<char*> words;
  for (std::string& word : program.words) words.push_back(word.data());
  words.push_back(nullptr);
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view whole = *entry;
    const auto withheld = std::find(program.withheld.begin(), program.withheld.end(),
                                    whole.substr(0, whole.find('=')));
    if (withheld == program.withheld.end()) environment.push_back(*entry);
  }
  for (std::string& entry : program.more_names) environment.push_back(entry.data());
  environment.push_back(nullptr);
  const int failed =
      posix_spawnp(pid, words[0], &actions, &attributes, words.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) *pid = -1;
  return failed;
}

}  // namespace portico
