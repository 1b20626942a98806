#include "tokenizer/batch.h"

#include <algorithm>
#include <utility>

#include "base/parallel_for.h"
#include "text/utf8.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/split/seams.h"

namespace portico {

using tokenizer::Pipeline;
using tokenizer::Seams;

// A part of a text, or a whole one.
struct BatchTokenizer::Unit {
  size_t index;  // of the text
  size_t begin;
  size_t end;
  bool whole;
  std::vector<TokenId> ids;
  Status status;
};

namespace {

// Of a long text, and of a batch: many, so that the last one does not keep the others waiting long.
constexpr size_t kPartsPerThread = 4;
constexpr size_t kGroupsPerThread = 16;

// Neighbours that a thread takes together: [begin, end).
struct Group {
  size_t begin;
  size_t end;
  size_t bytes;
};

// A text of so many bytes is one part.
size_t LeastToCut(size_t part_bytes) { return part_bytes + part_bytes / 2; }

// Groups of at least `bytes`, but for the last, the largest first.
template <typename Size>
std::vector<Group> GroupByBytes(size_t count, size_t bytes, Size size) {
  std::vector<Group> groups;
  for (size_t i = 0; i < count; ++i) {
    if (groups.empty() || groups.back().bytes >= bytes) groups.push_back({i, i, 0});
    groups.back().end = i + 1;
    groups.back().bytes += size(i);
  }
  std::sort(groups.begin(), groups.end(),
            [](const Group& a, const Group& b) { return a.bytes > b.bytes; });
  return groups;
}

}  // namespace

BatchTokenizer::BatchTokenizer(std::shared_ptr<const Tokenizer> tokenizer, CpuPool* pool)
    : BatchTokenizer(std::move(tokenizer), pool, Sizes{}) {}

BatchTokenizer::BatchTokenizer(std::shared_ptr<const Tokenizer> tokenizer, CpuPool* pool,
                               const Sizes& sizes)
    : tokenizer_(std::move(tokenizer)), pool_(pool), sizes_(sizes) {
  if (pool_ != nullptr) seams_ = std::make_unique<Seams>(tokenizer_->pipeline());
}

BatchTokenizer::~BatchTokenizer() = default;

size_t BatchTokenizer::ShareOf(size_t total, size_t per_thread) const {
  size_t threads = pool_ == nullptr ? 1 : pool_->threads() + 1;
  return std::max(sizes_.unit, total / (threads * per_thread));
}

bool BatchTokenizer::MayCut(const Options& options) const {
  const Pipeline& pipeline = tokenizer_->pipeline();
  bool limits = pipeline.TruncationOf(options) != nullptr || pipeline.PaddingOf(options) != nullptr;
  return seams_ && seams_->any() && !limits && pipeline.frame().known;
}

bool BatchTokenizer::PadsToLongest(const Options& options) const {
  const tokenizer::Padding* padding = tokenizer_->pipeline().PaddingOf(options);
  return padding != nullptr && !padding->fixed;
}

void BatchTokenizer::CutText(size_t index, std::string_view text, size_t unit_bytes,
                             std::vector<Unit>* units) const {
  size_t begin = 0;
  while (text.size() - begin > LeastToCut(unit_bytes)) {
    size_t seam = seams_->Find(text, begin + unit_bytes, text.size());
    if (seam == text.size()) break;
    units->push_back({index, begin, seam, false, {}, {}});
    begin = seam;
  }
  units->push_back({index, begin, text.size(), begin == 0, {}, {}});
}

void BatchTokenizer::Run(std::span<const std::string_view> texts, const Options& options,
                         Unit* unit) const {
  std::string_view text = texts[unit->index];
  if (unit->whole) {
    unit->status = tokenizer_->EncodeWith(text, options, &unit->ids);
    return;
  }
  unit->status = seams_->EncodePart(*tokenizer_, text, unit->begin, unit->end, options, &unit->ids);
}

StatusOr<std::vector<std::vector<TokenId>>> BatchTokenizer::EncodeIds(
    std::span<const std::string_view> texts, const Options& options) const {
  std::vector<std::vector<TokenId>> out(texts.size());
  if (PadsToLongest(options)) {
    std::vector<Input> inputs;
    for (std::string_view text : texts) inputs.push_back({text, std::nullopt});
    PORTICO_ASSIGN_OR_RETURN(std::vector<Encoding> encodings, Encode(inputs, options));
    for (size_t i = 0; i < out.size(); ++i) out[i] = std::move(encodings[i].ids);
    return out;
  }
  size_t total = 0;
  for (std::string_view text : texts) total += text.size();
  size_t unit_bytes = ShareOf(total, kPartsPerThread);
  std::vector<Unit> units;
  bool may_cut = MayCut(options);
  // A cut text is made valid first: what is no UTF-8 could lie across a seam.
  std::vector<std::string_view> valid(texts.begin(), texts.end());
  std::vector<std::string> copies;
  copies.reserve(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!may_cut || texts[i].size() <= std::max(sizes_.long_text, LeastToCut(unit_bytes))) {
      units.push_back({i, 0, texts[i].size(), true, {}, {}});
      continue;
    }
    if (!IsValidUtf8(texts[i])) valid[i] = copies.emplace_back(ToValidUtf8(texts[i]));
    CutText(i, valid[i], unit_bytes, &units);
  }
  auto groups = GroupByBytes(units.size(), ShareOf(total, kGroupsPerThread),
                             [&](size_t i) { return units[i].end - units[i].begin; });
  ParallelFor(pool_, groups.size(), [&](size_t g) {
    for (size_t i = groups[g].begin; i < groups[g].end; ++i) Run(valid, options, &units[i]);
  });
  const tokenizer::SpecialFrame& frame = tokenizer_->pipeline().frame();
  auto append = [](const std::vector<TokenId>& from, std::vector<TokenId>* to) {
    to->insert(to->end(), from.begin(), from.end());
  };
  for (Unit& unit : units) {
    PORTICO_RETURN_IF_ERROR(unit.status);
    std::vector<TokenId>& ids = out[unit.index];
    if (unit.whole) {
      ids = std::move(unit.ids);
      continue;
    }
    if (unit.begin == 0 && options.add_special_tokens) append(frame.before, &ids);
    append(unit.ids, &ids);
    if (unit.end == valid[unit.index].size() && options.add_special_tokens) {
      append(frame.after, &ids);
    }
  }
  return out;
}

