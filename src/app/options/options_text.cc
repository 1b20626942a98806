// The option table for people: --help, docs/config.md and /get_server_info.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_split.h"
#include "app/options/foreign_flags.h"
#include "app/options/options_table.h"

namespace portico {
namespace {

constexpr size_t kHelpColumn = 32;
constexpr size_t kHelpWidth = 100;

std::string WithUnderscores(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

// "auto, float32 or bfloat16".
std::string Alternatives(std::string_view choices) {
  std::string text(choices);
  if (const size_t last = text.rfind('|'); last != std::string::npos) text.replace(last, 1, " or ");
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at)) {
    text.replace(at, 1, ", ");
  }
  return text;
}

// The default as people read it; empty for a flag that is off.
std::string DefaultText(const Option& option) {
  if (!option.shown_default.empty()) return std::string(option.shown_default);
  std::string text = OptionText(option, ServeOptions{}, ModelOptions{});
  if (option.is_flag()) return text == "true" ? "on" : "";
  return text;
}

std::string FlagWithValue(const Option& option) {
  std::string text = fmt::format("--{}", option.name);
  if (!option.metavar.empty()) text += fmt::format(" {}", option.metavar);
  return text;
}

// Appends words, with a line break and an indent wherever a line would get too long.
void AppendWrapped(const std::vector<std::string>& words, std::string* out) {
  size_t column = kHelpColumn;
  for (const std::string& word : words) {
    if (column + word.size() > kHelpWidth && column > kHelpColumn) {
      out->back() = '\n';
      out->append(kHelpColumn, ' ');
      column = kHelpColumn;
    }
    out->append(word).push_back(' ');
    column += word.size() + 1;
  }
  out->back() = '\n';
}

void AppendHelp(const Option& option, std::string* out) {
  std::string flag = fmt::format("  {}", FlagWithValue(option));
  if (flag.size() + 2 > kHelpColumn) {
    flag += '\n';
    flag.append(kHelpColumn, ' ');
  } else {
    flag.resize(kHelpColumn, ' ');
  }
  out->append(flag);
  std::string help(option.help);
  if (!option.choices.empty()) help += fmt::format(" One of {}.", Alternatives(option.choices));
  std::vector<std::string> words = absl::StrSplit(help, ' ');
  const std::string value = DefaultText(option);
  if (!value.empty()) words.push_back(fmt::format("[default: {}]", value));
  AppendWrapped(words, out);
}

// Table cells end at a bar.
std::string Cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell;
}

std::string MarkdownDefault(const Option& option) {
  if (option.is_flag()) return DefaultText(option).empty() ? "off" : "on";
  const std::string value = DefaultText(option);
  if (!option.shown_default.empty()) return Cell(value);
  return fmt::format("`{}`", Cell(value));
}

std::string MarkdownRange(const Option& option) {
  if (!option.choices.empty()) return fmt::format(" One of {}.", Alternatives(option.choices));
  if (option.is_flag() || option.is_text()) return "";
  if (option.bytes) return fmt::format(" {:.0f} to {:.0f} bytes.", option.min, option.max);
  return fmt::format(" {:.0f} to {:.0f}.", option.min, option.max);
}

void AppendMarkdown(const Option& option, std::string* out) {
  std::string notes;
  if (!option.alias.empty()) notes += fmt::format(" Also `--{}`.", option.alias);
  if (option.secret) notes += " A secret: `/get_server_info` leaves it out.";
  fmt::format_to(std::back_inserter(*out), "| `{}` | {} | {}{}{} |\n", Cell(FlagWithValue(option)),
                 MarkdownDefault(option), Cell(option.help), MarkdownRange(option), notes);
}

}  // namespace

std::string OptionsHelp() {
  std::string out =
      "usage: portico serve [FLAGS]\n\n"
      "Serves models over OpenAI's HTTP API and over gRPC; without --model-path, the bundled demo "
      "model.\n"
      "Each --model-path adds a model. Options of the groups Model, Engine, SGLang engine, Mock\n"
      "engine and Token workers apply to the --model-path that they follow; those before the "
      "first\n"
      "apply to all models. Requests without `model` go to the first model.\n\n"
      "Examples:\n"
      "  portico serve --model-path ~/models/Qwen3-0.6B --port 8000\n"
      "  portico serve --model-path model.gguf --host 0.0.0.0 --config server.yaml\n"
      "  portico serve --dtype float32 --model-path ~/models/Qwen3-0.6B --served-model-name chat "
      "\\\n"
      "                --model-path ~/models/all-MiniLM-L6-v2 --max-queued-requests 64\n"
      "  portico serve --engine mock --mock-ttft-ms 50 --mock-itl-ms 20\n";
  std::string_view group;
  for (const Option& option : ServeOptionTable()) {
    if (option.group != group) {
      group = option.group;
      fmt::format_to(std::back_inserter(out), "\n{}:\n", group);
    }
    AppendHelp(option, &out);
  }
  out +=
      "\nOthers:\n"
      "  --config FILE                 YAML file with options (port: 8000); the command line "
      "overrides it.\n"
      "                                It is read once: SIGHUP drains the server.\n"
      "  --check                       Checks flags and files, and starts nothing.\n"
      "  -h, --help                    This text.\n"
      "\nEnvironment:\n"
      "  PORTICO_API_KEY               --api-key, if neither the command line nor the file sets "
      "it.\n"
      "  PORTICO_CACHE_DIR             Folder for imported models and compiled tokenizers.\n"
      "                                [default: ~/.cache/portico]\n"
      "  PORTICO_TOKENIZER_CACHE       0 loads tokenizers from their sources each time.\n";
  return out;
}

