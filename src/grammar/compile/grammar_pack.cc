#include "grammar/compile/grammar_pack.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

// The library's own headers, as it compiles them (CMakeLists.txt).
#include "compiled_grammar_impl.h"
#include "grammar_impl.h"
#include "support/json_parse.h"
#include "support/json_serializer.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

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
using Mask = xgrammar::AdaptiveTokenMask;
using Masks = decltype(xgrammar::CompiledGrammar::Impl::adaptive_token_mask_cache);

constexpr char kAutomata[] = "rule_automata";
// The first byte; the second is the SpaceRule. A checksum of what is behind it follows them: bytes that were torn or flipped are none. A
// process that writes wrong bytes can write the right checksum, so whatever reads them checks its bounds.
constexpr char kWhole = 'W';   // as the library writes it
constexpr char kShared = 'S';  // the rules' automata are parts of the grammar's

constexpr size_t kMarkSize = 2;
constexpr size_t kHeadSize = kMarkSize + sizeof(uint64_t);

std::string Head(char form, SpaceRule space) {
  std::string head = {form, static_cast<char>('0' + static_cast<int>(space))};
  head.resize(kHeadSize);
  return head;
}

uint64_t ChecksumOf(std::string_view packed) {
  const std::string_view payload = packed.substr(kHeadSize);
  const uint16_t mark = static_cast<uint16_t>(static_cast<unsigned char>(packed[0]) << 8 |
                                              static_cast<unsigned char>(packed[1]));
  return XXH3_64bits_withSeed(payload.data(), payload.size(), mark);
}

std::string WithChecksum(std::string packed) {
  const uint64_t checksum = ChecksumOf(packed);
  std::memcpy(packed.data() + kMarkSize, &checksum, sizeof checksum);
  return packed;
}

bool IsIntact(std::string_view packed) {
  if (packed.size() < kHeadSize) return false;
  uint64_t checksum = 0;
  std::memcpy(&checksum, packed.data() + kMarkSize, sizeof checksum);
  return checksum == ChecksumOf(packed);
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

template <typename Number>
void AppendRaw(const Number* numbers, size_t count, std::string* out) {
  out->append(reinterpret_cast<const char*>(numbers), count * sizeof(Number));
}

void AppendList(const std::vector<int32_t>& numbers, std::string* out) {
  const uint64_t size = numbers.size();
  AppendRaw(&size, 1, out);
  AppendRaw(numbers.data(), numbers.size(), out);
}

void AppendBits(const xgrammar::DynamicBitset& bits, std::string* out) {
  const int32_t size = bits.Size();
  AppendRaw(&size, 1, out);
  std::vector<uint32_t> words(xgrammar::DynamicBitset::GetBufferSize(size));
  if (words.empty()) return;
  xgrammar::DynamicBitset copy(size, words.data());
  copy = bits;
  AppendRaw(words.data(), words.size(), out);
}

// Numbers as the machine has them: both sides are the same program.
void AppendMasks(const Masks& masks, std::string* out) {
  const uint64_t count = masks.size();
  AppendRaw(&count, 1, out);
  for (const auto& entry : masks) {
    const xgrammar::ParserState& state = entry.first;
    const Mask& mask = entry.second;
    xgrammar::visit_config<xgrammar::ParserState>(
        [&](auto member, const char*, size_t) { AppendRaw(&(state.*member), 1, out); });
    AppendRaw(&mask.store_type, 1, out);
    AppendList(mask.accepted_indices, out);
    AppendList(mask.rejected_indices, out);
    AppendList(mask.uncertain_indices, out);
    AppendBits(mask.accepted_bitset, out);
  }
}

// At least so many bytes make a state and its mask.
constexpr size_t kLeastMaskBytes = sizeof(xgrammar::ParserState) + sizeof(Mask::StoreType) +
                                   3 * sizeof(uint64_t) + sizeof(int32_t);

// Reads what AppendMasks() wrote. False: it did not. Nothing is reserved for more than the bytes can hold.
class MaskReader {
 public:
  MaskReader(std::string_view bytes, const xgrammar::TokenizerInfo& tokens)
      : rest_(bytes),
        sorted_(static_cast<int64_t>(tokens.GetSortedDecodedVocab().size())),
        vocab_size_(tokens.GetVocabSize()) {}

  bool Read(Masks* masks) {
    uint64_t count = 0;
    if (!Take(&count, 1) || count > rest_.size() / kLeastMaskBytes) return false;
    masks->reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
      xgrammar::ParserState state;
      bool whole = true;
      xgrammar::visit_config<xgrammar::ParserState>(
          [&](auto member, const char*, size_t) { whole = whole && Take(&(state.*member), 1); });
      Mask mask;
      if (!whole || !ReadMask(&mask)) return false;
      masks->emplace(state, std::move(mask));
    }
    return rest_.empty();
  }

 private:
  template <typename Number>
  bool Take(Number* numbers, size_t count) {
    if (count > rest_.size() / sizeof(Number)) return false;
    if (count > 0) std::memcpy(numbers, rest_.data(), count * sizeof(Number));
    rest_.remove_prefix(count * sizeof(Number));
    return true;
  }

  // Of indices into the sorted vocabulary.
  bool TakeList(std::vector<int32_t>* numbers) {
    uint64_t size = 0;
    if (!Take(&size, 1) || size > rest_.size() / sizeof(int32_t)) return false;
    numbers->resize(size);
    return Take(numbers->data(), size) &&
           std::all_of(numbers->begin(), numbers->end(),
                       [this](int32_t index) { return index >= 0 && index < sorted_; });
  }

  bool TakeBits(xgrammar::DynamicBitset* bits) {
    int32_t size = 0;
    if (!Take(&size, 1) || (size != 0 && size != vocab_size_)) return false;
    if (size == 0) return true;
    std::vector<uint32_t> words(xgrammar::DynamicBitset::GetBufferSize(size));
    if (!Take(words.data(), words.size())) return false;
    const xgrammar::DynamicBitset view(size, words.data());
    *bits = xgrammar::DynamicBitset(size);
    *bits |= view;
    return true;
  }

  bool ReadMask(Mask* mask) {
    if (!Take(&mask->store_type, 1) || !TakeList(&mask->accepted_indices) ||
        !TakeList(&mask->rejected_indices) || !TakeList(&mask->uncertain_indices) ||
        !TakeBits(&mask->accepted_bitset)) {
      return false;
    }
    switch (mask->store_type) {
      case Mask::StoreType::kAccepted:
      case Mask::StoreType::kRejected:
        return true;
      case Mask::StoreType::kAcceptedBitset:
        return mask->accepted_bitset.Size() == vocab_size_;
    }
    return false;
  }

  std::string_view rest_;
  const int64_t sorted_;
  const int32_t vocab_size_;
};

}  // namespace

