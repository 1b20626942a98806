#include "tokenizer/load/tokenizer_class.h"

#include <array>
#include <string>

namespace portico::tokenizer {
namespace {

using Defaults = std::pair<std::string_view, std::string_view>;

constexpr std::array<Defaults, 7> kBart = {{{"bos_token", "<s>"},
                                            {"eos_token", "</s>"},
                                            {"unk_token", "<unk>"},
                                            {"pad_token", "<pad>"},
                                            {"sep_token", "</s>"},
                                            {"cls_token", "<s>"},
                                            {"mask_token", "<mask>"}}};
constexpr std::array<Defaults, 5> kBert = {{{"unk_token", "[UNK]"},
                                            {"pad_token", "[PAD]"},
                                            {"sep_token", "[SEP]"},
                                            {"cls_token", "[CLS]"},
                                            {"mask_token", "[MASK]"}}};
constexpr std::array<Defaults, 4> kCpmAnt = {
    {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}}};
constexpr std::array<Defaults, 3> kLasr = {
    {{"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}}};
constexpr std::array<Defaults, 7> kAlbert = {{{"bos_token", "[CLS]"},
                                              {"eos_token", "[SEP]"},
                                              {"unk_token", "<unk>"},
                                              {"pad_token", "<pad>"},
                                              {"sep_token", "[SEP]"},
                                              {"cls_token", "[CLS]"},
                                              {"mask_token", "[MASK]"}}};
constexpr std::array<Defaults, 3> kCodeGen = {{{"bos_token", "<|endoftext|>"},
                                               {"eos_token", "<|endoftext|>"},
                                               {"unk_token", "<|endoftext|>"}}};
constexpr std::array<Defaults, 7> kCpm = {{{"bos_token", "<s>"},
                                           {"eos_token", "</s>"},
                                           {"unk_token", "<unk>"},
                                           {"pad_token", "<pad>"},
                                           {"sep_token", "<sep>"},
                                           {"cls_token", "<cls>"},
                                           {"mask_token", "<mask>"}}};
constexpr std::array<Defaults, 5> kBioGpt = {{{"bos_token", "<s>"},
                                              {"eos_token", "</s>"},
                                              {"unk_token", "<unk>"},
                                              {"pad_token", "<pad>"},
                                              {"sep_token", "</s>"}}};
constexpr std::array<Defaults, 4> kCLIP = {{{"bos_token", "<|startoftext|>"},
                                            {"eos_token", "<|endoftext|>"},
                                            {"unk_token", "<|endoftext|>"},
                                            {"pad_token", "<|endoftext|>"}}};
constexpr std::array<Defaults, 1> kCTRL = {{{"unk_token", "<unk>"}}};
constexpr std::array<Defaults, 3> kCodeLlama = {
    {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}}};
constexpr std::array<Defaults, 7> kDeberta = {{{"bos_token", "[CLS]"},
                                               {"eos_token", "[SEP]"},
                                               {"unk_token", "[UNK]"},
                                               {"pad_token", "[PAD]"},
                                               {"sep_token", "[SEP]"},
                                               {"cls_token", "[CLS]"},
                                               {"mask_token", "[MASK]"}}};
constexpr std::array<Defaults, 5> kEsm = {{{"eos_token", "<eos>"},
                                           {"unk_token", "<unk>"},
                                           {"pad_token", "<pad>"},
                                           {"cls_token", "<cls>"},
                                           {"mask_token", "<mask>"}}};
constexpr std::array<Defaults, 6> kFlaubert = {{{"bos_token", "<s>"},
                                                {"unk_token", "<unk>"},
                                                {"pad_token", "<pad>"},
                                                {"sep_token", "</s>"},
                                                {"cls_token", "</s>"},
                                                {"mask_token", "<special1>"}}};
constexpr std::array<Defaults, 5> kGemma = {{{"bos_token", "<bos>"},
                                             {"eos_token", "<eos>"},
                                             {"unk_token", "<unk>"},
                                             {"pad_token", "<pad>"},
                                             {"mask_token", "<mask>"}}};
constexpr std::array<Defaults, 3> kQwen2 = {{{"eos_token", "<|endoftext|>"},
                                             {"unk_token", "<|endoftext|>"},
                                             {"pad_token", "<|endoftext|>"}}};
constexpr std::array<Defaults, 6> kSeamlessM4T = {{{"bos_token", "<s>"},
                                                   {"eos_token", "</s>"},
                                                   {"unk_token", "<unk>"},
                                                   {"pad_token", "<pad>"},
                                                   {"sep_token", "</s>"},
                                                   {"cls_token", "<s>"}}};
constexpr std::array<Defaults, 2> kTipsv2 = {{{"unk_token", "<unk>"}, {"pad_token", "<pad>"}}};
constexpr std::array<Defaults, 5> kBertGeneration = {{{"bos_token", "<s>"},
                                                      {"eos_token", "</s>"},
                                                      {"unk_token", "<unk>"},
                                                      {"pad_token", "<pad>"},
                                                      {"sep_token", "<::::>"}}};
constexpr std::array<Defaults, 7> kBigBird = {{{"bos_token", "<s>"},
                                               {"eos_token", "</s>"},
                                               {"unk_token", "<unk>"},
                                               {"pad_token", "<pad>"},
                                               {"sep_token", "[SEP]"},
                                               {"cls_token", "[CLS]"},
                                               {"mask_token", "[MASK]"}}};
constexpr std::array<Defaults, 4> kBlenderbotSmall = {{{"bos_token", "__start__"},
                                                       {"eos_token", "__end__"},
                                                       {"unk_token", "__unk__"},
                                                       {"pad_token", "__null__"}}};
constexpr std::array<Defaults, 4> kClvp = {{{"bos_token", "<|endoftext|>"},
                                            {"eos_token", "[STOP]"},
                                            {"unk_token", "[UNK]"},
                                            {"pad_token", "[STOP]"}}};
constexpr std::array<Defaults, 7> kCohere = {{{"bos_token", "<BOS_TOKEN>"},
                                              {"eos_token", "<|END_OF_TURN_TOKEN|>"},
                                              {"unk_token", "<UNK>"},
                                              {"pad_token", "<PAD>"},
                                              {"sep_token", "<SEP>"},
                                              {"cls_token", "<CLS>"},
                                              {"mask_token", "<MASK_TOKEN>"}}};
constexpr std::array<Defaults, 2> kDia = {{{"unk_token", "<pad>"}, {"pad_token", "<pad>"}}};
constexpr std::array<Defaults, 4> kFSMT = {
    {{"bos_token", "<s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}, {"sep_token", "</s>"}}};
constexpr std::array<Defaults, 4> kFastSpeech2Conformer = {{{"bos_token", "<sos/eos>"},
                                                            {"eos_token", "<sos/eos>"},
                                                            {"unk_token", "<unk>"},
                                                            {"pad_token", "<blank>"}}};
constexpr std::array<Defaults, 4> kGPTNeoX = {{{"bos_token", "<|endoftext|>"},
                                               {"eos_token", "<|endoftext|>"},
                                               {"unk_token", "<|endoftext|>"},
                                               {"pad_token", "<|padding|>"}}};
constexpr std::array<Defaults, 5> kHerbert = {{{"unk_token", "<unk>"},
                                               {"pad_token", "<pad>"},
                                               {"sep_token", "</s>"},
                                               {"cls_token", "<s>"},
                                               {"mask_token", "<mask>"}}};
constexpr std::array<Defaults, 6> kMBart50 = {{{"eos_token", "</s>"},
                                               {"unk_token", "<unk>"},
                                               {"pad_token", "<pad>"},
                                               {"sep_token", "</s>"},
                                               {"cls_token", "<s>"},
                                               {"mask_token", "<mask>"}}};
constexpr std::array<Defaults, 7> kMPNet = {{{"bos_token", "<s>"},
                                             {"eos_token", "</s>"},
                                             {"unk_token", "[UNK]"},
                                             {"pad_token", "<pad>"},
                                             {"sep_token", "</s>"},
                                             {"cls_token", "<s>"},
                                             {"mask_token", "<mask>"}}};
constexpr std::array<Defaults, 4> kMgpstr = {
    {{"bos_token", "[GO]"}, {"eos_token", "[s]"}, {"unk_token", "[GO]"}, {"pad_token", "[GO]"}}};
constexpr std::array<Defaults, 4> kPegasus = {{{"eos_token", "</s>"},
                                               {"unk_token", "<unk>"},
                                               {"pad_token", "<pad>"},
                                               {"mask_token", "<mask_2>"}}};
constexpr std::array<Defaults, 4> kProphetNet = {{{"unk_token", "[UNK]"},
                                                  {"pad_token", "[PAD]"},
                                                  {"sep_token", "[SEP]"},
                                                  {"mask_token", "[MASK]"}}};
constexpr std::array<Defaults, 2> kReformer = {{{"eos_token", "</s>"}, {"unk_token", "<unk>"}}};
constexpr std::array<Defaults, 3> kSiglip = {
    {{"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "</s>"}}};
constexpr std::array<Defaults, 4> kUdop = {
    {{"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}, {"sep_token", "</s>"}}};

struct Family {
  std::string_view classes;  // without "Tokenizer", between spaces
  std::span<const Defaults> tokens;
};
const Family kFamilies[] = {
    {" Bart Barthez Bartpho Bertweet Blenderbot Camembert LED LayoutLMv3 LayoutXLM Luke MBart "
     "MLuke MarkupLM Mvp Nllb PLBart Phobert Roberta XLMRoberta ",
     kBart},
    {" Bert BertJapanese ConvBert DPRContextEncoder DPRQuestionEncoder DPRReader DistilBert "
     "LayoutLMv2 Lxmert MobileBert RoCBert RoFormer Splinter SqueezeBert Tapas ",
     kBert},
    {" CpmAnt Nougat Speech2Text SpeechT5 Wav2Vec2CTC Wav2Vec2PhonemeCTC ", kCpmAnt},
    {" Lasr Marian T5 VideoPrism ", kLasr},
    {" Albert FNet RemBert ", kAlbert},
    {" CodeGen GPT2 Whisper ", kCodeGen},
    {" Cpm Funnel XLNet ", kCpm},
    {" BioGpt M2M100 ", kBioGpt},
    {" CLIP GPTNeoXJapanese ", kCLIP},
    {" CTRL OpenAIGPT ", kCTRL},
    {" CodeLlama Llama ", kCodeLlama},
    {" Deberta DebertaV2 ", kDeberta},
    {" Esm Esmc ", kEsm},
    {" Flaubert XLM ", kFlaubert},
    {" Gemma Siglip2 ", kGemma},
    {" Qwen2 Qwen3_5 ", kQwen2},
    {" SeamlessM4T XGLM ", kSeamlessM4T},
    {" Tipsv2 Vits ", kTipsv2},
    {" BertGeneration ", kBertGeneration},
    {" BigBird ", kBigBird},
    {" BlenderbotSmall ", kBlenderbotSmall},
    {" Clvp ", kClvp},
    {" Cohere ", kCohere},
    {" Dia ", kDia},
    {" FSMT ", kFSMT},
    {" FastSpeech2Conformer ", kFastSpeech2Conformer},
    {" GPTNeoX ", kGPTNeoX},
    {" Herbert ", kHerbert},
    {" MBart50 ", kMBart50},
    {" MPNet ", kMPNet},
    {" Mgpstr ", kMgpstr},
    {" Pegasus ", kPegasus},
    {" ProphetNet ", kProphetNet},
    {" Reformer ", kReformer},
    {" Siglip ", kSiglip},
    {" Udop ", kUdop},
};

}  // namespace

std::span<const std::pair<std::string_view, std::string_view>> DefaultTokensOf(
    std::string_view tokenizer_class) {
  std::string name(tokenizer_class);
  for (std::string_view ending : {"Fast", "Tokenizer"}) {
    if (!name.ends_with(ending)) {
      if (ending == "Tokenizer") return {};
      continue;
    }
    name.resize(name.size() - ending.size());
  }
  if (name.empty() || name.find(' ') != std::string::npos) return {};
  for (const Family& family : kFamilies) {
    if (family.classes.find(" " + name + " ") != std::string_view::npos) return family.tokens;
  }
  return {};
}

}  // namespace portico::tokenizer
