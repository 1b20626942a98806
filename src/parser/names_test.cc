// The names of parsers, as of SGLang 0.5.23, vLLM 0.33.0 and smg's crates 1.10.0.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "parser/declared/families.h"
#include "parser/reasoning/families.h"
#include "parser/tool/families.h"

namespace portico::parser {
namespace {

constexpr char kWeatherTools[] = R"(
  apertus2509 beam cohere_command4 deepseekv3 deepseekv31 deepseekv32 deepseekv4 deepseekv41 dots gemma4 gigachat3 gigachat35 glm
  glm45 glm47 gpt-oss hermes hunyuan inkling interns1 iquest_q1 k2_horizon kimi_k2 kimi_k3 lfm2 ling3 llama3 mimo minicpm5
  minimax-m2 minimax-m3 mistral muse nanbeige poolside_v1 pythonic qwen qwen25 qwen3_coder response_template spark25 step3 step3p5
  trinity

  apertus beam cohere_command3 cohere_command4 deepseek_v3 deepseek_v31 deepseek_v32 deepseek_v4 deepseek_v41 dots ernie45
  functiongemma gemma4 gigachat3 glm45 glm47 granite granite-20b-fc granite4 hermes hf hunyuan_a13b hy_v3 hy_v4 inkling internlm
  jamba k2_horizon kimi_k2 kimi_k3 lfm2 ling3 llama3_json llama4_json llama4_pythonic longcat mimo minicpm5 minimax_m2 minimax_m3
  mistral muse muse_glimmer musespark1x olmo3 openai phi4_mini_json plamo3 poolside_v1 pythonic qwen3_coder qwen3_json qwen3_xml
  seed_oss step3 step3p5 step5 xlam

  cohere deepseek deepseek31 deepseek32 deepseek_v4 deepseek_v41 gemma4 glm45_moe glm47_moe harmony hy_v4 inkling json kimi_k3
  kimik2 llama minimax_m2 minimax_m3 mistral nemotron passthrough pythonic qwen qwen_coder qwen_xml sarashina step3
)";

constexpr char kReasoning[] = R"(
  apertus2509 beam cohere_command4 deepseek-r1 deepseek-v3 deepseek-v4 deepseek-v41 dots gemma4 gigachat35 glm45 gpt-oss
  granite_thinking_parser hunyuan inkling interns1 iquest_q1 k2_horizon kimi kimi_k2 kimi_k3 ling3 mimo minimax
  minimax-append-think minimax-m3 mistral muse nanbeige nemotron_3 poolside_v1 qwen3 qwen3-thinking response_template step3 step3p5

  cohere_command3 deepseek_r1 deepseek_v3 deepseek_v4 deepseek_v41 ernie45 glm47 granite hf holo2 hunyuan_a13b hy_v3 hy_v4 minicpmv
  minimax_m2 minimax_m2_append_think nemotron_v3 olmo3 openai_gptoss plamo3 seed_oss step5

  base cohere_cmd deepseek_v31 kimi_k25 kimi_thinking nano_v3 passthrough qwen3_thinking
)";

TEST(NamesTest, EveryNameThatSglangVllmAndSmgHaveIsTaken) {
  std::istringstream tools(kWeatherTools);
  for (std::string name; tools >> name;) {
    EXPECT_TRUE(IsDeclaredName(name) || FindToolFamily(name) != nullptr) << name;
  }
  std::istringstream reasoning(kReasoning);
  for (std::string name; reasoning >> name;) {
    EXPECT_TRUE(IsDeclaredName(name) || FindReasoning(name) != nullptr) << name;
  }
}

}  // namespace
}  // namespace portico::parser
