#include "app/gateway/route_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "app/command_tools.h"
#include "app/gateway/gateway_loop.h"
#include "app/gateway/go_server_env.h"
#include "app/gateway/route_tokens.h"
#include "app/options/route_options.h"
#include "base/counted.h"
#include "base/log.h"
#include "base/log_file.h"

namespace portico {
namespace {

constexpr std::string_view kRoute = "route";

// Says whether it is good; the exit status.
int CheckFile(const std::string& file) {
  const auto parsed = ParseRouteOptions({"--config", file});
  if (!parsed.ok()) {
    const std::string why(MessageOf(parsed.status()));
    const bool named = why.find(file) != std::string::npos;
    std::fprintf(stderr, "%s%s%s\n", named ? "" : file.c_str(), named ? "" : ": ", why.c_str());
    return kFailed;
  }
  const RouteOptions& options = parsed->options;
  const auto workers = WorkersOf(options);
  const bool discovers = options.service_discovery || !options.discovery_file.empty();
  std::printf("%s: good; %s%s, policy %s\n", file.c_str(),
              Counted(static_cast<int64_t>(workers->size()), "worker").c_str(),
              workers->empty() && !discovers ? " (flags or POST /workers have to name some)" : "",
              options.policy.c_str());
  if (workers->empty() && !discovers) {
    std::printf("%s: a file of `portico serve` is checked by portico serve --config %s --check\n",
                file.c_str(), file.c_str());
  }
  return 0;
}

}  // namespace

int RouteCommand(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  AddGoServerEnvironment(&words);
  const auto parsed = ParseRouteOptions(words);
  if (!parsed.ok() && RoutesTokens(words)) return RouteTokens(words);
  if (!parsed.ok()) return Fail(kRoute, MessageOf(parsed.status()), kUsageError);
  if (parsed->print_and_exit) {
    std::fputs(parsed->print_and_exit->c_str(), stdout);
    return 0;
  }
  const RouteOptions& options = parsed->options;
  const auto level = ParseLogLevel(options.log_level);
  if (!level.ok()) return Fail(kRoute, MessageOf(level.status()), kUsageError);
  InitLog(*level);
  if (!options.log_dir.empty()) {
    const Status logged = LogToFolder(options.log_dir);
    if (!logged.ok()) return Fail(kRoute, fmt::format("--log-dir: {}", MessageOf(logged)));
  }
  RaiseFileLimit();
  const sigset_t signals = BlockSignals({SIGHUP, SIGUSR1});
  const Status ran = RunGateway(options, &words, "", signals);
  if (ran.ok()) return 0;
  // A certificate or an address; not a port that somebody has.
  return Fail(kRoute, MessageOf(ran),
              ran.code() == StatusCode::kInvalidArgument ? kUsageError : kFailed);
}

int CheckCommand(int argc, char** argv) {
  const std::vector<std::string> files(argv, argv + argc);
  const bool flags = std::any_of(files.begin(), files.end(), [](const std::string& word) {
    return word.empty() || word.starts_with("-");
  });
  if (files.empty() || flags) {
    const bool help = argc == 1 && (files[0] == "--help" || files[0] == "-h");
    std::fputs(
        "usage: portico check FILE [FILE ...]\n\nValidates files for `portico route --config`. "
        "`portico serve --config FILE --check` does so for\nthose of `portico serve`.\n",
        help ? stdout : stderr);
    return help ? 0 : kUsageError;
  }
  int status = 0;
  for (const std::string& file : files) status = std::max(status, CheckFile(file));
  return status;
}

}  // namespace portico
