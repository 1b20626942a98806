// Test helper: questions to the demo model, as its chat template and tokenizer make them of a
// person's words, and its greedy answers.
#pragma once

#include <string>
#include <vector>

#include "base/source_dir_for_test.h"
#include "message/sampling.h"

namespace portico::llama {

inline std::string DemoFolder() { return SourceDir() + "/models/demo"; }
inline constexpr TokenId kDemoEnd = 3066;  // <|im_end|>

struct DemoQuestion {
  std::vector<TokenId> prompt;
  std::vector<TokenId> answer;  // without kDemoEnd
};

inline std::vector<DemoQuestion> DemoQuestions() {
  const auto user = [](std::vector<TokenId> words) {
    std::vector<TokenId> prompt = {3065, 271, 198};  // <|im_start|>user\n
    prompt.insert(prompt.end(), words.begin(), words.end());
    for (const TokenId token : {kDemoEnd, 198, 3065, 270, 198}) prompt.push_back(token);
    return prompt;
  };
  return {
      // What is 7 plus 5? 7 plus 5 is 12.
      {user({336, 278, 220, 22, 349, 220, 20, 30}), {22, 349, 220, 20, 278, 220, 16, 17, 13}},
      // What is the capital of France? The capital of France is Paris.
      {user({336, 278, 290, 356, 303, 1681, 30}), {315, 356, 303, 1681, 278, 2877, 13}},
      // How many centimetres are 3 metres? 3 metres are 300 centimetres.
      {user({454, 510, 826, 327, 220, 18, 702, 30}), {18, 702, 327, 220, 18, 15, 15, 826, 13}},
      // Who are you? I am Portico's demo model, a tiny language model.
      {user({1000, 327, 345, 30}), {40, 410, 716, 478, 444, 422, 11, 275, 447, 635, 422, 13}},
      // what is 45 minus 18 – 45 minus 18 is 27.
      {user({474, 278, 220, 19, 20, 350, 220, 16, 23}),
       {19, 20, 350, 220, 16, 23, 278, 220, 17, 22, 13}},
  };
}

}  // namespace portico::llama