Status BatchTokenizer::EncodeIds(std::string_view text, const Options& options,
                                 std::vector<TokenId>* ids) const {
  if (pool_ == nullptr || text.size() <= sizes_.long_text || !MayCut(options)) {
    return tokenizer_->EncodeWith(text, options, ids);
  }
  PORTICO_ASSIGN_OR_RETURN(std::vector<std::vector<TokenId>> lists,
                           EncodeIds(std::span<const std::string_view>(&text, 1), options));
  if (ids->empty()) {
    *ids = std::move(lists[0]);
  } else {
    ids->insert(ids->end(), lists[0].begin(), lists[0].end());
  }
  return OkStatus();
}

StatusOr<std::vector<Encoding>> BatchTokenizer::Encode(std::span<const Input> inputs,
                                                       const Options& options) const {
  auto size = [&](size_t i) {
    return inputs[i].text.size() + (inputs[i].pair ? inputs[i].pair->size() : 0);
  };
  size_t total = 0;
  for (size_t i = 0; i < inputs.size(); ++i) total += size(i);
  std::vector<Encoding> out(inputs.size());
  std::vector<Status> failed(inputs.size());
  auto groups = GroupByBytes(inputs.size(), ShareOf(total, kGroupsPerThread), size);
  ParallelFor(pool_, groups.size(), [&](size_t g) {
    for (size_t i = groups[g].begin; i < groups[g].end; ++i) {
      const Input& in = inputs[i];
      StatusOr<Encoding> made =
          tokenizer_->EncodeFull(in.text, in.pair ? &*in.pair : nullptr, options);
      if (made.ok()) {
        out[i] = *std::move(made);
      } else {
        failed[i] = made.status();
      }
    }
  });
  uint64_t longest = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    PORTICO_RETURN_IF_ERROR(failed[i]);
    longest = std::max<uint64_t>(longest, out[i].size());
  }
  if (PadsToLongest(options)) {
    for (Encoding& encoding : out) {
      tokenizer::Pad(&encoding, *tokenizer_->pipeline().PaddingOf(options), longest);
      tokenizer::FillSequenceIds(&encoding);
    }
  }
  return out;
}

std::vector<std::string> BatchTokenizer::Decode(std::span<const std::span<const TokenId>> lists,
                                                bool skip_special_tokens) const {
  size_t total = 0;
  for (std::span<const TokenId> ids : lists) total += ids.size();
  std::vector<std::string> out(lists.size());
  auto groups = GroupByBytes(lists.size(), ShareOf(total, kGroupsPerThread),
                             [&](size_t i) { return lists[i].size(); });
  ParallelFor(pool_, groups.size(), [&](size_t g) {
    for (size_t i = groups[g].begin; i < groups[g].end; ++i) {
      out[i] = tokenizer_->Decode(lists[i], skip_special_tokens);
    }
  });
  return out;
}

}  // namespace portico
