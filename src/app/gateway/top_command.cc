#include "app/gateway/top_command.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "app/command_tools.h"
#include "app/gateway/top_table.h"
#include "app/server_client.h"
#include "app/text/text_command.h"
#include "router/fleet/small_call.h"
#include "text/json.h"

namespace portico {
namespace {

constexpr char kExamples[] =
    R"(Columns: requests in flight through the gateway and its rate; what the worker itself reports: running and waiting
requests, KV cells in use, prompt tokens found in its cache, tokens a second. Why a worker is down is below. Ctrl-C ends it.

Examples:
  portico top http://127.0.0.1:30000
  PORTICO_API_KEY=... portico top https://gateway.example:30000 --interval 5
  portico top http://127.0.0.1:30000 --count 1      once, for a script
)";

struct TopArguments {
  std::string url;
  std::string api_key;
  std::string ca_file;
  double interval = 1;
  int count = 0;
};

// Set by Ctrl-C; a signal's handler may do no more.
volatile std::sig_atomic_t ended = 0;

size_t Width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 1 << 16;
}

// The table, or a sentence that says what is wrong (false).
bool Look(ServerClient& gateway, const std::string& url, TopTable* table, std::string* text) {
  const StatusOr<router::SmallAnswer> answer = gateway.Ask({.target = "/workers"});
  if (!answer.ok()) {
    // A server that speaks TLS on its port closes the connection of a client that does not.
    const std::string_view why = MessageOf(answer.status());
    const bool deaf = url.starts_with("http://") && (why == "it closed the connection" ||
                                                     why.starts_with("its answer is malformed"));
    *text = fmt::format("portico top: {}: {}{}\n", url, why, deaf ? "; is it https?" : "");
    return false;
  }
  if (answer->status != 200) {
    *text = fmt::format("portico top: {}: GET /workers returned {}{}\n", url, answer->status,
                        answer->status == 401   ? "; --api-key or PORTICO_API_KEY sets the key"
                        : answer->status == 404 ? "; is this a gateway (`portico route`)?"
                                                : "");
    return false;
  }
  const StatusOr<Json> json = Json::Parse(answer->body);
  *text = table->Render(url, json.ok() ? *json : Json(), Clock::now(), Width());
  return true;
}

int Watch(ServerClient& gateway, const TopArguments& arguments) {
  const bool live = isatty(STDOUT_FILENO) != 0 && arguments.count == 0;
  TopTable table;
  bool good = true;
  for (int i = 0; ended == 0 && (arguments.count == 0 || i < arguments.count); ++i) {
    for (double waited = 0; i > 0 && waited < arguments.interval && ended == 0; waited += 0.05)
      usleep(50000);
    if (ended != 0) break;
    std::string text;
    good = Look(gateway, arguments.url, &table, &text);
    if (live) text = "\x1b[H\x1b[2J" + text;
    std::fputs(text.c_str(), good || live ? stdout : stderr);
    if (std::fflush(stdout) != 0) return kFailed;  // nobody reads it
    if (!good && !live) return kFailed;
  }
  return good ? 0 : kFailed;
}

}  // namespace

int TopCommand(int argc, char** argv) {
  TopArguments arguments;
  if (const char* key = std::getenv("PORTICO_API_KEY")) arguments.api_key = key;
  CLI::App app("Shows a gateway's workers, live.", "portico top");
  app.footer(kExamples);
  app.add_option("URL", arguments.url, "The gateway's address")->required();
  app.add_option("--api-key", arguments.api_key,
                 "API key; by default the environment variable PORTICO_API_KEY");
  app.add_option("--ca-cert", arguments.ca_file,
                 "CA certificates (PEM) to trust for https, in addition to the system's");
  app.add_option("--interval", arguments.interval, "Seconds between two updates")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app.add_option("--count", arguments.count, "Number of updates; 0 continues until Ctrl-C")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  if (std::optional<int> status = ParseWords(&app, argc, argv)) return *status;
  if (arguments.url.find("://") == std::string::npos) arguments.url = "http://" + arguments.url;
  const auto gateway = ServerClient::Open(arguments.url, arguments.api_key, arguments.ca_file);
  if (!gateway.ok()) return Fail("top", MessageOf(gateway.status()), kUsageError);
  std::signal(SIGINT, [](int) { ended = 1; });
  std::signal(SIGTERM, [](int) { ended = 1; });
  return Watch(**gateway, arguments);
}

}  // namespace portico
