#include "tokenizer/fused/fused_encoder.h"

#include <optional>

#include "tokenizer/cache/piece_cache.h"
#include "tokenizer/fused/bert_encoder.h"
#include "tokenizer/fused/spm_bpe_encoder.h"
#include "tokenizer/fused/unigram_encoder.h"
#include "tokenizer/model/space_symbol.h"

namespace portico::tokenizer {
namespace {

using N = NormalizerStep::Kind;
using P = PreTokenizerStep::Kind;

constexpr uint32_t kSpaceSymbolPoint = 0x2581;

struct Steps {
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;
};

bool IsSpaceReplacement(const NormalizerStep& step) {
  return step.kind == N::kReplace && step.from == " " && step.to == kSpaceSymbol;
}

// [Prepend "▁"], Replace " " by "▁"; or a Metaspace alone.
std::optional<SpmBpePlan> PlanSpmBpe(const Steps& steps) {
  using Prefix = SpmBpePlan::Prefix;
  using Scheme = PreTokenizerStep::Scheme;
  const std::vector<NormalizerStep>& normalizer = steps.normalizer;
  const std::vector<PreTokenizerStep>& pre = steps.pre_tokenizer;
  SpmBpePlan plan;
  if (normalizer.empty() && pre.size() == 1 && pre[0].kind == P::kMetaspace) {
    if (pre[0].replacement != kSpaceSymbolPoint) return std::nullopt;
    plan.prefix = pre[0].scheme == Scheme::kNever ? Prefix::kNever : Prefix::kUnlessThere;
    plan.only_at_start = pre[0].scheme == Scheme::kFirst;
    plan.split = pre[0].split;
    return plan;
  }
  if (normalizer.empty() || normalizer.size() > 2 || !IsSpaceReplacement(normalizer.back())) {
    return std::nullopt;
  }
  if (normalizer.size() == 2) {
    // What is put in front of a text is replaced too, so either spelling of the space will do.
    const NormalizerStep& first = normalizer[0];
    if (first.kind != N::kPrepend || (first.to != kSpaceSymbol && first.to != " ")) {
      return std::nullopt;
    }
    plan.prefix = Prefix::kAlways;
  }
  // A split at spaces, when there are none any more, leaves the text whole.
  bool whole =
      pre.empty() || (pre.size() == 1 && pre[0].kind == P::kSplitLiteral && pre[0].literal == " ");
  if (!whole) return std::nullopt;
  return plan;
}

}  // namespace

std::unique_ptr<const FusedEncoder> FusedEncoder::Make(const Normalizer* normalizer,
                                                       const PreTokenizer* pre_tokenizer,
                                                       const Model& model,
                                                       std::string_view stored) {
  Steps steps;
  if (normalizer != nullptr) normalizer->AppendSteps(&steps.normalizer);
  if (pre_tokenizer != nullptr) pre_tokenizer->AppendSteps(&steps.pre_tokenizer);
  if (const auto* bpe = dynamic_cast<const Bpe*>(&model)) {
    std::optional<SpmBpePlan> plan = PlanSpmBpe(steps);
    return plan ? SpmBpeEncoder::Make(*bpe, *plan, stored) : nullptr;
  }
  const std::vector<NormalizerStep>& n = steps.normalizer;
  const std::vector<PreTokenizerStep>& p = steps.pre_tokenizer;
  if (const auto* word_piece = dynamic_cast<const WordPiece*>(&model)) {
    if (n.size() != 1 || n[0].kind != N::kBert || p.size() != 1 || p[0].kind != P::kBert) {
      return nullptr;
    }
    return BertEncoder::Make(*normalizer, n[0].accents, *word_piece, stored);
  }
  if (const auto* unigram = dynamic_cast<const Unigram*>(&model)) {
    bool words = n.size() == 1 && n[0].kind == N::kPrecompiled && p.size() == 2 &&
                 p[0].kind == P::kWhitespaceSplit && p[1].kind == P::kMetaspace &&
                 p[1].replacement == kSpaceSymbolPoint && p[1].split &&
                 p[1].scheme == PreTokenizerStep::Scheme::kAlways;
    return words ? UnigramEncoder::Make(*n[0].charsmap, *unigram) : nullptr;
  }
  return nullptr;
}

TextCache* FusedEncoder::raw_texts() const { return Cache()->raw_texts(); }

}  // namespace portico::tokenizer
