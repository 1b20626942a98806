#include "engine/llama/kv/prefix_tree.h"

#include <algorithm>

namespace portico::llama {

PrefixTree::PrefixTree() { root_.pins = 1; }

PrefixNode* PrefixTree::ChildOf(const PrefixNode* node, TokenId token) {
  for (const auto& child : node->children) {
    if (child->tokens.front() == token) return child.get();
  }
  return nullptr;
}

PrefixTree::Match PrefixTree::Find(std::span<const TokenId> tokens, int32_t limit) const {
  tokens = tokens.first(std::min(tokens.size(), static_cast<size_t>(std::max(limit, 0))));
  Match match{const_cast<PrefixNode*>(&root_), 0, 0};
  while (static_cast<size_t>(match.length) < tokens.size()) {
    PrefixNode* child = ChildOf(match.node, tokens[match.length]);
    if (child == nullptr) break;
    const auto rest = tokens.subspan(match.length);
    const auto end =
        std::mismatch(rest.begin(), rest.end(), child->tokens.begin(), child->tokens.end());
    const auto common = static_cast<int32_t>(end.first - rest.begin());
    match.node = child;
    match.length += common;
    if (child->pins == 0) match.unpinned += common;
    if (common < child->size()) break;
  }
  return match;
}

PrefixNode* PrefixTree::NodeAt(const Match& match) {
  if (match.length == match.node->depth) return match.node;
  return Split(match.node, match.length - match.node->parent->depth);
}

// The upper part becomes a new node, so that whoever stands on `node` still stands at its end.
PrefixNode* PrefixTree::Split(PrefixNode* node, int32_t length) {
  auto upper = std::make_unique<PrefixNode>();
  PrefixNode* result = upper.get();
  const auto blocks = node->blocks.begin() + static_cast<ptrdiff_t>(node->BlocksWithin(length));
  upper->blocks.assign(node->blocks.begin(), blocks);
  node->blocks.erase(node->blocks.begin(), blocks);
  upper->tokens.assign(node->tokens.begin(), node->tokens.begin() + length);
  upper->depth = node->parent->depth + length;
  upper->parent = node->parent;
  upper->pins = node->pins;
  upper->last_use = node->last_use;
  node->tokens.erase(node->tokens.begin(), node->tokens.begin() + length);
  for (auto& slot : node->parent->children) {
    if (slot.get() != node) continue;
    upper->children.push_back(std::move(slot));
    slot = std::move(upper);
    break;
  }
  node->parent = result;
  return result;
}

PrefixNode* PrefixTree::AddChild(PrefixNode* parent, std::span<const TokenId> run) {
  auto child = std::make_unique<PrefixNode>();
  child->tokens.assign(run.begin(), run.end());
  child->depth = parent->depth + child->size();
  child->parent = parent;
  child->last_use = ++clock_;
  size_ += child->size();
  parent->children.push_back(std::move(child));
  return parent->children.back().get();
}

void PrefixTree::Extend(PrefixNode* leaf, std::span<const TokenId> run) {
  leaf->tokens.insert(leaf->tokens.end(), run.begin(), run.end());
  leaf->depth += static_cast<int32_t>(run.size());
  size_ += static_cast<int64_t>(run.size());
  if (leaf->pins > 0) pinned_ += static_cast<int64_t>(run.size());
}

void PrefixTree::Pin(PrefixNode* node) {
  for (; node != &root_; node = node->parent) {
    if (node->pins++ == 0) pinned_ += node->size();
  }
}

void PrefixTree::Unpin(PrefixNode* node) {
  PrefixNode* const end = node;
  for (; node != &root_; node = node->parent) {
    if (--node->pins == 0) pinned_ -= node->size();
  }
  if (end != &root_) MergeWithOnlyChild(end);
}

void PrefixTree::Touch(PrefixNode* node) {
  ++clock_;
  for (; node != &root_; node = node->parent) node->last_use = clock_;
}

PrefixNode* PrefixTree::LeastRecentlyUsed() const {
  PrefixNode* oldest = nullptr;
  std::vector<const PrefixNode*> stack = {&root_};
  while (!stack.empty()) {
    const PrefixNode* node = stack.back();
    stack.pop_back();
    for (const auto& child : node->children) {
      stack.push_back(child.get());
      if (!child->leaf() || child->pins > 0) continue;
      if (oldest == nullptr || child->last_use < oldest->last_use) oldest = child.get();
    }
  }
  return oldest;
}

PrefixNode* PrefixTree::Cut(PrefixNode* leaf, int32_t count) {
  size_ -= count;
  leaf->blocks.resize(leaf->BlocksWithin(leaf->size() - count));
  leaf->depth -= count;
  leaf->tokens.resize(leaf->tokens.size() - static_cast<size_t>(count));
  if (!leaf->tokens.empty()) return leaf;
  PrefixNode* parent = leaf->parent;
  std::erase_if(parent->children, [&](const auto& child) { return child.get() == leaf; });
  if (parent == &root_) return nullptr;
  if (parent->leaf()) return parent;
  MergeWithOnlyChild(parent);
  return nullptr;
}

// Keeps the tree as small as its branches: a node with one child on which nobody stands is part of
// that child.
void PrefixTree::MergeWithOnlyChild(PrefixNode* node) {
  if (node->children.size() != 1 || node->children.front()->pins != node->pins) return;
  PrefixNode* child = node->children.front().get();
  child->tokens.insert(child->tokens.begin(), node->tokens.begin(), node->tokens.end());
  child->blocks.insert(child->blocks.begin(), node->blocks.begin(), node->blocks.end());
  child->parent = node->parent;
  std::unique_ptr<PrefixNode> kept = std::move(node->children.front());
  for (auto& slot : child->parent->children) {
    if (slot.get() != node) continue;
    slot = std::move(kept);
    break;
  }
}

}  // namespace portico::llama
