// Asks workers without a server between: portico_client does what a gateway does.
//   portico_client_chat WORKER[,WORKER...] REQUEST_JSON [--completion | --embeddings] [--stream | --cancel-after N]
//       [--tokenizer-path DIR]
// prints the answer, or a chunk a line: of a chat, or of what the flag says. --cancel-after drops the stream after N
// chunks.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "app/client/portico_client.h"

namespace {

int Fail(const portico::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(portico::MessageOf(status)).c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  portico::ClientOptions options;
  std::string request;
  bool stream = false;
  bool completion = false;
  bool embeddings = false;
  int most = -1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--stream") {
      stream = true;
    } else if (word == "--completion") {
      completion = true;
    } else if (word == "--embeddings") {
      embeddings = true;
    } else if (word == "--cancel-after" && i + 1 < argc) {
      stream = true;
      most = std::atoi(argv[++i]);
    } else if (word == "--tokenizer-path" && i + 1 < argc) {
      options.tokenizer_path = argv[++i];
    } else if (options.workers.empty()) {
      std::string_view rest = word;
      while (!rest.empty()) {
        const size_t comma = rest.find(',');
        options.workers.emplace_back(rest.substr(0, comma));
        rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
      }
    } else {
      request = word;
    }
  }
  options.startup_timeout = std::chrono::seconds(60);
  auto client = portico::Client::Connect(options);
  if (!client.ok()) return Fail(client.status());
  if (!stream) {
    const auto answer = completion   ? (*client)->Completion(request)
                        : embeddings ? (*client)->Embeddings(request)
                                     : (*client)->ChatCompletion(request);
    if (!answer.ok()) return Fail(answer.status());
    std::printf("%s\n", answer->c_str());
    return 0;
  }
  auto chunks =
      completion ? (*client)->CompletionStream(request) : (*client)->ChatCompletionStream(request);
  if (!chunks.ok()) return Fail(chunks.status());
  for (int count = 0; count != most; ++count) {
    const auto chunk = (*chunks)->Receive();
    if (!chunk.ok()) return Fail(chunk.status());
    if (!chunk->has_value()) break;
    std::printf("%s\n", (*chunk)->c_str());
    std::fflush(stdout);
  }
  return 0;
}
