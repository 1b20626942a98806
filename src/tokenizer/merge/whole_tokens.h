// The tokens that their own bytes merge to: a piece that spells one of them needs no merging.
//
// Most tokens are of this kind, but not all: with the merges b+c, a+b, ab+c the bytes "abc" become a and bc, and the
// token abc is never made of them. Let a token t come from the merge (a, b) of rank r, where a and b are of this kind
// themselves and all merges inside them have ranks below r. Then the bytes of t become t unless something merges across
// the border of a and b before both are there. What stands at the border at a time is a symbol x of a's right edge and
// a symbol y of b's left edge: each is there from its own merge until the merge that takes it in, whose ranks follow
// from the two trees. So it is enough to look at the pairs (x, y) that stand there together: one that merges earlier
// than the merge that takes in x, and not later than the one that takes in y (of equal ranks the left one comes first),
// spoils t.
#pragma once

#include <vector>

#include "tokenizer/merge/pair_merges.h"
#include "tokenizer/model/byte_tokens.h"

namespace portico::tokenizer {

// By id; may say no of one that is of this kind, if its merges have unusual ranks. `byte_ids` are the tokens of the 256
// bytes.
std::vector<bool> WholeTokens(const PairMerges& pairs, const ByteTokens& tokens,
                              const TokenId* byte_ids);

}  // namespace portico::tokenizer
