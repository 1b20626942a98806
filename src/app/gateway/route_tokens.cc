#include "app/gateway/route_tokens.h"

#include <algorithm>
#include <string_view>

#include "app/options/route_options.h"
#include "app/serve/serve_command.h"

namespace portico {
namespace {

constexpr std::string_view kWorkerUrls = "--worker-urls";

// Takes the values of --worker-urls out of the words: all up to the next flag.
std::vector<std::string> TakeWorkerUrls(std::vector<std::string>* words) {
  std::vector<std::string> urls;
  std::vector<std::string> rest;
  bool taking = false;
  for (const std::string& word : *words) {
    if (word == kWorkerUrls) {
      taking = true;
    } else if (word.starts_with(std::string(kWorkerUrls) + "=")) {
      urls.push_back(word.substr(kWorkerUrls.size() + 1));
      taking = false;
    } else if (taking && !word.starts_with("-")) {
      urls.push_back(word);
    } else {
      taking = false;
      rest.push_back(word);
    }
  }
  *words = std::move(rest);
  return urls;
}

}  // namespace

bool RoutesTokens(const std::vector<std::string>& words) {
  std::vector<std::string> rest = words;
  const std::vector<std::string> urls = TakeWorkerUrls(&rest);
  const bool tokens = std::all_of(
      urls.begin(), urls.end(), [](const std::string& url) { return url.starts_with("grpc://"); });
  return !urls.empty() && tokens && std::any_of(rest.begin(), rest.end(), [](const auto& word) {
    return word.size() > 2 && word.starts_with("--") && !IsRouteFlag(word);
  });
}

int RouteTokens(const std::vector<std::string>& words) {
  std::vector<std::string> rest = words;
  std::string joined;
  for (const std::string& url : TakeWorkerUrls(&rest)) joined += (joined.empty() ? "" : ",") + url;
  // In front, so that what the user says counts.
  std::vector<std::string> all = {"portico",  "serve", "--host",        "0.0.0.0",
                                  "--engine", "grpc",  "--worker-urls", joined};
  all.insert(all.end(), rest.begin(), rest.end());
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  constexpr int kNames = 2;
  return ServeCommand(static_cast<int>(all.size()) - kNames, argv.data() + kNames);
}

}  // namespace portico
