#include "service/pooling/pair_frame.h"

#include <string_view>

namespace portico {

PairFrame::PairFrame(const Tokenizer& tokenizer) {
  constexpr std::string_view kExample = "a";
  const auto example = tokenizer.EncodeFull(kExample, &kExample, {});
  known_ = example.ok() && ReadOff(*example);
}

bool PairFrame::ReadOff(const Encoding& example) {
  Part* const frames[] = {&before_, &between_, &after_};
  int32_t texts = 0;  // that have begun
  for (size_t i = 0; i < example.size(); ++i) {
    const auto type = static_cast<uint8_t>(example.type_ids[i]);
    const int32_t sequence = example.sequence_ids[i];
    if (sequence == Encoding::kNone) {
      frames[texts]->ids.push_back(example.ids[i]);
      frames[texts]->types.push_back(type);
      continue;
    }
    if (sequence == texts) {
      (texts == 0 ? first_type_ : second_type_) = type;
      ++texts;
    } else if (sequence != texts - 1 || !frames[texts]->ids.empty()) {
      return false;
    }
  }
  return texts == 2;
}

void PairFrame::Join(std::span<const TokenId> first, std::span<const TokenId> second,
                     std::vector<TokenId>* ids, std::vector<uint8_t>* types) const {
  const auto append = [&](std::span<const TokenId> more) {
    ids->insert(ids->end(), more.begin(), more.end());
  };
  append(before_.ids);
  append(first);
  append(between_.ids);
  append(second);
  append(after_.ids);
  types->insert(types->end(), before_.types.begin(), before_.types.end());
  types->insert(types->end(), first.size(), first_type_);
  types->insert(types->end(), between_.types.begin(), between_.types.end());
  types->insert(types->end(), second.size(), second_type_);
  types->insert(types->end(), after_.types.begin(), after_.types.end());
}

}  // namespace portico
