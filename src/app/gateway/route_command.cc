#include "app/gateway/route_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "app/command_tools.h"
#include "app/gateway/gateway_loop.h"
#include "app/gateway/go_server_env.h"
#include "app/gateway/route_tokens.h"
#include "app/options/route_options.h"
#include "base/log.h"
#include "base/log_file.h"

namespace portico {
namespace {

constexpr std::string_view kRoute = "route";

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
  const auto level = ParseLogLevel(options.log_level == "warn" ? "warning" : options.log_level);
  if (!level.ok()) return Fail(kRoute, MessageOf(level.status()), kUsageError);
  InitLog(*level);
  if (!options.log_dir.empty()) {
    const Status logged = LogToFolder(options.log_dir);
    if (!logged.ok()) return Fail(kRoute, fmt::format("--log-dir: {}", MessageOf(logged)));
  }
  RaiseFileLimit();
  const sigset_t signals = BlockSignals({SIGHUP, SIGUSR1});
  const Status ran = RunGateway(options, &words, "", signals);
  return ran.ok() ? 0 : Fail(kRoute, MessageOf(ran));
}

int CheckCommand(int argc, char** argv) {
  const std::string_view word = argc == 1 ? argv[0] : "";
  if (word.empty() || word.starts_with("-")) {
    const bool help = word == "--help" || word == "-h";
    std::fputs("usage: portico check FILE\n\nValidates a file for `portico route --config`.\n",
               help ? stdout : stderr);
    return help ? 0 : kUsageError;
  }
  const auto parsed = ParseRouteOptions({"--config", argv[0]});
  if (!parsed.ok()) {
    std::fprintf(stderr, "%s\n", std::string(MessageOf(parsed.status())).c_str());
    return kFailed;
  }
  const auto workers = WorkersOf(parsed->options);
  std::printf("%s: good; %zu workers, policy %s\n", argv[0], workers->size(),
              parsed->options.policy.c_str());
  return 0;
}

}  // namespace portico
