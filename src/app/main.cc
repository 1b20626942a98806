#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "app/command_tools.h"
#include "app/gateway/launch_command.h"
#include "app/gateway/route_command.h"
#include "app/gateway/top_command.h"
#include "app/omni/omni_command.h"
#include "app/omni/stage_command.h"
#include "app/options/nearest_name.h"
#include "app/profile_command.h"
#include "app/serve/serve_command.h"
#include "app/text/detokenize_command.h"
#include "app/text/parse_command.h"
#include "app/text/render_command.h"
#include "app/text/tokenize_command.h"

namespace {

constexpr char kUsage[] =
    R"(usage: portico COMMAND [ARGUMENTS]

  serve        serve models on this machine over OpenAI's HTTP API and gRPC
  omni         run a pipeline of stages with speech input and output
  route        put one address in front of many workers
  launch       start workers on this machine and a gateway in front of them
  top          watch a gateway's workers
  profile      record and report where a server's requests spend their time
  check        validate a configuration file of `route`
  tokenize     show or print the tokens of a text
  detokenize   turn token ids into text
  render       render a conversation with a chat template
  parse        split a model's output into content, reasoning and tool calls

`portico COMMAND --help` describes a command; `portico --version` prints the version.

Exit status: 0 done; 1 failed at run time; 2 wrong command line; 130 ended by a second Ctrl-C.
)";

struct Command {
  const char* name;
  int (*run)(int argc, char** argv);
};

constexpr Command kCommands[] = {
    {"serve", portico::ServeCommand},
    {"route", portico::RouteCommand},
    {"launch", portico::LaunchCommand},
    {"check", portico::CheckCommand},
    {"top", portico::TopCommand},
    {"omni", portico::OmniCommand},
    {"profile", portico::ProfileCommand},
    {"tokenize", portico::TokenizeCommand},
    {"detokenize", portico::DetokenizeCommand},
    {"render", portico::RenderCommand},
    {"parse", portico::ParseCommand},
    {"omni-stage", portico::StageCommand},
    {portico::kGrammarCommand, portico::GrammarCommand},
};

int UnknownCommand(const char* name) {
  std::vector<std::string_view> names;
  for (const Command& command : kCommands) names.emplace_back(command.name);
  std::string hint = portico::DidYouMean(name, names);
  if (hint.empty()) hint = "; portico --help lists them";
  std::fprintf(stderr, "portico: there is no command `%s`%s\n", name, hint.c_str());
  return portico::kUsageError;
}

// What the Python package starts ends with the process that does, which names itself. That one cannot arrange this before it executes
// this program: it would have to fork with all that libraries of other threads do at a fork.
void EndWithParent() {
  const char* const named = std::getenv("PORTICO_END_WITH");
  if (named == nullptr) return;
  const auto parent = static_cast<pid_t>(std::atoi(named));
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  // It has ended before that. Where it lives, a script is between.
  if (getppid() != parent && kill(parent, 0) != 0) _exit(portico::kFailed);
  unsetenv("PORTICO_END_WITH");  // not for the processes of stages
}

bool AsksForVersion(std::string_view word) { return word == "--version" || word == "-V"; }

}  // namespace

int main(int argc, char** argv) {
  EndWithParent();
  std::string_view name = argc > 1 ? argv[1] : "";
  // `portico route --version` too: what takes sglang-router's flags.
  const bool serves = name == "serve" || name == "route" || name == "launch";
  if (AsksForVersion(name) || (serves && argc == 3 && AsksForVersion(argv[2]))) {
    std::puts("portico " PORTICO_VERSION);
    return 0;
  }
  // `portico help serve` is `portico serve --help`.
  if (name == "help" && argc > 2) {
    char help[] = "--help";
    char* arguments[] = {argv[2], help};
    for (const Command& command : kCommands) {
      if (std::string_view(argv[2]) == command.name) return command.run(1, arguments + 1);
    }
    if (argv[2][0] != '-' && name != argv[2]) return UnknownCommand(argv[2]);
  }
  if (name == "--help" || name == "-h" || name == "help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  for (const Command& command : kCommands) {
    if (name == command.name) return command.run(argc - 2, argv + 2);
  }
  if (!name.empty()) return UnknownCommand(argv[1]);
  std::fputs(kUsage, stderr);
  return portico::kUsageError;
}