std::string OptionsMarkdown() {
  std::string out =
      "# Options of `portico serve`\n\n"
      "This file is generated from the option table (src/app/options/options_table.cc); a test "
      "compares them.\n\n"
      "Each option is a flag on the command line (`--port 8000` or `--port=8000`; the last one "
      "counts) and a\n"
      "key in the YAML file that `--config FILE` names, with dashes or underscores. The command "
      "line overrides\n"
      "the file, which is read once, at the start: a changed one needs a restart, and SIGHUP "
      "drains "
      "the server as\nSIGTERM does. Unknown flags and keys, wrong types and values out of range "
      "are "
      "errors, and the\n"
      "server does not start (exit status 2); `portico serve --config FILE --check` looks for them "
      "and starts\nnothing. Sizes in bytes accept the units KiB, MiB and GiB. A flag whose "
      "default is on or off\n"
      "takes no value but with `=`: `--log-requests`, `--log-requests=false`.\n\n"
      "```yaml\n"
      "model-path: /models/Qwen3-0.6B\n"
      "port: 8000\n"
      "max-body-bytes: 8MiB\n"
      "log-requests: true\n"
      "```\n\n"
      "## Several models\n\n"
      "The options of the groups Model, Engine, SGLang engine, Mock engine and Token workers apply "
      "to one model:\n"
      "those that follow a `--model-path`, up to the next one, to that model. Those before the "
      "first "
      "`--model-path`\n"
      "apply to every model that does not set them itself. All other options apply to the server, "
      "wherever they\n"
      "appear.\n\n"
      "```sh\n"
      "portico serve --dtype float32 --model-path /models/Qwen3-0.6B --served-model-name chat \\\n"
      "              --model-path /models/all-MiniLM-L6-v2 --max-queued-requests 64 --port 8000\n"
      "```\n\n"
      "A file lists models under `models`; options outside the list apply to every model. On the "
      "command line\n"
      "such an option without a `--model-path` overrides that of all listed models.\n\n"
      "```yaml\n"
      "dtype: float32\n"
      "port: 8000\n"
      "models:\n"
      "  - model-path: /models/Qwen3-0.6B\n"
      "    served-model-name: chat\n"
      "  - model-path: /models/all-MiniLM-L6-v2\n"
      "    max-queued-requests: 64\n"
      "```\n\n"
      "Two models with the same name are an error, as is the same path twice without names. With "
      "several models an\n"
      "option must not be given twice for one of them, since the second may have been meant for "
      "another model, and\n"
      "all models are named in one place: on the command line or in the file. Models without "
      "`--threads` share the\n"
      "cores evenly. They load one after the other, so that each sizes its KV cache by the memory "
      "that the previous\n"
      "ones have left; the server is ready when all are loaded. docs/api.md describes what `model` "
      "does in each route.\n";
  std::string_view group;
  for (const Option& option : ServeOptionTable()) {
    if (option.group != group) {
      group = option.group;
      fmt::format_to(std::back_inserter(out),
                     "\n## {}\n\n| option | default | meaning |\n|---|---|---|\n", group);
    }
    AppendMarkdown(option, &out);
  }
  out += ForeignFlagsMarkdown();
  return out;
}

Json OptionsAsJson(const ServeOptions& options) {
  JsonObject object;
  const ModelOptions no_model;
  for (const Option& option : ServeOptionTable()) {
    if (option.secret) continue;
    object.emplace_back(
        WithUnderscores(option.name),
        OptionJson(option, options, options.models.empty() ? no_model : options.models.front()));
  }
  JsonArray models;
  for (const ModelOptions& model : options.models) {
    JsonObject fields{{"id", ModelId(model)}};
    for (const Option& option : ServeOptionTable()) {
      if (option.secret || !option.is_model()) continue;
      fields.emplace_back(WithUnderscores(option.name), OptionJson(option, options, model));
    }
    models.push_back(Json(std::move(fields)));
  }
  object.emplace_back("models", Json(std::move(models)));
  return Json(std::move(object));
}

}  // namespace portico
