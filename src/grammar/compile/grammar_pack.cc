#include "grammar/compile/grammar_pack.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

// The library's own headers, as it compiles them (CMakeLists.txt).
#include "compiled_grammar_impl.h"
#include "grammar_impl.h"
#include "support/json_parse.h"
#include "support/json_serializer.h"

namespace xgrammar {

// Defined there, and declared for friends only.
picojson::value SerializeJSONValue(const CompiledGrammar::Impl& impl);
std::optional<SerializationError> DeserializeJSONValue(CompiledGrammar::Impl* impl,
                                                       const picojson::value& json_value,
                                                       const TokenizerInfo& tokenizer_info);
std::size_t MemorySize(const CompiledGrammar::Impl& impl);

}  // namespace xgrammar

namespace portico::grammar {
namespace {

using Automata = std::vector<std::optional<xgrammar::CompactFSMWithStartEndWithSize>>;

constexpr char kAutomata[] = "rule_automata";
// The first byte; the second is the SpaceRule.
constexpr char kWhole = 'W';   // as the library writes it
constexpr char kShared = 'S';  // the rules' automata are parts of the grammar's

std::string Mark(char form, SpaceRule space) {
  return {form, static_cast<char>('0' + static_cast<int>(space))};
}

std::optional<SpaceRule> SpaceRuleIn(char mark) {
  if (mark < '0' || mark > '0' + static_cast<int>(SpaceRule::kNarrow)) return std::nullopt;
  return static_cast<SpaceRule>(mark - '0');
}

bool AreShared(const xgrammar::Grammar::Impl& grammar) {
  return std::all_of(
      grammar.per_rule_fsms.begin(), grammar.per_rule_fsms.end(), [&](const auto& automaton) {
        return automaton &&
               automaton->GetFsm().GetFsm().ImplPtr() == grammar.complete_fsm.ImplPtr();
      });
}

picojson::value Number(int64_t value) { return picojson::value(value); }

// [edges, nodes, start, ends…]
picojson::value Written(const xgrammar::CompactFSMWithStartEndWithSize& automaton) {
  picojson::array numbers = {Number(automaton.GetEdgeNum()), Number(automaton.GetNodeNum()),
                             Number(automaton.GetFsm().GetStart())};
  for (const int32_t end : automaton.GetFsm().GetEnds()) numbers.push_back(Number(end));
  return picojson::value(std::move(numbers));
}

std::optional<xgrammar::CompactFSMWithStartEndWithSize> ReadAutomaton(
    const picojson::value& written, const xgrammar::CompactFSM& whole) {
  if (!written.is<picojson::array>()) return std::nullopt;
  std::vector<int32_t> numbers;
  for (const picojson::value& number : written.get<picojson::array>()) {
    if (!number.is<int64_t>()) return std::nullopt;
    numbers.push_back(static_cast<int32_t>(number.get<int64_t>()));
  }
  if (numbers.size() < 3) return std::nullopt;
  const bool in_range = std::all_of(numbers.begin() + 2, numbers.end(), [&](int32_t state) {
    return state >= 0 && state < whole.NumStates();
  });
  if (!in_range) return std::nullopt;
  return xgrammar::CompactFSMWithStartEndWithSize(
      xgrammar::CompactFSMWithStartEnd(whole, numbers[2], {numbers.begin() + 3, numbers.end()}),
      numbers[0], numbers[1]);
}

}  // namespace

std::string PackGrammar(const xgrammar::CompiledGrammar& grammar, SpaceRule space) {
  const xgrammar::CompiledGrammar::Impl& impl = *grammar.ImplPtr();
  const xgrammar::Grammar::Impl& rules = *impl.grammar.ImplPtr();
  if (!rules.optimized || !AreShared(rules)) {
    return Mark(kWhole, space) + grammar.SerializeJSON();
  }
  auto bare = std::make_shared<xgrammar::Grammar::Impl>(rules);
  bare->per_rule_fsms.clear();
  bare->optimized = false;
  xgrammar::CompiledGrammar::Impl light = impl;
  light.grammar = xgrammar::Grammar(std::move(bare));
  picojson::value value = SerializeJSONValue(light);
  picojson::array automata;
  for (const auto& automaton : rules.per_rule_fsms) automata.push_back(Written(*automaton));
  value.get<picojson::object>()[kAutomata] = picojson::value(std::move(automata));
  return Mark(kShared, space) + value.serialize();
}

std::optional<UnpackedGrammar> UnpackGrammar(const std::string& packed,
                                             const xgrammar::TokenizerInfo& tokens) {
  if (packed.size() < 2) return std::nullopt;
  const char form = packed[0];
  const std::optional<SpaceRule> space = SpaceRuleIn(packed[1]);
  if (!space) return std::nullopt;
  const std::string text = packed.substr(2);
  if (form == kWhole) {
    auto read = xgrammar::CompiledGrammar::DeserializeJSON(text, tokens);
    auto* const whole = std::get_if<xgrammar::CompiledGrammar>(&read);
    if (whole == nullptr) return std::nullopt;
    return UnpackedGrammar{*whole, whole->MemorySizeBytes(), *space};
  }
  picojson::value value;
  if (form != kShared || !xgrammar::ParseJSON(value, text).empty()) return std::nullopt;
  auto impl = std::make_shared<xgrammar::CompiledGrammar::Impl>();
  if (DeserializeJSONValue(impl.get(), value, tokens)) return std::nullopt;
  xgrammar::Grammar::Impl& rules = *impl->grammar.ImplPtr();
  const picojson::value& written = value.get(kAutomata);
  if (rules.complete_fsm.IsNull() || !written.is<picojson::array>() ||
      written.get<picojson::array>().size() != static_cast<size_t>(rules.NumRules())) {
    return std::nullopt;
  }
  const size_t bytes = MemorySize(*impl);
  Automata automata;
  size_t ends = 0;
  for (const picojson::value& one : written.get<picojson::array>()) {
    automata.push_back(ReadAutomaton(one, rules.complete_fsm));
    if (!automata.back()) return std::nullopt;
    ends += automata.back()->GetFsm().GetEnds().size();
  }
  rules.per_rule_fsms = std::move(automata);
  rules.optimized = true;
  return UnpackedGrammar{
      xgrammar::CompiledGrammar(std::move(impl)),
      bytes + rules.per_rule_fsms.size() * sizeof(Automata::value_type) + ends * sizeof(int32_t),
      *space};
}

}  // namespace portico::grammar
