#include "tokenizer/load/gguf_pre_tokenizers.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>

namespace portico::tokenizer {
namespace {

#define PORTICO_SPLIT(regex) \
  R"({"type":"Split","pattern":{"Regex":")" regex R"("},"behavior":"Isolated","invert":false},)"
#define PORTICO_STEPS(splits, use_regex)                                                       \
  R"({"type":"Sequence","pretokenizers":[)" splits                                             \
  R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":)" use_regex \
  "}]}"
#define PORTICO_CONTRACTIONS R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define PORTICO_SPACES R"(\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)"

constexpr std::string_view kGpt2 =
    R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";
constexpr std::string_view kLlama3 = PORTICO_STEPS(
    PORTICO_SPLIT(
        PORTICO_CONTRACTIONS
        R"(|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|)" PORTICO_SPACES),
    "false");
constexpr std::string_view kQwen2 = PORTICO_STEPS(
    PORTICO_SPLIT(
        PORTICO_CONTRACTIONS
        R"(|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|)" PORTICO_SPACES),
    "false");
constexpr std::string_view kGpt4o = PORTICO_STEPS(
    PORTICO_SPLIT(
        R"([^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+)" PORTICO_CONTRACTIONS
        R"(?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*)" PORTICO_CONTRACTIONS
        R"(?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|)" PORTICO_SPACES),
    "false");
constexpr std::string_view kStarcoder = PORTICO_STEPS(PORTICO_SPLIT(R"(\\p{N})"), "true");
constexpr std::string_view kDeepSeekCoder = PORTICO_STEPS(
    PORTICO_SPLIT(R"([\r\n])") PORTICO_SPLIT(R"(\\s?\\p{L}+)") PORTICO_SPLIT(R"(\\s?\\p{P}+)")
        PORTICO_SPLIT("[一-龥ࠀ-一가-퟿]+") PORTICO_SPLIT(R"(\\p{N})"),
    "false");
constexpr std::string_view kDeepSeekLlm = PORTICO_STEPS(
    PORTICO_SPLIT(R"([\r\n])") PORTICO_SPLIT(
        "\\\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚ"
        "Ḁ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\\\\x{1F7D}ᾀ-ᾴᾶ-ᾼ\\\\x{1FBE}ῂ-ῄῆ-ῌῐ-\\\\x{1FD3}ῖ-\\\\x{1FDB}ῠ-Ῥῲ-ῴῶ-"
        "ῼℂℇℊ-ℓℕℙ-ℝℤ\\\\x{2126}ℨ\\\\x{212A}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻ"
        "Ȿ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+")
        PORTICO_SPLIT("\\\\s?[!-/:-~！-／：-～‘-‟　-。]+") PORTICO_SPLIT(R"(\\s+$)")
            PORTICO_SPLIT("[一-龥ࠀ-一가-퟿]+") PORTICO_SPLIT(R"(\\p{N}+)"),
    "false");
constexpr std::string_view kDeepSeekV3 = PORTICO_STEPS(
    PORTICO_SPLIT(R"(\\p{N}{1,3})") PORTICO_SPLIT("[一-龥぀-ゟ゠-ヿ]+") PORTICO_SPLIT(
        R"([!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|)"
        R"( ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+)"),
    "false");
constexpr std::string_view kFalcon = PORTICO_STEPS(
    PORTICO_SPLIT(R"([\\p{P}\\$\\+<=>\\^~\\|`]+)") PORTICO_SPLIT(
        R"('s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S))")
        PORTICO_SPLIT("[0-9][0-9][0-9]"),
    "false");

#undef PORTICO_SPLIT
#undef PORTICO_STEPS
#undef PORTICO_CONTRACTIONS
#undef PORTICO_SPACES

struct Row {
  std::string_view name;
  GgufPreTokenizer kind;
};

constexpr GgufPreTokenizer kLlamaKind = {kLlama3, true, false, true};

constexpr std::array kRows = {
    Row{"gpt-2", {kGpt2}},
    Row{"gpt2", {kGpt2}},
    Row{"phi-2", {kGpt2}},
    Row{"mpt", {kGpt2}},
    Row{"olmo", {kGpt2}},
    Row{"dbrx", {kLlama3}},
    Row{"smaug-bpe", {kLlama3}},
    Row{"llama-bpe", kLlamaKind},
    Row{"llama3", kLlamaKind},
    Row{"llama-v3", kLlamaKind},
    Row{"qwen2", {kQwen2, false, true}},
    Row{"deepseek-r1-qwen", {kQwen2, false, true}},
    Row{"stablelm2", {kQwen2}},
    Row{"gpt-4o", {kGpt4o}},
    Row{"starcoder", {kStarcoder}},
    Row{"refact", {kStarcoder}},
    Row{"command-r", {kStarcoder}},
    Row{"smollm", {kStarcoder}},
    Row{"codeshell", {kStarcoder}},
    Row{"exaone", {kStarcoder}},
    Row{"deepseek-coder", {kDeepSeekCoder}},
    Row{"deepseek-llm", {kDeepSeekLlm}},
    Row{"deepseek-v3", {kDeepSeekV3}},
    Row{"falcon", {kFalcon}},
};

}  // namespace

StatusOr<GgufPreTokenizer> FindGgufPreTokenizer(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.kind;
  }
  return Error(StatusCode::kUnimplemented,
               "the GGUF file's pre-tokenizer '" + std::string(name) +
                   "' is unknown; place a tokenizer.json next to the file");
}

}  // namespace portico::tokenizer
