// Reads lines of JSON: {"schema": …, "texts": ["…"], "made": 3, "seed": 1}. For each it writes {"error": "…"} or
// {"takes": [true], "made": ["…"]}: whether the schema's grammar takes each text whole, and as many texts as asked for, whose
// tokens were drawn at random from the masks. Those that were not finished after a while are left out. Tokens are bytes and a few
// longer ones.
#include <algorithm>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "grammar/grammar_for_test.h"
#include "grammar/mask/mask_tensor.h"
#include "text/json.h"

namespace portico::grammar {
namespace {

constexpr int kMostTokens = 3000;
constexpr int kLongAnswer = 60;

// Empty: not finished.
std::string Draw(const xgrammar::CompiledGrammar& grammar, std::mt19937_64& random) {
  xgrammar::GrammarMatcher matcher(grammar);
  const Vocabulary& vocabulary = ByteVocabulary();
  std::vector<uint32_t> mask(MaskWords(vocabulary.texts.size()));
  MaskTensor tensor(mask);
  std::string text;
  for (int step = 0; step < kMostTokens; ++step) {
    std::fill(mask.begin(), mask.end(), ~0u);
    matcher.FillNextTokenBitmask(tensor.get());
    std::vector<TokenId> allowed;
    std::vector<TokenId> ending;
    for (size_t id = 0; id < vocabulary.texts.size(); ++id) {
      if ((mask[id / 32] >> (id % 32) & 1) == 0) continue;
      const auto token = static_cast<TokenId>(id);
      // Most bytes are parts of long characters, and white space can go on for ever.
      const bool rare =
          (id >= 0x80 && id < 256) || id == ' ' || id == '\n' || id == '\r' || id == '\t';
      if (rare && random() % 16 != 0 && !(id >= 0x80 && id < 0xC0)) continue;
      allowed.push_back(token);
      if (token == kTestEnd ||
          std::string_view("\"]},:").find(static_cast<char>(id)) != std::string_view::npos) {
        if (id < 257) ending.push_back(token);
      }
    }
    if (allowed.empty()) continue;
    const auto& from =
        step > kLongAnswer && !ending.empty() && random() % 4 != 0 ? ending : allowed;
    const TokenId token = from[random() % from.size()];
    if (!matcher.AcceptToken(token)) {
      std::cerr << "a token of the mask was refused: " << token << " behind " << text << "\n";
      std::abort();
    }
    if (token == kTestEnd) return text;
    text += vocabulary.texts[static_cast<size_t>(token)];
  }
  return "";
}

Json Answer(const Json& question) {
  JsonObject answer;
  GrammarText text{GrammarKind::kJsonSchema, question.Find("schema")->Dump()};
  const auto compiled = CompiledForTest(text);
  if (!compiled.ok()) {
    answer.emplace_back("error", Json(std::string(MessageOf(compiled.status()))));
    return Json(std::move(answer));
  }
  JsonArray takes;
  for (const Json& one : question.Find("texts")->as_array()) {
    takes.push_back(Json(Takes(*compiled, one.as_string())));
  }
  answer.emplace_back("takes", Json(std::move(takes)));
  std::mt19937_64 random(static_cast<uint64_t>(question.GetInt("seed", 0)));
  JsonArray made;
  for (int64_t i = question.GetInt("made", 0); i > 0; --i) {
    std::string drawn = Draw(*compiled, random);
    if (!drawn.empty()) made.push_back(Json(std::move(drawn)));
  }
  answer.emplace_back("made", Json(std::move(made)));
  return Json(std::move(answer));
}

}  // namespace
}  // namespace portico::grammar

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto question = portico::Json::Parse(line);
    if (!question.ok()) return 2;
    std::cout << portico::grammar::Answer(*question).Dump() << std::endl;
  }
  return 0;
}
