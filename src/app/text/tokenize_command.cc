#include "app/text/tokenize_command.h"

#include <simdjson.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>

#include "app/command_tools.h"
#include "app/text/line_io.h"
#include "app/text/text_command.h"
#include "app/text/tokenize_component.h"
#include "app/text/tokenize_explain.h"
#include "text/json_writer.h"
#include "tokenizer/tokenizer.h"

namespace portico {
namespace {

void WriteSpans(const std::vector<Span>& spans, JsonWriter* w) {
  w->BeginArray();
  for (Span s : spans) w->BeginArray().Int(s.begin).Int(s.end).EndArray();
  w->EndArray();
}

template <typename T>
void WriteInts(const std::vector<T>& numbers, JsonWriter* w) {
  w->BeginArray();
  for (T n : numbers) w->Int(n);
  w->EndArray();
}

void WriteOptional(const std::vector<int32_t>& numbers, JsonWriter* w) {
  w->BeginArray();
  for (int32_t n : numbers) n == Encoding::kNone ? w->Null() : w->Int(n);
  w->EndArray();
}

// The members of an encoding, without the braces.
void WriteEncoding(const Encoding& e, JsonWriter* w) {
  WriteInts(e.ids, &w->Key("ids"));
  w->Key("tokens").BeginArray();
  for (std::string_view token : e.tokens) w->String(token);
  w->EndArray();
  WriteSpans(e.offsets, &w->Key("offsets"));
  WriteInts(e.type_ids, &w->Key("type_ids"));
  WriteInts(e.attention_mask, &w->Key("attention_mask"));
  WriteInts(e.special_tokens_mask, &w->Key("special_tokens_mask"));
  WriteOptional(e.word_ids, &w->Key("word_ids"));
  WriteOptional(e.sequence_ids, &w->Key("sequence_ids"));
  w->Key("overflowing").BeginArray();
  for (const Encoding& part : e.overflowing) {
    w->BeginObject();
    WriteEncoding(part, w);
    w->EndObject();
  }
  w->EndArray();
}

// Answers the requests of --jsonl.
class LineTokenizer {
 public:
  LineTokenizer(const Tokenizer& tokenizer, bool truncation_padding)
      : tokenizer_(tokenizer), truncation_padding_(truncation_padding) {}

  bool Answer(InputLine line, std::string* out) {
    JsonWriter w(out);
    simdjson::dom::object request;
    if (!ReadRequest(line, &parser_, &request, &w)) return false;
    std::string_view text;
    if (request["text"].get(text)) {
      w.Key("error").String("the request needs a \"text\"").EndObject();
      return true;
    }
    if (Status status = AnswerText(request, text, &w); !status.ok()) {
      w.Key("error").String(MessageOf(status));
    }
    w.EndObject();
    return true;
  }

 private:
  static bool Flag(simdjson::dom::object request, std::string_view key, bool fallback) {
    bool value = fallback;
    return request[key].get(value) ? fallback : value;
  }

  Status AnswerText(simdjson::dom::object request, std::string_view text, JsonWriter* w) {
    Tokenizer::EncodeOptions options;
    options.add_special_tokens = Flag(request, "add_special_tokens", true);
    options.parse_special = Flag(request, "parse_special", true);
    options.truncation_and_padding = truncation_padding_;
    std::string_view pair;
    bool has_pair = !request["pair"].get(pair);
    if (has_pair || Flag(request, "full", false)) {
      PORTICO_ASSIGN_OR_RETURN(Encoding encoding,
                               tokenizer_.EncodeFull(text, has_pair ? &pair : nullptr, options));
      WriteEncoding(encoding, w);
      return OkStatus();
    }
    ids_.clear();
    PORTICO_RETURN_IF_ERROR(tokenizer_.EncodeWith(text, options, &ids_));
    WriteInts(ids_, &w->Key("ids"));
    return OkStatus();
  }

