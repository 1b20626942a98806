// Test helper: cells as libllama keeps them (a position and a set of sequences each), with the
// token that was computed there, so that a test can see whether a sequence attends to what it
// should.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "engine/llama/kv/kv_cache.h"

namespace portico::llama {

class FakeKvMemory : public KvMemory {
 public:
  void Share(int32_t from, int32_t to, int32_t begin, int32_t end) override {
    for (Cell& cell : cells_) {
      if (Within(cell, begin, end) && cell.sequences.count(from) > 0) cell.sequences.insert(to);
    }
  }
  void Remove(int32_t sequence, int32_t begin, int32_t end) override {
    for (Cell& cell : cells_) {
      if (Within(cell, begin, end)) cell.sequences.erase(sequence);
    }
    std::erase_if(cells_, [](const Cell& cell) { return cell.sequences.empty(); });
  }

  // What a step does: the sequence gets cells for its next tokens.
  void Compute(int32_t sequence, int32_t begin, const std::vector<TokenId>& tokens) {
    EXPECT_EQ(static_cast<size_t>(begin), TokensOf(sequence).size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      cells_.push_back({begin + static_cast<int32_t>(i), tokens[i], {sequence}});
    }
  }

  // The tokens a sequence attends to; fails where a position is missing or twice there.
  std::vector<TokenId> TokensOf(int32_t sequence) const {
    std::map<int32_t, TokenId> found;
    for (const Cell& cell : cells_) {
      if (cell.sequences.count(sequence) == 0) continue;
      EXPECT_TRUE(found.emplace(cell.position, cell.token).second) << "twice: " << cell.position;
    }
    std::vector<TokenId> tokens;
    for (const auto& [position, token] : found) {
      EXPECT_EQ(static_cast<size_t>(position), tokens.size()) << "missing";
      tokens.push_back(token);
    }
    return tokens;
  }
  int64_t used() const { return static_cast<int64_t>(cells_.size()); }

 private:
  struct Cell {
    int32_t position;
    TokenId token;
    std::set<int32_t> sequences;
  };
  static bool Within(const Cell& cell, int32_t begin, int32_t end) {
    return cell.position >= begin && (end < 0 || cell.position < end);
  }
  std::vector<Cell> cells_;
};

}  // namespace portico::llama