std::string PackGrammar(const xgrammar::CompiledGrammar& grammar, SpaceRule space) {
  const xgrammar::CompiledGrammar::Impl& impl = *grammar.ImplPtr();
  const xgrammar::Grammar::Impl& rules = *impl.grammar.ImplPtr();
  if (!rules.optimized || !AreShared(rules)) {
    return WithChecksum(Head(kWhole, space) + grammar.SerializeJSON());
  }
  auto bare = std::make_shared<xgrammar::Grammar::Impl>(rules);
  bare->per_rule_fsms.clear();
  bare->optimized = false;
  xgrammar::CompiledGrammar::Impl light;
  light.grammar = xgrammar::Grammar(std::move(bare));
  light.tokenizer_info = impl.tokenizer_info;
  picojson::value value = SerializeJSONValue(light);
  picojson::array automata;
  for (const auto& automaton : rules.per_rule_fsms) automata.push_back(Written(*automaton));
  value.get<picojson::object>()[kAutomata] = picojson::value(std::move(automata));
  const std::string json = value.serialize();
  const uint64_t size = json.size();
  std::string packed = Head(kShared, space);
  AppendRaw(&size, 1, &packed);
  packed += json;
  AppendMasks(impl.adaptive_token_mask_cache, &packed);
  return WithChecksum(std::move(packed));
}

std::optional<UnpackedGrammar> UnpackGrammar(std::string_view packed,
                                             const xgrammar::TokenizerInfo& tokens) {
  if (!IsIntact(packed)) return std::nullopt;
  const char form = packed[0];
  const std::optional<SpaceRule> space = SpaceRuleIn(packed[1]);
  if (!space) return std::nullopt;
  packed.remove_prefix(kHeadSize);
  if (form == kWhole) {
    auto read = xgrammar::CompiledGrammar::DeserializeJSON(std::string(packed), tokens);
    auto* const whole = std::get_if<xgrammar::CompiledGrammar>(&read);
    if (whole == nullptr) return std::nullopt;
    return UnpackedGrammar{*whole, whole->MemorySizeBytes(), *space};
  }
  uint64_t size = 0;
  if (form != kShared || packed.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, packed.data(), sizeof size);
  packed.remove_prefix(sizeof size);
  picojson::value value;
  if (size > packed.size() ||
      !xgrammar::ParseJSON(value, std::string(packed.substr(0, size))).empty()) {
    return std::nullopt;
  }
  packed.remove_prefix(size);
  auto impl = std::make_shared<xgrammar::CompiledGrammar::Impl>();
  if (DeserializeJSONValue(impl.get(), value, tokens) ||
      !MaskReader(packed, tokens).Read(&impl->adaptive_token_mask_cache)) {
    return std::nullopt;
  }
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
