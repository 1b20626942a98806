#include "app/text/line_io.h"

#include <unistd.h>

#include <cerrno>

namespace portico {
namespace {

constexpr size_t kBlock = 1 << 20;

bool WriteAll(std::FILE* out, std::string* text) {
  bool ok =
      std::fwrite(text->data(), 1, text->size(), out) == text->size() && std::fflush(out) == 0;
  text->clear();
  return ok;
}

}  // namespace

bool ForEachLine(std::FILE* in, std::FILE* out,
                 const std::function<void(std::string_view, std::string*)>& answer) {
  std::string input;
  std::string output;
  size_t begin = 0;  // of the first line that is not answered
  auto answer_line = [&](std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) return;
    answer(line, &output);
    output.push_back('\n');
  };
  for (;;) {
    size_t old = input.size();
    input.resize(old + kBlock);
    ssize_t count = read(fileno(in), input.data() + old, kBlock);
    if (count < 0 && errno == EINTR) count = 0;
    bool end = count <= 0 && errno != EINTR;
    input.resize(old + static_cast<size_t>(count > 0 ? count : 0));
    errno = 0;
    for (size_t at = input.find('\n', old); at != std::string::npos; at = input.find('\n', begin)) {
      answer_line(std::string_view(input).substr(begin, at - begin));
      begin = at + 1;
      if (output.size() >= kBlock && !WriteAll(out, &output)) return false;
    }
    if (end) {
      answer_line(std::string_view(input).substr(begin));
      return WriteAll(out, &output);
    }
    if (!output.empty() && !WriteAll(out, &output)) return false;
    input.erase(0, begin);
    begin = 0;
  }
}

bool ReadRequest(std::string_view line, simdjson::dom::parser* parser,
                 simdjson::dom::object* request, JsonWriter* answer) {
  answer->BeginObject().Key("id");
  if (auto error = parser->parse(line.data(), line.size()).get(*request)) {
    answer->Null().Key("error").String(simdjson::error_message(error)).EndObject();
    return false;
  }
  simdjson::dom::element id;
  (*request)["id"].get(id) ? answer->Null() : answer->Raw(simdjson::minify(id));
  return true;
}

}  // namespace portico
