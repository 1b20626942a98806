#include "app/text/render_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>

#include "app/command_tools.h"
#include "app/read_file.h"
#include "app/text/render_request.h"
#include "app/text/text_command.h"

namespace portico {
namespace {

constexpr char kExamples[] = R"(
A conversation is a JSON list of messages, or an object with "messages" and, if needed, "tools",
"documents", "chat_template_kwargs", "add_generation_prompt", "continue_final_message". The beginning
of the assistant's answer is added unless "add_generation_prompt" is false or --no-generation-prompt is given;
with --jsonl, only if a request has "add_generation_prompt": true, as in transformers.

Examples:
  portico render --tokenizer-path models/demo chat.json
  echo '[{"role":"user","content":"Hi"}]' | portico render --tokenizer-path models/demo
  portico render --tokenizer-path models/demo --jsonl < requests.jsonl > answers.jsonl
  echo '{"id":1,"template":"{{ x|upper }}","context":{"x":"a"}}' | portico render --source --jsonl
)";

struct RenderArguments {
  std::string template_file;
  std::string tokenizer_path;
  TokenizerLoadOptions load;
  std::string input;
  bool raw = false;
  bool source = false;
  bool jsonl = false;
  bool no_generation_prompt = false;
};

int Complain(std::string_view message, int status = kFailed) {
  return Fail("render", message, status);
}

StatusOr<RenderSetup> MakeSetup(const RenderArguments& arguments) {
  RenderSetup setup;
  if (arguments.source) {
    setup.from_request = true;
    return setup;
  }
  NamedTexts special_tokens;
  if (!arguments.tokenizer_path.empty()) {
    PORTICO_ASSIGN_OR_RETURN(setup.config, LoadTokenizerConfig(arguments.tokenizer_path));
    special_tokens = setup.config.NamedSpecialTokens();
    if (arguments.jsonl) {
      PORTICO_ASSIGN_OR_RETURN(setup.tokenizer,
                               Tokenizer::Load(arguments.tokenizer_path, arguments.load));
    }
  }
  if (arguments.template_file.empty()) {
    PORTICO_ASSIGN_OR_RETURN(
        setup.chat, ChatTemplate::FromTemplates(setup.config.chat_templates, special_tokens));
    return setup;
  }
  PORTICO_ASSIGN_OR_RETURN(std::string source, ReadFile(arguments.template_file));
  if (arguments.raw) {
    PORTICO_ASSIGN_OR_RETURN(setup.raw, Template::Parse(std::move(source)));
  } else {
    PORTICO_ASSIGN_OR_RETURN(
        setup.chat, ChatTemplate::FromSource(std::move(source), std::move(special_tokens)));
  }
  return setup;
}

// Answers every line of standard input; where the templates cannot be used, with that error.
int AnswerLines(const StatusOr<RenderSetup>& setup) {
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::string answer;
    if (setup.ok()) {
      answer = AnswerRenderLine(*setup, line);
    } else {
      Json out{JsonObject{}};
      auto request = Json::Parse(line);
      if (const Json* id = request.ok() ? request->Find("id") : nullptr) out.Set("id", *id);
      out.Set("error", Json(MessageOf(setup.status())));
      answer = out.Dump();
    }
    answer.push_back('\n');
    std::fwrite(answer.data(), 1, answer.size(), stdout);
  }
  return std::fflush(stdout) == 0 ? 0 : kFailed;
}

int RenderOne(const RenderSetup& setup, const RenderArguments& arguments) {
  std::string text;
  if (arguments.input.empty() || arguments.input == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    auto read = ReadFile(arguments.input);
    if (!read.ok()) return FailToRead("render", read.status());
    text = *std::move(read);
  }
  auto conversation = Json::Parse(text);
  if (!conversation.ok()) {
    return Complain("the conversation is not JSON: " +
                    std::string(MessageOf(conversation.status())));
  }
  auto rendered = RenderConversation(setup, *conversation, !arguments.no_generation_prompt);
  if (!rendered.ok()) return Complain(MessageOf(rendered.status()));
  std::fwrite(rendered->data(), 1, rendered->size(), stdout);
  return std::fflush(stdout) == 0 ? 0 : kFailed;
}

}  // namespace

int RenderCommand(int argc, char** argv) {
  RenderArguments arguments;
  CLI::App app("Renders a conversation through a chat template.", "portico render");
  app.footer(kExamples);
  app.add_option("--template", arguments.template_file, "Chat template file");
  app.add_option("--tokenizer-path", arguments.tokenizer_path,
                 "Folder of a model, for its templates and special tokens");
  AddAddedTokens(&app, &arguments.load.added_tokens);
  app.add_flag("--raw", arguments.raw, "Pass the messages to the template unchanged");
  app.add_flag("--source", arguments.source, "Each request contains its own template and context");
  AddJsonLines(&app, &arguments.jsonl);
  app.add_flag("--no-generation-prompt", arguments.no_generation_prompt,
               "Do not add the beginning of the assistant's answer");
  app.add_option("conversation", arguments.input, "JSON file; by default standard input");
  if (std::optional<int> status = ParseWords(&app, argc, argv)) return *status;
  if (arguments.source && !arguments.jsonl) return Complain("--source needs --jsonl", kUsageError);
  if (!arguments.source && arguments.template_file.empty() && arguments.tokenizer_path.empty()) {
    return Complain(
        "one of --template, --tokenizer-path and --source is required (--help shows examples)",
        kUsageError);
  }
  if (arguments.raw && arguments.template_file.empty()) {
    return Complain("--raw needs --template", kUsageError);
  }
  auto setup = MakeSetup(arguments);
  if (arguments.jsonl) return AnswerLines(setup);
  if (!setup.ok()) return FailToRead("render", setup.status());
  return RenderOne(*setup, arguments);
}

}  // namespace portico
