#include <cstdio>
#include <cstring>
#include <string_view>

#include "app/detokenize_command.h"
#include "app/render_command.h"
#include "app/serve_command.h"
#include "app/tokenize_command.h"

namespace {

constexpr char kUsage[] =
    R"(usage: portico COMMAND [ARGUMENTS]

  serve        answer OpenAI's HTTP API with a model on this machine
  tokenize     show or print the tokens of a text
  detokenize   turn token ids into text
  render       render a conversation through a chat template

`portico COMMAND --help` tells more; `portico --version` prints the version.
)";

struct Command {
  const char* name;
  int (*run)(int argc, char** argv);
};

constexpr Command kCommands[] = {
    {"serve", portico::ServeCommand},
    {"tokenize", portico::TokenizeCommand},
    {"detokenize", portico::DetokenizeCommand},
    {"render", portico::RenderCommand},
};

}  // namespace

int main(int argc, char** argv) {
  std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "--version" || name == "-V") {
    std::puts("portico " PORTICO_VERSION);
    return 0;
  }
  if (name == "--help" || name == "-h" || name == "help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  for (const Command& command : kCommands) {
    if (name == command.name) return command.run(argc - 2, argv + 2);
  }
  if (name.empty()) {
    std::fputs(kUsage, stderr);
  } else {
    std::fprintf(stderr, "portico: there is no command `%s`; portico --help lists them\n", argv[1]);
  }
  return 2;
}
