// Any bytes as HTTP/1.1 requests, cut into pieces in two ways: the parser must say the same, keep its bounds and
// leave no more over than a head may be. The first byte seeds the cuts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/request_parser.h"

namespace {

using portico::net::RequestParser;
using State = RequestParser::State;

constexpr size_t kMaxHead = 2048;
constexpr size_t kMaxBody = 4096;
constexpr size_t kSlack = 16 << 10;

std::string Describe(RequestParser& parser) {
  const auto& request = parser.request();
  std::string text = request.method + " " + request.path + "?" + request.query + "\n";
  for (const auto& [name, value] : request.headers) text += name + ":" + value + "\n";
  return text + request.body + (parser.keep_alive() ? "+" : "-") + (parser.http_1_0() ? "0" : "1");
}

// What the requests in `input` are, read in pieces of at most `piece` bytes.
std::vector<std::string> Parse(std::string_view input, size_t piece) {
  std::vector<std::string> seen;
  auto parser = std::make_unique<RequestParser>(kMaxHead, kMaxBody);
  std::string pending;
  while (!input.empty()) {
    size_t size = std::min(piece, input.size());
    pending.append(input.substr(0, size));
    input.remove_prefix(size);
    size_t start = 0;
    for (;;) {
      State before = parser->state();
      size_t used = 0;
      State state = parser->Feed(std::string_view(pending).substr(start), &used);
      start += used;
      if (start > pending.size()) std::abort();
      if (state == State::kError) {
        if (parser->error().status < 400) std::abort();
        seen.push_back("error");
        return seen;
      }
      if (state == State::kDone) {
        if (parser->request().body.size() > kMaxBody) std::abort();
        seen.push_back(Describe(*parser));
        parser = std::make_unique<RequestParser>(kMaxHead, kMaxBody);
        if (start < pending.size()) continue;
      } else if (state == State::kBody && before == State::kHead) {
        continue;
      }
      break;
    }
    pending.erase(0, start);
    if (pending.size() > kMaxHead + kSlack + piece) std::abort();
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  auto whole = Parse(input, input.size());
  auto pieces = Parse(input, 1 + data[0] % 32);
  if (whole != pieces) std::abort();
  return 0;
}
