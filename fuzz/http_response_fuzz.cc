// Any bytes as HTTP/1.1 answers on one connection, cut into pieces in two ways: the parser must say the same, keep its
// bounds and leave no more over than a head may be. The first byte seeds the cuts and says whether HEAD was asked.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/response_parser.h"

namespace {

using portico::net::ResponseParser;
using State = ResponseParser::State;

constexpr size_t kMaxHead = 2048;
constexpr size_t kSlack = 16 << 10;

std::string Describe(ResponseParser& parser, const std::string& body) {
  const auto& head = parser.head();
  std::string text = std::to_string(head.status) + (head.keep_alive ? "+" : "-") + "\n";
  for (const auto& [name, value] : head.headers) text += name + ":" + value + "\n";
  return text + body;
}

std::vector<std::string> Parse(std::string_view input, size_t piece, bool head_request) {
  std::vector<std::string> seen;
  auto parser = std::make_unique<ResponseParser>(kMaxHead, head_request);
  std::string pending;
  std::string body;
  while (!input.empty()) {
    const size_t size = std::min(piece, input.size());
    pending.append(input.substr(0, size));
    input.remove_prefix(size);
    size_t start = 0;
    for (;;) {
      const State before = parser->state();
      size_t used = 0;
      const State state = parser->Feed(std::string_view(pending).substr(start), &used, &body);
      start += used;
      if (start > pending.size()) std::abort();
      if (state == State::kError) {
        if (parser->error().empty()) std::abort();
        seen.push_back("error");
        return seen;
      }
      if (state == State::kDone) {
        seen.push_back(Describe(*parser, body));
        if (!parser->head().keep_alive) return seen;
        body.clear();
        parser = std::make_unique<ResponseParser>(kMaxHead, head_request);
        if (start < pending.size()) continue;
      } else if (state == State::kBody && before == State::kHead) {
        continue;
      }
      break;
    }
    pending.erase(0, start);
    if (pending.size() > kMaxHead + kSlack + piece) std::abort();
  }
  seen.push_back(parser->OnEnd() == State::kDone ? Describe(*parser, body) : "cut");
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool head_request = data[0] >= 128;
  const auto whole = Parse(input, input.size(), head_request);
  const auto pieces = Parse(input, 1 + data[0] % 32, head_request);
  if (whole != pieces) std::abort();
  return 0;
}