  const Tokenizer& tokenizer_;
  bool truncation_padding_;
  simdjson::dom::parser parser_;
  std::vector<TokenId> ids_;
};

// One colour after the other, so that neighbouring tokens can be told apart.
std::string Coloured(const std::string& text, size_t index) {
  constexpr int kColours[] = {44, 42, 45, 43, 46, 41};
  return "\033[" + std::to_string(kColours[index % std::size(kColours)]) + ";97m" + text +
         "\033[0m";
}

std::string Visible(std::string_view text) {
  std::string out;
  for (char c : text) c == '\n' ? out.append("\\n") : (out.push_back(c), out);
  return out;
}

int PrintForPerson(const Tokenizer& tokenizer, const std::string& text, bool add_special_tokens,
                   bool ids_only) {
  Tokenizer::EncodeOptions options;
  options.add_special_tokens = add_special_tokens;
  StatusOr<Encoding> encoding = tokenizer.EncodeFull(text, nullptr, options);
  if (!encoding.ok()) {
    return Fail("tokenize", MessageOf(encoding.status()));
  }
  if (ids_only) {
    for (size_t i = 0; i < encoding->size(); ++i) std::cout << (i ? " " : "") << encoding->ids[i];
    std::cout << "\n";
    return 0;
  }
  bool colour = isatty(STDOUT_FILENO) != 0;
  for (size_t i = 0; colour && i < encoding->size(); ++i) {
    Span s = encoding->byte_offsets[i];
    std::string part =
        s.begin < s.end ? text.substr(s.begin, s.end - s.begin) : std::string(encoding->tokens[i]);
    std::cout << Coloured(Visible(part), i);
  }
  if (colour) std::cout << "\n\n";
  for (size_t i = 0; i < encoding->size(); ++i) {
    Span s = encoding->offsets[i];
    std::printf("%8d  %5u..%-5u  %s\n", encoding->ids[i], s.begin, s.end,
                Visible(encoding->tokens[i]).c_str());
  }
  std::fflush(stdout);
  std::cout << encoding->size() << " tokens, " << text.size() << " bytes\n";
  return 0;
}

}  // namespace

int TokenizeCommand(int argc, char** argv) {
  CLI::App app{"Text to token ids.", "portico tokenize"};
  std::string path;
  std::string text;
  bool jsonl = false;
  bool component = false;
  bool truncation_padding = false;
  bool no_special = false;
  bool ids_only = false;
  bool explain = false;
  TokenizerLoadOptions load;
  AddTokenizerPath(&app, &path);
  AddAddedTokens(&app, &load.added_tokens);
  AddJsonLines(&app, &jsonl);
  app.add_flag("--component", component, "Requests contain a normalizer, pre_tokenizer or decoder");
  app.add_flag("--truncation-padding", truncation_padding,
               "Apply the file's truncation and padding");
  app.add_flag("--no-special-tokens", no_special, "Add no special tokens");
  app.add_flag("--ids", ids_only, "Print the ids only");
  app.add_flag("--explain", explain,
               "Describe the tokenizer's components, where each added token is from, and where "
               "transformers differs");
  app.add_option("text", text, "The text; by default standard input");
  app.footer(
      "Examples:\n"
      "  portico tokenize --tokenizer-path models/demo 'Hello, world'\n"
      "  portico tokenize --tokenizer-path tokenizer.json --ids < prompt.txt\n"
      "  echo '{\"id\":1,\"text\":\"Hi\",\"full\":true}' | portico tokenize --tokenizer-path DIR "
      "--jsonl");
  constexpr std::string_view kQuote = "a text of several words must be in quotes";
  if (std::optional<int> status = ParseWords(&app, argc, argv, kQuote)) return *status;
  if (component) return TokenizeComponents();
  if (path.empty()) {
    return Fail("tokenize", "--tokenizer-path is required (--help shows examples)", kUsageError);
  }
  StatusOr<std::shared_ptr<const Tokenizer>> tokenizer = Tokenizer::Load(path, load);
  if (!tokenizer.ok()) {
    return FailToRead("tokenize", tokenizer.status());
  }
  if (explain) {
    std::cout << (*tokenizer)->Describe() << "\n";
    for (const std::string& line : AddedTokenOrigins(**tokenizer)) std::cout << line << "\n";
    for (const std::string& difference : AutoTokenizerDifferencesOf(path)) {
      std::cout << difference << "\n";
    }
    return 0;
  }
  if (jsonl) {
    LineTokenizer lines(**tokenizer, truncation_padding);
    return AnswerEachLine("tokenize", stdin, stdout, [&](InputLine line, std::string* out) {
      return lines.Answer(line, out);
    });
  }
  if (app.count("text") == 0) {
    text.assign(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  }
  return PrintForPerson(**tokenizer, text, !no_special, ids_only);
}

}  // namespace portico
