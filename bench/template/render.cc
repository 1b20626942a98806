// How long a render of a chat template takes from parsed messages.
//   template_render TEMPLATE REQUEST.json SECONDS OUTPUT
// REQUEST: {"messages": […], "tools": […] or null, "special": {"bos_token": …}}. Writes the rendered text to OUTPUT and
// prints the median of a render, in microseconds. Exit status 1, and the reason, where the template refuses.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "template/chat_template.h"
#include "text/json.h"

namespace {

using portico::ChatTemplate;
using portico::Json;

std::string ReadFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

[[noreturn]] void Refuse(const portico::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(portico::MessageOf(status)).c_str());
  std::exit(1);
}

// Each measurement is a batch long enough for the clock.
double MedianMicroseconds(const ChatTemplate& chat, const ChatTemplate::Request& request,
                          double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr double kBatchSeconds = 200e-6;
  std::vector<double> each;
  int batch = 1;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (each.size() < 5 || Clock::now() < end) {
    const auto start = Clock::now();
    for (int i = 0; i < batch; ++i) {
      if (!chat.Render(request).ok()) std::abort();
    }
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    if (took < kBatchSeconds && batch < 1024) {
      batch *= 2;
    } else {
      each.push_back(1e6 * took / batch);
    }
  }
  std::nth_element(each.begin(), each.begin() + static_cast<std::ptrdiff_t>(each.size() / 2),
                   each.end());
  return each[each.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s TEMPLATE REQUEST.json SECONDS OUTPUT\n", argv[0]);
    return 2;
  }
  auto json = Json::Parse(ReadFile(argv[2]));
  if (!json.ok()) Refuse(json.status());
  portico::NamedTexts special;
  for (const auto& [name, value] : json->Find("special")->as_object()) {
    special.emplace_back(name, value.as_string());
  }
  auto chat = ChatTemplate::FromSource(ReadFile(argv[1]), special);
  if (!chat.ok()) Refuse(chat.status());
  ChatTemplate::Request request;
  request.messages = json->Find("messages");
  request.tools = json->Find("tools");
  auto text = (*chat)->Render(request);
  if (!text.ok()) Refuse(text.status());
  std::ofstream(argv[4], std::ios::binary) << *text;
  std::printf("%.4f\n", MedianMicroseconds(**chat, request, std::atof(argv[3])));
}
