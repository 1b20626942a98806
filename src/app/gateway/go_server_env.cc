#include "app/gateway/go_server_env.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "absl/strings/str_split.h"

namespace portico {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// In full or abbreviated.
bool Names(const std::vector<std::string>& words, std::string_view flag) {
  return std::any_of(words.begin(), words.end(), [flag](std::string_view word) {
    word = word.substr(0, word.find('='));
    return word.size() > 2 && flag.starts_with(word);
  });
}

bool NamesWorkers(const std::vector<std::string>& words) {
  constexpr std::string_view kSources[] = {"--worker-urls",    "--config",
                                           "--prefill",        "--decode",
                                           "--discovery-file", "--service-discovery"};
  return std::any_of(std::begin(kSources), std::end(kSources),
                     [&](std::string_view flag) { return Names(words, flag); });
}

}  // namespace

void AddGoServerEnvironment(std::vector<std::string>* words) {
  std::string endpoints = Environment("SGL_GRPC_ENDPOINTS");
  if (endpoints.empty()) endpoints = Environment("SGL_GRPC_ENDPOINT");
  if (endpoints.empty() || NamesWorkers(*words)) return;
  const std::vector<std::string> pieces =
      absl::StrSplit(endpoints, absl::ByAnyChar(", "), absl::SkipEmpty());
  if (pieces.empty()) return;
  words->push_back("--worker-urls");
  for (const std::string& url : pieces) {
    words->push_back(url.find("://") == std::string::npos ? "grpc://" + url : url);
  }
  constexpr struct {
    const char* name;
    const char* flag;
  } kOthers[] = {{"SGL_TOKENIZER_PATH", "--tokenizer-path"},
                 {"SGL_POLICY_NAME", "--policy"},
                 {"PORT", "--port"},
                 {"LOG_DIR", "--log-dir"},
                 {"LOG_LEVEL", "--log-level"}};
  for (const auto& [name, flag] : kOthers) {
    const std::string value = Environment(name);
    if (value.empty() || Names(*words, flag)) continue;
    words->push_back(flag);
    words->push_back(value);
  }
}

}  // namespace portico
