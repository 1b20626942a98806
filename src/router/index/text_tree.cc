#include "router/index/text_tree.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace portico::router {
namespace {

// What an allocation costs beside its bytes.
constexpr size_t kMallocBytes = 16;

size_t CommonPrefix(std::string_view a, std::string_view b) {
  const size_t size = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(size), b.begin()).first -
      a.begin());
}

}  // namespace

size_t CountUnits(std::string_view text, TextUnit unit) {
  if (unit == TextUnit::kTokens) return text.size() / sizeof(int32_t);
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

struct TextTree::Node {
  struct Tenant {
    WorkerNumber worker;
    uint64_t used;
  };
  std::string edge;
  size_t chars = 0;  // of the edge
  Node* parent = nullptr;
  absl::InlinedVector<std::pair<char, Node*>, 2> children;
  absl::InlinedVector<Tenant, 2> tenants;
  Node* newer = nullptr;
  Node* older = nullptr;
  size_t cost = 0;

  size_t Cost() const {
    size_t bytes = sizeof(Node) + kMallocBytes;
    if (edge.capacity() > 15) bytes += edge.capacity() + 1 + kMallocBytes;
    if (children.capacity() > 2) bytes += children.capacity() * sizeof(children[0]) + kMallocBytes;
    if (tenants.capacity() > 2) bytes += tenants.capacity() * sizeof(Tenant) + kMallocBytes;
    return bytes;
  }
};

TextTree::TextTree(size_t max_bytes, TextUnit unit)
    : max_bytes_(std::max<size_t>(max_bytes, 4096)), unit_(unit), root_(std::make_unique<Node>()) {}

TextTree::~TextTree() {
  while (oldest_ != nullptr) Delete(oldest_);
}

TextTree::Node* TextTree::Child(const Node* node, char first) const {
  for (const auto& [c, child] : node->children) {
    if (c == first) return child;
  }
  return nullptr;
}

TextTree::Match TextTree::Find(std::string_view text) const {
  Match match{.total_chars = Count(text)};
  const Node* node = root_.get();
  size_t at = 0;
  while (at < text.size()) {
    const Node* child = Child(node, text[at]);
    if (child == nullptr) break;
    const Node::Tenant* last = nullptr;
    for (const Node::Tenant& tenant : child->tenants) {
      if (Has(tenant.worker) && (last == nullptr || tenant.used > last->used)) last = &tenant;
    }
    if (last == nullptr) break;
    const size_t common = CommonPrefix(child->edge, text.substr(at));
    match.found = true;
    match.worker = last->worker;
    at += common;
    if (common < child->edge.size()) break;
    node = child;
  }
  // Half a character does not match.
  if (unit_ == TextUnit::kChars) {
    while (at < text.size() && at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80)
      --at;
  }
  match.matched_chars = Count(text.substr(0, at));
  return match;
}

void TextTree::Unlink(Node* node) {
  (node->newer != nullptr ? node->newer->older : newest_) = node->older;
  (node->older != nullptr ? node->older->newer : oldest_) = node->newer;
}

void TextTree::LinkNewest(Node* node) {
  node->newer = nullptr;
  node->older = newest_;
  (newest_ != nullptr ? newest_->newer : oldest_) = node;
  newest_ = node;
}

void TextTree::LinkNewer(Node* node, Node* than) {
  node->older = than;
  node->newer = than->newer;
  (than->newer != nullptr ? than->newer->older : newest_) = node;
  than->newer = node;
}

void TextTree::Recount(Node* node) {
  const size_t cost = node->Cost();
  bytes_ = bytes_ - node->cost + cost;
  node->cost = cost;
}

TextTree::Node* TextTree::Split(Node* node, size_t length) {
  auto* front = new Node;
  ++nodes_;
  front->edge.assign(node->edge, 0, length);
  front->chars = Count(front->edge);
  front->parent = node->parent;
  front->tenants = node->tenants;
  for (auto& [c, child] : node->parent->children) {
    if (child == node) child = front;
  }
  // A string of its own size: erase() would keep the memory of both halves.
  node->edge = std::string(node->edge, length);
  node->chars -= front->chars;
  node->parent = front;
  front->children.emplace_back(node->edge[0], node);
  LinkNewer(front, node);
  Recount(front);
  Recount(node);
  return front;
}

void TextTree::Use(Node* node, WorkerNumber worker) {
  for (Node::Tenant& tenant : node->tenants) {
    if (tenant.worker == worker) {
      tenant.used = clock_;
      return;
    }
  }
  // Room for it first: those that are gone.
  for (size_t i = node->tenants.size(); i-- > 0;) {
    if (!Has(node->tenants[i].worker))
      node->tenants.erase(node->tenants.begin() + static_cast<ptrdiff_t>(i));
  }
  node->tenants.push_back({worker, clock_});
  chars_[worker] += node->chars;
}

void TextTree::ForgetWorkers(Node* node) {
  for (const Node::Tenant& tenant : node->tenants) {
    const auto size = chars_.find(tenant.worker);
    if (size != chars_.end()) size->second -= node->chars;
  }
}

void TextTree::Delete(Node* node) {
  ForgetWorkers(node);
  Unlink(node);
  if (node->parent != nullptr) {
    auto& siblings = node->parent->children;
    siblings.erase(std::find_if(siblings.begin(), siblings.end(),
                                [&](const auto& entry) { return entry.second == node; }));
  }
  bytes_ -= node->cost;
  --nodes_;
  delete node;
}

void TextTree::Insert(std::string_view text, WorkerNumber worker) {
  AddWorker(worker);
  text = text.substr(0, max_bytes_ / 4);
  ++clock_;
  Node* node = root_.get();
  size_t at = 0;
  std::vector<Node*> path;
  while (at < text.size()) {
    Node* child = Child(node, text[at]);
    if (child == nullptr) {
      child = new Node;
      ++nodes_;
      child->edge.assign(text.substr(at));
      child->chars = Count(child->edge);
      child->parent = node;
      node->children.emplace_back(text[at], child);
      LinkNewest(child);
      if (node->parent != nullptr) Recount(node);
      at = text.size();
    } else {
      const size_t common = CommonPrefix(child->edge, text.substr(at));
      if (common < child->edge.size()) child = Split(child, common);
      at += common;
    }
    path.push_back(child);
    node = child;
  }
  // Leaves are older than what they hang on.
  for (size_t i = path.size(); i-- > 0;) {
    Use(path[i], worker);
    Recount(path[i]);
    Unlink(path[i]);
    LinkNewest(path[i]);
  }
  while (bytes_ > max_bytes_ && oldest_ != nullptr) Delete(oldest_);
}

void TextTree::Trim(size_t max_chars) {
  size_t over = 0;
  for (const auto& [worker, chars] : chars_) over += chars > max_chars;
  for (Node* node = oldest_; node != nullptr && over > 0;) {
    Node* const next = node->newer;
    for (size_t i = node->tenants.size(); i-- > 0;) {
      const auto size = chars_.find(node->tenants[i].worker);
      if (size != chars_.end()) {
        if (size->second <= max_chars) continue;
        size->second -= node->chars;
        if (size->second <= max_chars) --over;
      }
      node->tenants.erase(node->tenants.begin() + static_cast<ptrdiff_t>(i));
    }
    if (node->tenants.empty()) Delete(node);
    node = next;
  }
}

size_t TextTree::chars_of(WorkerNumber worker) const {
  const auto size = chars_.find(worker);
  return size == chars_.end() ? 0 : size->second;
}

}  // namespace portico::router
