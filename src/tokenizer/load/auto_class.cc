#include "tokenizer/load/auto_class.h"

#include <optional>

#include "tokenizer/load/tokenizer_class.h"

namespace portico::tokenizer {
namespace {

using ClassKind = AutoClass::Kind;
using ClassExtras = AutoClass::Extras;
using ClassLast = AutoClass::Last;

// A class that rebuilds, without "Tokenizer".
struct ClassRules {
  std::string_view name = {};
  std::string_view aliases = {};  // other names of it, between spaces
  // Of config.json, whose tokenizer it is if nothing else is said; between spaces.
  std::string_view model_types = {};
  std::string_view without = {};
  std::string_view needed[2] = {};
  std::string_view left_stripped = {};
  ClassExtras extras = ClassExtras::kNone;
  ClassLast last = ClassLast::kNothing;
  bool sets_flags = false;
  bool normalizes = true;
  bool is_unigram = false;
};

constexpr ClassRules kRebuilding[] = {
    {.name = "Bert",
     .aliases = " Lxmert MobileBert SqueezeBert ",
     .model_types =
         " align bark bert blip bros chinese_clip convbert distilbert electra ernie flava "
         "git grounding-dino layoutlm lxmert megatron-bert mm-grounding-dino mobilebert "
         "nezha nomic_bert qdqbert realm retribert squeezebert tvp vilt visual_bert "},
    {.name = "CLIP",
     .model_types = " aimv2 clip clipseg groupvit omdet-turbo oneformer owlv2 owlvit sam3 "
                    "sam3_video xclip ",
     .needed = {"bos_token", "eos_token"}},
    {.name = "CodeGen", .without = "pad_token"},
    {.name = "CodeLlama",
     .model_types = " code_llama ",
     .extras = ClassExtras::kCodeLlama,
     .normalizes = false},
    {.name = "Cohere",
     .model_types = " aya_vision cohere cohere2 ",
     .last = ClassLast::kMakesNamedSpecial},
    {.name = "DebertaV2", .model_types = " deberta-v2 ", .is_unigram = true},
    {.name = "DistilBert"},
    {.name = "GPT2",
     .model_types =
         " blip-2 codegen dbrx emu3 gpt2 gpt_neo gptj hyperclovax_vision_v2 instructblip "
         "instructblipvideo jais2 opt phi starcoder2 ",
     .without = "pad_token"},
    {.name = "GPTNeoX",
     .model_types = " falcon_mamba gpt_neox mamba mamba2 mpt olmo olmoe rwkv xlstm "},
    {.name = "Gemma",
     .model_types = " diffusion_gemma gemma gemma2 gemma3 gemma3_text gemma3n gemma3n_text "
                    "recurrent_gemma shieldgemma2 t5gemma zaya "},
    {.name = "Llama", .model_types = " idefics idefics2 ", .normalizes = false},
    {.name = "MPNet", .model_types = " mpnet ", .left_stripped = "mask_token"},
    {.name = "Qwen2",
     .model_types =
         " audioflamingo3 colqwen2 cosmos3_omni dots3_note fun_asr_nano hunyuan_vl internvl "
         "lighton_ocr moss_transcribe_diarize ovis2 qianfan_ocr qwen2 qwen2_5_omni "
         "qwen2_5_vl qwen2_audio qwen2_moe qwen2_vl qwen3 qwen3_asr qwen3_moe qwen3_next "
         "qwen3_omni_moe qwen3_vl qwen3_vl_moe vibevoice ",
     .last = ClassLast::kAddsNamedAnew},
    {.name = "Qwen3_5",
     .model_types = " qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen4_exp "},
    {.name = "Roberta",
     .aliases = " Bart LED Mvp ",
     .model_types =
         " bart bridgetower clap data2vec-text florence2 ibert led lilt longformer mega mra "
         "mvp roberta roberta-prelayernorm ",
     .needed = {"sep_token", "cls_token"}},
    {.name = "T5",
     .model_types = " mt5 musicgen musicgen_melody switch_transformers t5 ",
     .needed = {"eos_token"},
     .extras = ClassExtras::kT5,
     .is_unigram = true},
    {.name = "Whisper", .model_types = " whisper ", .sets_flags = true},
    {.name = "XLMRoberta",
     .model_types = " gte jina_embeddings_v3 metaclip_2 trocr xlm-roberta xmod ",
     .needed = {"bos_token", "eos_token"},
     .is_unigram = true},
};

// Of transformers' other classes: those that do not read a tokenizer.json …
constexpr std::string_view kForeignClasses =
    " Bartpho BertGeneration BertJapanese Bertweet BioGpt BlenderbotSmall ByT5 CTRL Canine Clvp "
    "Cpm "
    "CpmAnt Dia Esm FSMT FastSpeech2Conformer Flaubert GPTNeoXJapanese GPTSw3 M2M100 Marian Mgpstr "
    "MyT5 PLBart Perceiver Phobert Pop2Piano ProphetNet Rag RoCBert Siglip Speech2Text SpeechT5 "
    "Tapas "
    "Vits Wav2Vec2CTC Wav2Vec2PhonemeCTC XLM ";
// … and those that do. Of what they do by themselves, such as codes of languages, nothing is done here.
constexpr std::string_view kOtherClasses =
    " Albert Barthez BigBird Blenderbot Bloom Camembert ConvBert DPRContextEncoder "
    "DPRQuestionEncoder "
    "DPRReader Deberta Esmc FNet Funnel Herbert Lasr LayoutLMv2 LayoutLMv3 LayoutXLM Luke MBart "
    "MBart50 "
    "MLuke MarkupLM Nllb Nougat OpenAIGPT Parakeet Pegasus PreTrained Reformer RemBert RoFormer "
    "SeamlessM4T Siglip2 Splinter Tipsv2 Udop VideoPrism XGLM XLNet ";

// Types of models whose tokenizer is the tokenizer.json as it is, whatever class is named.
constexpr std::string_view kPlainTypes =
    " EvollaModel aria arctic beam bigbird_pegasus camembertv2-base canary chatlm cohere_asr "
    "ernie4_5 "
    "ernie4_5_moe flex_olmo fuyu glm glm4 glm4_moe glm4_moe_lite glm4v glm4v_moe glm_image glmasr "
    "got_ocr2 gpt_bigcode gradium_phonon_tts granite granitemoe granitemoehybrid granitemoeshared "
    "h2ovl_chat hyperclovax hyperclovax_vlm internlm2 internlm3 iquestcoder jamba kimi_k25 "
    "kimi_linear "
    "kosmos-2 llava llava_next mimo_v2_flash minicpm3 minicpm_ocr minicpmv minicpmv4_6 minicpmv4_7 "
    "minimax_m2 ministral ministral3 mistral mistral3 mistral_large4 mixtral modernbert "
    "modernbert-decoder molmo molmo2 nemo_speechlm nemotron nvfp4 nystromformer olmo2 olmo3 "
    "olmo_hybrid "
    "opencua openvla paddleocr_vl pegasus_x persimmon phi3 phi3_v phimoe pix2struct pixtral "
    "pocket_tts "
    "smolvlm stablelm step3_vl umt5 vipllava voxtral voxtral_realtime xlm-roberta-xl ";
// Types whose own class is taken instead of the one that is named.
constexpr std::string_view kMisnamedTypes =
    " hyperclovax_vision_v2 qwen2 qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen4_exp siglip2 ";
// Those of kPlainTypes whose published folders are known to name a wrong class.
constexpr std::string_view kMisnamedPlainTypes =
    " arctic camembertv2-base chatlm cohere_asr ernie4_5 ernie4_5_moe fuyu h2ovl_chat hyperclovax "
    "hyperclovax_vlm internlm2 internlm3 iquestcoder jamba llava llava_next minicpm3 minicpmv "
    "minimax_m2 modernbert modernbert-decoder molmo molmo2 nemotron nvfp4 opencua openvla "
    "paddleocr_vl "
    "phi3 phi3_v phimoe smolvlm step3_vl vipllava ";
// Types whose class is one of kForeignClasses.
constexpr std::string_view kForeignTypes =
    " bartpho bert-generation bert-japanese bertweet biogpt blenderbot-small byt5 canine clvp cpm "
    "cpmant "
    "ctrl data2vec-audio dia esm fastspeech2_conformer flaubert fsmt gpt-sw3 gpt_neox_japanese "
    "hubert "
    "m2m_100 marian mgp-str myt5 perceiver phobert plbart prophetnet rag roc_bert siglip "
    "speech_to_text "
    "speecht5 tapas unispeech unispeech-sat vits wav2vec2 wav2vec2-bert wav2vec2-conformer "
    "wav2vec2_phoneme xlm ";

bool ListsWord(std::string_view list, std::string_view word) {
  if (word.empty() || word.find(' ') != std::string_view::npos) return false;
  for (size_t at = list.find(word); at != std::string_view::npos; at = list.find(word, at + 1)) {
    const size_t end = at + word.size();
    if (at > 0 && list[at - 1] == ' ' && end < list.size() && list[end] == ' ') return true;
  }
  return false;
}

AutoClass PlainClass() { return AutoClass{.name = "PreTrainedTokenizerFast"}; }

AutoClass ForeignFolder(std::string name, std::string why) {
  return AutoClass{.kind = ClassKind::kForeign, .name = std::move(name), .why = std::move(why)};
}

AutoClass RebuiltClass(const ClassRules& rules) {
  AutoClass made{.kind = ClassKind::kRebuilt,
                 .name = std::string(rules.name) + "Tokenizer",
                 .without = rules.without,
                 .needed = {rules.needed[0], rules.needed[1]},
                 .left_stripped = rules.left_stripped,
                 .extras = rules.extras,
                 .last = rules.last,
                 .sets_flags = rules.sets_flags,
                 .normalizes = rules.normalizes,
                 .is_unigram = rules.is_unigram};
  made.defaults = DefaultTokensOf(made.name);
  return made;
}

// Without "Fast" and "Tokenizer"; "" for no class's name.
std::string_view ShortClassName(std::string_view name) {
  if (name.ends_with("Fast")) name.remove_suffix(4);
  constexpr std::string_view kEnding = "Tokenizer";
  if (!name.ends_with(kEnding)) return {};
  return name.substr(0, name.size() - kEnding.size());
}

AutoClass ForeignClass(std::string_view name) {
  return ForeignFolder(std::string(name), "the class " + std::string(name) +
                                              " of transformers does not read a tokenizer.json");
}

// Nothing for a name that transformers does not know.
std::optional<AutoClass> ClassOfName(std::string_view name) {
  if (name == "TokenizersBackend") return PlainClass();
  const std::string_view known = ShortClassName(name);
  for (const ClassRules& rules : kRebuilding) {
    if (known == rules.name || ListsWord(rules.aliases, known)) return RebuiltClass(rules);
  }
  if (ListsWord(kForeignClasses, known)) return ForeignClass(name);
  if (ListsWord(kOtherClasses, known)) return PlainClass();
  return std::nullopt;
}

std::optional<AutoClass> ClassOfType(std::string_view type) {
  for (const ClassRules& rules : kRebuilding) {
    if (ListsWord(rules.model_types, type)) return RebuiltClass(rules);
  }
  if (ListsWord(kForeignTypes, type)) {
    return ForeignFolder("", "the tokenizer of '" + std::string(type) +
                                 "' models in transformers does not read a tokenizer.json");
  }
  if (ListsWord(kPlainTypes, type)) return PlainClass();
  return std::nullopt;
}

// A tokenizer of the folder's own, in Python.
bool HasOwnCode(const Json& settings) {
  const Json* map = settings.Find("auto_map");
  if (map == nullptr || map->is_null()) return false;
  if (!map->is_object()) return true;
  const Json* tokenizer = map->Find("AutoTokenizer");
  return tokenizer != nullptr && !tokenizer->is_null();
}

}  // namespace

AutoClass FindAutoClass(const Json& settings, const Json& config,
                        const std::function<bool()>& is_byte_level) {
  const std::string said = settings.GetString("tokenizer_class");
  const std::string type = config.GetString("model_type");
  const std::string name = said.empty() ? config.GetString("tokenizer_class") : said;
  const bool misnamed = ListsWord(kMisnamedTypes, type) || ListsWord(kMisnamedPlainTypes, type);
  if (HasOwnCode(settings)) {
    if (!misnamed && !ClassOfType(type) && !ClassOfName(said)) {
      return ForeignFolder(said, "its tokenizer is Python code of its own");
    }
  } else if (!name.empty()) {
    if (ShortClassName(name) == "Llama" && !misnamed && is_byte_level()) return PlainClass();
    if (ListsWord(kPlainTypes, type)) return PlainClass();
    if (ListsWord(kMisnamedTypes, type)) return ClassOfType(type).value_or(PlainClass());
  }
  if (!said.empty()) return ClassOfName(said).value_or(PlainClass());
  if (!name.empty()) {
    if (std::optional<AutoClass> found = ClassOfName(name)) return *std::move(found);
    if (ClassOfType(type)) return PlainClass();
    return ForeignFolder(name, "transformers has no class " + name);
  }
  return ClassOfType(type).value_or(PlainClass());
}

}  // namespace portico::tokenizer
