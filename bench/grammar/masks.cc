// Compiles grammars and walks answers through them: what run.py measures of Portico, and of xgrammar's core with its own reading of
// schemas. Arguments: a tokenizer's path, the rows of logits. Reads lines {"schema": …, "answer": "…", "peer": false}, or with "regex" in
// place of the schema, writes {"compile_ms", "mask_us": [one for each token], "accept_us": […], "masks": "a hash of them", "work": [of each
// mask, as kMaxMaskWork counts it]} or {"error": "…"}; without a peer also {"cpu_ms", "cold_ms", "again_ms"}: processor time of compiling the grammar, writing it and reading
// it, time until a request has the grammar, which another process compiles, and until an equal one has it.
#include <time.h>
#include <xgrammar/xgrammar.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grammar/compile/grammar_compiler.h"
#include "grammar/compile/grammar_pack.h"
#include "grammar/compile/grammar_text.h"
#include "grammar/compile/vocabulary.h"
#include "grammar/mask/compiled_grammar.h"
#include "grammar/mask/mask_tensor.h"
#include "grammar/mask/token_table.h"
#include "text/json.h"
#include "tokenizer/tokenizer.h"

namespace portico::grammar {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Of this thread.
double ProcessorMs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1000 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e6;
}

Json Failed(std::string_view why) { return Json(JsonObject{{"error", Json(std::string(why))}}); }

class Bench {
 public:
  Bench(const Tokenizer& tokenizer, int32_t rows)
      : tokenizer_(tokenizer),
        vocabulary_(MakeVocabulary(tokenizer, rows, {rows - 1})),
        tokens_(MakeTokenizerInfo(vocabulary_)),
        table_(std::make_shared<const TokenTable>(tokens_)),
        compiler_(*CompileProcess::Start(), {}, nullptr),
        model_(*compiler_.AddModel(vocabulary_)) {}

  Json Run(const Json& request) {
    const Json* const schema = request.Find("schema");
    const Json* const peer = request.Find("peer");
    const GrammarText text = schema == nullptr
                                 ? GrammarText{GrammarKind::kRegex, request.GetString("regex")}
                                 : GrammarText{GrammarKind::kJsonSchema, schema->Dump()};
    const bool is_peer = peer != nullptr && peer->is_bool() && peer->as_bool();
    const auto start = Clock::now();
    const double processor_before = ProcessorMs();
    auto compiled = is_peer ? Peer(text) : CompileText(text, vocabulary_, tokens_);
    const double compile_us = Since(start);
    if (!compiled.ok()) return Failed(MessageOf(compiled.status()));
    if (!is_peer && !CompiledGrammar::Read(PackGrammar(*compiled), table_).ok()) {
      return Failed("it cannot be read back");
    }
    const double processor_ms = ProcessorMs() - processor_before;
    Json result = Walk(*compiled, request.GetString("answer"));
    result.as_object().emplace_back("compile_ms", Json(compile_us / 1000));
    if (!is_peer && result.Find("error") == nullptr) {
      result.as_object().emplace_back("cpu_ms", Json(processor_ms));
      // Other bytes each time: the cache has it from the last round.
      GrammarText unseen = text;
      unseen.text += schema == nullptr ? std::string(++runs_, '|') : std::string(++runs_, ' ');
      for (const char* const name : {"cold_ms", "again_ms"}) {
        result.as_object().emplace_back(name, Json(Requested(unseen) / 1000));
      }
    }
    return result;
  }

 private:
  // -1: it is refused.
  double Requested(const GrammarText& text) {
    std::promise<bool> done;
    const auto start = Clock::now();
    compiler_.Compile(*model_, text, [&](const GrammarCompiler::Compiled& compiled) {
      done.set_value(compiled.ok());
    });
    const bool ok = done.get_future().get();
    return ok ? Since(start) : -1;
  }

  StatusOr<xgrammar::CompiledGrammar> Peer(const GrammarText& text) {
    try {
      xgrammar::GrammarCompiler compiler(tokens_, /*max_threads=*/1);
      if (text.kind == GrammarKind::kRegex) return compiler.CompileRegex(text.text);
      return compiler.CompileJSONSchema(text.text, /*any_whitespace=*/true, std::nullopt,
                                        std::nullopt, /*strict_mode=*/false);
    } catch (const std::exception& e) {
      return Error(StatusCode::kInvalidArgument, e.what());
    }
  }

  Json Walk(const xgrammar::CompiledGrammar& grammar, const std::string& answer) {
    std::vector<TokenId> ids;
    tokenizer_.Encode(answer, false, &ids);
    xgrammar::GrammarMatcher matcher(grammar);
    std::vector<uint32_t> mask(MaskWords(vocabulary_.texts.size()));
    MaskTensor tensor(mask);
    JsonArray fills;
    JsonArray accepts;
    JsonArray work;
    uint64_t hash = 14695981039346656037ull;
    for (const TokenId id : ids) {
      auto start = Clock::now();
      matcher.FillNextTokenBitmask(tensor.get());
      fills.emplace_back(Since(start));
      work.emplace_back(matcher.GetWork());
      for (const uint32_t word : mask) hash = (hash ^ word) * 1099511628211ull;
      start = Clock::now();
      if (!matcher.AcceptToken(id))
        return Failed("the answer does not fit: " + answer.substr(0, 80));
      accepts.emplace_back(Since(start));
    }
    if (!matcher.IsCompleted()) return Failed("the answer is not whole: " + answer.substr(0, 80));
    return Json(JsonObject{{"mask_us", Json(std::move(fills))},
                           {"accept_us", Json(std::move(accepts))},
                           {"masks", Json(std::to_string(hash))},
                           {"work", Json(std::move(work))}});
  }

  const Tokenizer& tokenizer_;
  const Vocabulary vocabulary_;
  const xgrammar::TokenizerInfo tokens_;
  const std::shared_ptr<const TokenTable> table_;
  GrammarCompiler compiler_;
  const std::shared_ptr<const GrammarModel> model_;
  size_t runs_ = 0;
};

int Main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto tokenizer = Tokenizer::Load(argv[1]);
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.status() << "\n";
    return 1;
  }
  Bench bench(**tokenizer, std::atoi(argv[2]));
  for (std::string line; std::getline(std::cin, line);) {
    const auto request = Json::Parse(line);
    std::cout << (request.ok() ? bench.Run(*request) : Failed("no JSON")).Dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace portico::grammar

int main(int argc, char** argv) { return portico::grammar::Main(argc, argv); }
