#include "message/sglang/sampling.h"

#include <fmt/format.h>

#include <algorithm>

namespace portico::sglang {
namespace {

using S = WireSampling;
using W = msgpack::Writer*;

bool Always(const S&) { return true; }

void WriteStrings(std::span<const std::string> texts, W w) {
  w->Array(texts.size());
  for (const std::string& text : texts) w->Str(text);
}

// The scheduler looks for a stop string in the text of so many tokens. A token is a byte at least, so bytes are enough
// whatever the tokenizer (upstream's Rust server takes the same bound).
int64_t LongestBytes(std::span<const std::string> texts) {
  size_t longest = 0;
  for (const std::string& text : texts) longest = std::max(longest, text.size());
  return static_cast<int64_t>(longest);
}

// What a stop pattern may match at most. Patterns are not taken apart here: the scheduler then looks at the whole
// answer, as it does for one with an unbounded repeat.
constexpr int64_t kUnboundedPattern = int64_t{1} << 30;

constexpr PlanField<S> kTable[] = {
    {"max_new_tokens", "int|nil", Always,
     [](const S& s, W w) { s.max_new_tokens ? w->Int(*s.max_new_tokens) : w->Nil(); }},
    {"stop_token_ids", "set<int>|nil", [](const S& s) { return !s.stop_token_ids.empty(); },
     [](const S& s, W w) {
       w->Array(s.stop_token_ids.size());
       for (const TokenId id : s.stop_token_ids) w->Int(id);
     }},
    {"temperature", "float", Always, [](const S& s, W w) { w->Float(s.temperature); }},
    {"top_p", "float", Always, [](const S& s, W w) { w->Float(s.top_p); }},
    {"top_k", "int", Always, [](const S& s, W w) { w->Int(s.top_k); }},
    {"min_p", "float", Always, [](const S& s, W w) { w->Float(s.min_p); }},
    {"frequency_penalty", "float", Always, [](const S& s, W w) { w->Float(s.frequency_penalty); }},
    {"presence_penalty", "float", Always, [](const S& s, W w) { w->Float(s.presence_penalty); }},
    {"repetition_penalty", "float", Always,
     [](const S& s, W w) { w->Float(s.repetition_penalty); }},
    {"min_new_tokens", "int", Always, [](const S& s, W w) { w->Int(s.min_new_tokens); }},
    {"n", "int", Always, [](const S&, W w) { w->Int(1); }},
    {"json_schema", "str|nil", [](const S& s) { return s.json_schema != nullptr; },
     [](const S& s, W w) { w->Str(*s.json_schema); }},
    {"regex", "str|nil", [](const S& s) { return s.regex != nullptr; },
     [](const S& s, W w) { w->Str(*s.regex); }},
    {"ebnf", "str|nil", [](const S& s) { return s.ebnf != nullptr; },
     [](const S& s, W w) { w->Str(*s.ebnf); }},
    {"structural_tag", "str|nil", [](const S& s) { return s.structural_tag != nullptr; },
     [](const S& s, W w) { w->Str(*s.structural_tag); }},
    {"ignore_eos", "bool", Always, [](const S& s, W w) { w->Bool(s.ignore_eos); }},
    {"skip_special_tokens", "bool", Always,
     [](const S& s, W w) { w->Bool(s.skip_special_tokens); }},
    {"spaces_between_special_tokens", "bool", Always, [](const S&, W w) { w->Bool(true); }},
    {"no_stop_trim", "bool", Always, [](const S& s, W w) { w->Bool(s.no_stop_trim); }},
    {"stream_interval", "int|nil", [](const S& s) { return s.stream_interval.has_value(); },
     [](const S& s, W w) { w->Int(*s.stream_interval); }},
    {"logit_bias", "map<str,float>|nil", [](const S& s) { return !s.logit_bias.empty(); },
     [](const S& s, W w) {
       w->Map(s.logit_bias.size());
       for (const auto& [token, bias] : s.logit_bias) {
         w->Str(fmt::format("{}", token));
         w->Float(static_cast<double>(bias));
       }
     }},
    {"sampling_seed", "int|nil", [](const S& s) { return s.seed.has_value(); },
     [](const S& s, W w) { w->Int(*s.seed); }},
    {"custom_params",
     "map<str,bool|int|float|str|list<bool|int|float|str|nil>|map<str,bool|int|float|str|nil>|nil>|"
     "nil map<str,any>|nil",
     [](const S& s) { return !s.custom_params.empty(); },
     [](const S& s, W w) { w->Raw(s.custom_params); }},
    {"stop_strs", "str|list<str>|nil list<str>|nil", Always,
     [](const S& s, W w) { WriteStrings(s.stop_strs, w); }},
    {"stop_regex_strs", "str|list<str>|nil list<str>|nil", Always,
     [](const S& s, W w) { WriteStrings(s.stop_regex_strs, w); }},
    {"stop_str_max_len", "int", Always, [](const S& s, W w) { w->Int(LongestBytes(s.stop_strs)); }},
    {"stop_regex_max_len", "int", Always,
     [](const S& s, W w) { w->Int(s.stop_regex_strs.empty() ? 0 : kUnboundedPattern); }},
    {"is_normalized", "bool", Always, [](const S&, W w) { w->Bool(true); }},
};

}  // namespace

StatusOr<StructPlan<WireSampling>> SamplingPlan(const Schema& schema) {
  PORTICO_ASSIGN_OR_RETURN(auto plan,
                           StructPlan<WireSampling>::Make(schema, "SamplingParams", kTable));
  // Without these the scheduler takes them for raw parameters, and dies of them.
  for (const std::string_view needed : {"is_normalized", "stop_strs", "stop_regex_strs"}) {
    if (plan.Has(needed)) continue;
    return Error(StatusCode::kFailedPrecondition, fmt::format("SGLang {} has no SamplingParams.{}",
                                                              schema.sglang_version(), needed));
  }
  return plan;
}

}  // namespace portico::sglang
