#include "app/text/line_io.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "app/command_tools.h"

namespace portico {
namespace {

constexpr size_t kBlock = 1 << 20;

bool WriteAll(std::FILE* out, std::string* text) {
  bool ok =
      std::fwrite(text->data(), 1, text->size(), out) == text->size() && std::fflush(out) == 0;
  text->clear();
  return ok;
}

// False if `out` cannot be written.
bool ForEachLine(std::FILE* in, std::FILE* out,
                 const std::function<void(InputLine, std::string*)>& answer) {
  std::string input;
  std::string output;
  size_t begin = 0;  // of the first line that is not answered
  size_t number = 0;
  auto answer_line = [&](std::string_view line) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) return;
    answer({line, number}, &output);
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

}  // namespace

int AnswerEachLine(std::string_view command, std::FILE* in, std::FILE* out,
                   const std::function<bool(InputLine, std::string*)>& answer) {
  size_t wrong = 0;
  size_t first = 0;
  const bool written = ForEachLine(in, out, [&](InputLine line, std::string* answers) {
    if (!answer(line, answers) && ++wrong == 1) first = line.number;
  });
  if (wrong == 1) return Fail(command, fmt::format("line {} is not a JSON object", first));
  if (wrong > 1) {
    return Fail(command,
                fmt::format("{} lines are not JSON objects; the first is line {}", wrong, first));
  }
  return written ? 0 : kFailed;
}

std::string NoObject(InputLine line, const Status& parsed) {
  if (parsed.ok()) return fmt::format("line {} is not a JSON object", line.number);
  return fmt::format("line {} is not JSON: {}", line.number, MessageOf(parsed));
}

bool ReadRequest(InputLine line, simdjson::dom::parser* parser, simdjson::dom::object* request,
                 JsonWriter* answer) {
  answer->BeginObject().Key("id");
  if (auto error = parser->parse(line.text.data(), line.text.size()).get(*request)) {
    const Status parsed = error == simdjson::INCORRECT_TYPE
                              ? OkStatus()
                              : InvalidArgument("", simdjson::error_message(error));
    answer->Null().Key("error").String(NoObject(line, parsed)).EndObject();
    return false;
  }
  simdjson::dom::element id;
  (*request)["id"].get(id) ? answer->Null() : answer->Raw(simdjson::minify(id));
  return true;
}

}  // namespace portico
