// The radix tree of the cache_aware policy: which worker has seen which beginnings of prompts, as
// text. One tree holds what would be a tree a worker: each node names the workers that have it, and
// a node's workers are among its parent's.
//
// Lengths are characters (code points), as in sglang-router, or token ids; edges are split between bytes, which
// finds the same prefixes. Bounded by bytes at every moment: insertion evicts the nodes used longest
// ago, leaves first. Each worker's size in characters is bounded by Trim(), as --max-tree-size has it.
// A removed worker is out of all answers at once. Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"

namespace portico::router {

// What a text is counted in.
enum class TextUnit : uint8_t {
  kChars,   // code points, by the bytes that begin one
  kTokens,  // token ids of four bytes each
};
size_t CountUnits(std::string_view text, TextUnit unit);

class TextTree {
 public:
  using WorkerNumber = uint64_t;

  explicit TextTree(size_t max_bytes, TextUnit unit = TextUnit::kChars);
  ~TextTree();
  TextTree(const TextTree&) = delete;
  TextTree& operator=(const TextTree&) = delete;

  struct Match {
    size_t matched_chars = 0;
    size_t total_chars = 0;
    bool found = false;
    WorkerNumber worker = 0;  // the one that used the end of the match last
    double ratio() const {
      return total_chars == 0
                 ? 0.0
                 : static_cast<double>(matched_chars) / static_cast<double>(total_chars);
    }
  };
  // The longest prefix that a worker has.
  Match Find(std::string_view text) const;

  // A worker's size counts from 0 on.
  void AddWorker(WorkerNumber worker) { chars_.try_emplace(worker, 0); }
  void RemoveWorker(WorkerNumber worker) { chars_.erase(worker); }
  bool Has(WorkerNumber worker) const { return chars_.contains(worker); }

  // The worker has this text now, and has just used it. Of texts beyond a quarter of the bound only
  // the beginning is kept.
  void Insert(std::string_view text, WorkerNumber worker);

  // Takes from each worker what it used longest ago until it has at most `max_chars`.
  void Trim(size_t max_chars);

  size_t chars_of(WorkerNumber worker) const;
  size_t bytes() const { return bytes_; }
  size_t nodes() const { return nodes_; }

 private:
  struct Node;

  Node* Child(const Node* node, char first) const;
  Node* Split(Node* node, size_t length);
  void Use(Node* node, WorkerNumber worker);
  void Unlink(Node* node);
  void LinkNewer(Node* node, Node* than);
  void LinkNewest(Node* node);
  void Delete(Node* node);
  // Corrects bytes_ by what the node costs now.
  void Recount(Node* node);
  void ForgetWorkers(Node* node);

  size_t Count(std::string_view text) const { return CountUnits(text, unit_); }

  const size_t max_bytes_;
  const TextUnit unit_;
  std::unique_ptr<Node> root_;
  Node* newest_ = nullptr;
  Node* oldest_ = nullptr;
  size_t bytes_ = 0;
  size_t nodes_ = 0;
  uint64_t clock_ = 0;
  absl::flat_hash_map<WorkerNumber, size_t> chars_;  // of each live worker
};

}  // namespace portico::router
