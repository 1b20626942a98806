// Attention of an encoder's head: the tokens of one text see each other, all of them and nobody else.
//
// libllama computes it between all tokens of a batch under a mask. Where a batch holds eight texts that is eight times
// the work, and its kernel takes a fifth of the time of a text of 200 tokens.
#pragma once

#include <cstddef>
#include <vector>

namespace portico::llama {

// Memory that one thread lends to its calls.
struct AttentionScratch {
  std::vector<float> keys, values, weights;
};

// Row i of the result is the mean of the rows of `values`, weighted by softmax(scale * queries[i] . keys[j]) over j.
// Float32 throughout. All have `count` rows of `size` columns: queries[i] is at queries + i * query_stride, a row of the
// result at out + i * out_stride; keys and values lie without gaps.
void Attend(const float* queries, size_t query_stride, const float* keys, const float* values,
            size_t count, size_t size, float scale, float* out, size_t out_stride,
            AttentionScratch* scratch);

}  // namespace portico::llama
