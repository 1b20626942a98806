#include "tokenizer/split/added_tokens.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "text/unicode.h"
#include "text/utf8.h"

namespace portico::tokenizer {
namespace {

// The character that ends before `at`, which is not 0, and where it begins.
std::pair<uint32_t, size_t> Before(std::string_view text, size_t at) {
  size_t begin = at - 1;
  while (begin > 0 && IsTailByte(text[begin])) --begin;
  return {Utf8Decode(text.substr(begin), at - begin), begin};
}

bool WordBefore(std::string_view text, size_t at) {
  return at > 0 && PropertiesOf(Before(text, at).first).is_regex_word();
}

bool WordAfter(std::string_view text, size_t at) {
  size_t length = Utf8SequenceLength(text.substr(at));
  return length > 0 && PropertiesOf(Utf8Decode(text.substr(at), length)).is_regex_word();
}

size_t SpacesBefore(std::string_view text, size_t at) {
  while (at > 0) {
    auto [c, begin] = Before(text, at);
    if (!PropertiesOf(c).is_space()) break;
    at = begin;
  }
  return at;
}

size_t SpacesAfter(std::string_view text, size_t at) {
  while (at < text.size()) {
    size_t length = Utf8SequenceLength(text.substr(at));
    if (!PropertiesOf(Utf8Decode(text.substr(at), length)).is_space()) break;
    at += length;
  }
  return at;
}

size_t PairIndex(char a, char b) {
  return size_t{static_cast<unsigned char>(a)} << 8 | static_cast<unsigned char>(b);
}

}  // namespace

bool WordFinder::Add(std::string_view word, TokenId id) {
  if (word.empty()) return false;
  uint32_t node = ByteTrie::kRoot;
  for (char c : word) {
    node = trie_.Child(node, static_cast<unsigned char>(c));
    if (node == ByteTrie::kNoNode) break;
  }
  if (node != ByteTrie::kNoNode && trie_.Value(node) >= 0) return true;
  if (!trie_.Add(word, id)) return false;
  ++count_;
  auto first = static_cast<unsigned char>(word[0]);
  first_bytes_ += is_first_[first] ? 0 : 1;
  is_first_[first] = true;
  only_first_ = first;
  if (word.size() == 1) {
    has_single_ = true;
    for (int next = 0; next < 256; ++next) is_pair_[size_t{first} << 8 | size_t(next)] = true;
  } else {
    is_pair_[PairIndex(word[0], word[1])] = true;
  }
  return true;
}

size_t WordFinder::NextCandidate(std::string_view text, size_t from) const {
  if (first_bytes_ == 1) {
    const void* found = std::memchr(text.data() + from, only_first_, text.size() - from);
    return found == nullptr ? text.size()
                            : static_cast<size_t>(static_cast<const char*>(found) - text.data());
  }
  while (from < text.size() && !is_first_[static_cast<unsigned char>(text[from])]) ++from;
  return from;
}

std::optional<WordFinder::Found> WordFinder::Find(std::string_view text, size_t from,
                                                  size_t* looked) const {
  for (size_t at = NextCandidate(text, from); at < text.size(); at = NextCandidate(text, at + 1)) {
    bool last = at + 1 == text.size();
    if (last ? !has_single_ : !is_pair_[PairIndex(text[at], text[at + 1])]) continue;
    std::optional<Found> longest;
    uint32_t node = ByteTrie::kRoot;
    size_t end = at;
    while (end < text.size()) {
      node = trie_.Child(node, static_cast<unsigned char>(text[end]));
      ++end;
      if (node == ByteTrie::kNoNode) break;
      if (TokenId id = trie_.Value(node); id >= 0) longest = Found{at, end, id};
    }
    *looked = std::max(*looked, node == ByteTrie::kNoNode ? end : end + 1);
    if (longest) return longest;
  }
  return std::nullopt;
}

void AddedTokens::BeginCall(size_t model_size) {
  next_id_ = std::max(static_cast<TokenId>(model_size), max_id_ + 1);
}

void AddedTokens::Add(AddedToken token, std::optional<TokenId> model_id, std::string normalized) {
  if (token.content.empty()) return;
  TokenId id = 0;
  if (auto known = by_content_.find(token.content); known != by_content_.end()) {
    id = known->second;
    if (auto entry = by_id_.find(id); entry != by_id_.end() && entry->second.token == token) return;
  } else {
    id = token.id ? *token.id : model_id ? *model_id : next_id_++;
  }
  max_id_ = std::max(max_id_, id);
  by_content_[token.content] = id;
  if (token.special) {
    specials_.insert(token.content);
    special_first_[static_cast<unsigned char>(token.content[0])] = true;
  }
  Entry& entry = by_id_[id];
  // The reference keeps a normal form that differs.
  const bool keeps = !token.normalized || normalized == token.content;
  if (!keeps || entry.text.empty() || entry.token.content != token.content) {
    entry.text = std::move(normalized);
  }
  entry.token = std::move(token);
}

Status AddedTokens::Seal() {
  std::vector<std::pair<bool, TokenId>> order;
  for (const auto& [id, entry] : by_id_) order.emplace_back(!entry.token.special, id);
  std::sort(order.begin(), order.end());
  for (const auto& [plain, id] : order) {
    const auto& [token, text] = by_id_.at(id);
    WordFinder& finder = token.normalized ? normalized_finder_ : raw_finder_;
    if (!token.normalized && (token.single_word || token.lstrip || token.rstrip)) {
      are_raw_words_ = false;
    }
    if (!finder.Add(token.normalized ? text : token.content, id)) {
      return Error(StatusCode::kInvalidArgument,
                   "the added token '" + token.content + "' is nothing once it is normalized");
    }
  }
  return OkStatus();
}

void AddedTokens::ForEachPart(std::string_view text, bool normalized, bool parse_special,
                              absl::FunctionRef<void(const Part&)> take) const {
  const WordFinder& finder = normalized ? normalized_finder_ : raw_finder_;
  size_t done = 0;
  size_t from = 0;
  size_t looked = 0;
  while (!finder.empty() && from < text.size()) {
    std::optional<WordFinder::Found> found = finder.Find(text, from, &looked);
    if (!found) break;
    from = found->end;
    const AddedToken& token = by_id_.at(found->id).token;
    if (!parse_special && specials_.contains(token.content)) continue;
    size_t begin = found->begin;
    size_t end = found->end;
    if (token.single_word && (WordBefore(text, begin) || WordAfter(text, end))) continue;
    if (token.lstrip) begin = std::max(SpacesBefore(text, begin), done);
    if (token.rstrip) end = SpacesAfter(text, end);
    if (done < begin) take(Part{done, begin, std::nullopt});
    // Nothing is left of a token whose text the one before took with its spaces.
    if (begin != end) take(Part{begin, end, found->id});
    done = end;
  }
  if (done != text.size()) take(Part{done, text.size(), std::nullopt});
}

void AddedTokens::Split(std::string_view text, bool normalized, bool parse_special,
                        std::vector<Part>* out) const {
  out->reserve(16);  // a short chat's special tokens and what lies between them
  ForEachPart(text, normalized, parse_special, [out](const Part& part) { out->push_back(part); });
}

std::optional<TokenId> AddedTokens::Find(std::string_view content) const {
  auto it = by_content_.find(std::string(content));
  if (it == by_content_.end()) return std::nullopt;
  return it->second;
}

const std::string* AddedTokens::TextOf(TokenId id) const {
  auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : &it->second.text;
}

}  // namespace portico::tokenizer
