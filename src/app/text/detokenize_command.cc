#include "app/text/detokenize_command.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "app/command_tools.h"
#include "app/text/line_io.h"
#include "app/text/text_command.h"
#include "text/json_writer.h"
#include "tokenizer/decode/stream_decoder.h"
#include "tokenizer/tokenizer.h"

namespace portico {
namespace {

// Unknown ids in a warning.
constexpr size_t kNamed = 10;

// Answers the requests of --jsonl.
class LineDetokenizer {
 public:
  explicit LineDetokenizer(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  bool Answer(InputLine line, std::string* out) {
    JsonWriter w(out);
    simdjson::dom::object request;
    if (!ReadRequest(line, &parser_, &request, &w)) return false;
    if (!ReadIds(request)) {
      w.Key("error").String("the request needs \"ids\", a list of numbers").EndObject();
      return true;
    }
    bool skip = false;
    bool stream = false;
    if (request["skip_special_tokens"].get(skip)) skip = false;
    if (request["stream"].get(stream)) stream = false;
    if (stream) {
      WriteDeltas(skip, &w);
    } else {
      w.Key("text").String(tokenizer_.Decode(ids_, skip));
    }
    w.EndObject();
    return true;
  }

 private:
  bool ReadIds(simdjson::dom::object request) {
    simdjson::dom::array list;
    if (request["ids"].get(list)) return false;
    ids_.clear();
    for (simdjson::dom::element item : list) {
      int64_t id = 0;
      if (item.get(id)) return false;
      // What no vocabulary can have is left out of a decode like any other unknown id.
      ids_.push_back(id < 0 || id > INT32_MAX ? -1 : static_cast<TokenId>(id));
    }
    return true;
  }

  void WriteDeltas(bool skip, JsonWriter* w) {
    StreamDecoder decoder(tokenizer_, skip);
    w->Key("deltas").BeginArray();
    for (size_t i = 0; i < ids_.size(); ++i) {
      std::string delta;
      decoder.Push(ids_[i], &delta);
      if (i + 1 == ids_.size()) decoder.Flush(&delta);
      w->String(delta);
    }
    w->EndArray();
  }

  const Tokenizer& tokenizer_;
  simdjson::dom::parser parser_;
  std::vector<TokenId> ids_;
};

// A decode leaves them out, as Hugging Face's tokenizers do.
void WarnOfUnknown(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::string unknown;
  size_t count = 0;
  for (const TokenId id : ids) {
    if (id >= 0 && id < tokenizer.vocab_size()) continue;
    if (++count <= kNamed) unknown += (count == 1 ? "" : ", ") + std::to_string(id);
  }
  if (count == 0) return;
  std::cerr << "portico detokenize: not in the vocabulary (0 to " << tokenizer.vocab_size() - 1
            << "), left out: " << unknown << (count > kNamed ? ", …" : "") << "\n";
}

}  // namespace

int DetokenizeCommand(int argc, char** argv) {
  CLI::App app{"Token ids to text.", "portico detokenize"};
  std::string path;
  std::vector<std::string> words;
  std::vector<TokenId> ids;
  bool jsonl = false;
  bool skip = false;
  TokenizerLoadOptions load;
  AddTokenizerPath(&app, &path)->required();
  AddAddedTokens(&app, &load.added_tokens);
  AddJsonLines(&app, &jsonl);
  app.add_flag("--skip-special-tokens", skip, "Leave special tokens out");
  app.add_option("ids", words, "The ids; by default numbers from standard input");
  app.footer(
      "Examples:\n"
      "  portico detokenize --tokenizer-path models/demo 902 776\n"
      "  echo '{\"id\":1,\"ids\":[902,776],\"stream\":true}' | portico detokenize --jsonl "
      "--tokenizer-path models/demo\n\n"
      "Ids that are not in the vocabulary have no text; they are reported on standard error.");
  if (std::optional<int> status = ParseWords(&app, argc, argv)) return *status;
  for (const std::string& word : words) {
    if (!absl::SimpleAtoi(word, &ids.emplace_back())) {
      return Fail("detokenize", fmt::format("`{}` is not a token id", word), kUsageError);
    }
  }
  StatusOr<std::shared_ptr<const Tokenizer>> tokenizer = Tokenizer::Load(path, load);
  if (!tokenizer.ok()) {
    return FailToRead("detokenize", tokenizer.status());
  }
  if (jsonl) {
    LineDetokenizer lines(**tokenizer);
    return AnswerEachLine("detokenize", stdin, stdout, [&](InputLine line, std::string* out) {
      return lines.Answer(line, out);
    });
  }
  if (ids.empty()) {
    TokenId id = 0;
    while (std::cin >> id) ids.push_back(id);
    if (!std::cin.eof()) {
      return Fail("detokenize", "standard input must have token ids only");
    }
  }
  WarnOfUnknown(**tokenizer, ids);
  std::cout << (*tokenizer)->Decode(ids, skip) << "\n";
  return 0;
}

}  // namespace portico
