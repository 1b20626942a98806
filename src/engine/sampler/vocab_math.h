// Passes over one row of logits, a float a vocabulary entry: the only loops of the sampler whose
// length is the vocabulary's. Rows of 150,000 are usual, so each is a plain vector loop, compiled
// for several instruction sets. Sums are taken in blocks of kSumBlock, a float each, and added up
// as doubles: the same on every machine with the same vector width, and within 1e-5 of exact on
// all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "message/sampling.h"

namespace portico {

inline constexpr size_t kSumBlock = 1024;
inline size_t SumBlocks(size_t n) { return (n + kSumBlock - 1) / kSumBlock; }

// The greatest value; -inf where the row is empty. A NaN is passed over.
float MaxOf(std::span<const float> row);

// The lowest index whose value is `max`, the row's MaxOf().
TokenId ArgMax(std::span<const float> row, float max);

// out[i] = exp((row[i] - max) * scale), which is in [0, 1]; below e^-87 it is 0. block_sums[b] is
// the sum of block b (SumBlocks(row.size()) of them). Returns the whole sum. `out` may be row.
double ExpOf(std::span<const float> row, float max, float scale, std::span<float> out,
             std::span<float> block_sums);

// The sum of exp((row[i] - max) * scale).
double ExpSum(std::span<const float> row, float max, float scale);

// Appends the indices of all values[i] >= cutoff, ascending.
void IndicesAtLeast(std::span<const float> values, float cutoff, std::vector<TokenId>* indices);

}  // namespace portico
