// Where the tokens of an encode lie in its text. An encoder tells the bytes of each token, stretch by stretch; characters
// are counted, and spaces left out, a stretch at a time. What a stretch that is remembered (text_cache.h) tells about its
// places is kept with it: sixteen bits a number, counted from where it begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/cache/text_cache.h"
#include "tokenizer/encoding.h"
#include "tokenizer/split/char_begins.h"

namespace portico::tokenizer {

// What is wanted of each token; null where it is not.
struct PlaceLists {
  std::vector<Span>* bytes = nullptr;
  std::vector<Span>* chars = nullptr;
  std::vector<int32_t>* words = nullptr;
  bool texts = false;  // of the tokens that do not show what the vocabulary has
};

// The encoder's view where places are not wanted.
struct NoPlaces {
  static constexpr bool kWanted = false;
  struct Mark {};
  Mark BeginStretch(const char*) { return {}; }
  void Hold() {}
  void Release() {}
  void AddWhole(const char*, const char*) {}
  void EndStretch(const char*, const char*) {}
  bool Copy(const char*, const TextCache::Found&) { return true; }
  bool MayKeep() const { return true; }
  std::span<const uint32_t> Pack(const Mark&, size_t) { return {}; }
};

class PlaceSink {
 public:
  static constexpr bool kWanted = true;

  // `trims`: spaces are no part of a token's place.
  PlaceSink(std::string_view text, const PlaceLists& lists, bool trims);
  ~PlaceSink();
  PlaceSink(const PlaceSink&) = delete;
  PlaceSink& operator=(const PlaceSink&) = delete;

  // In each of these the pointers are into the text, or into the copy of BeginPrefixed().

  // A stretch, or all that is left, goes from BeginStretch() to EndStretch(); stretches follow one another without gaps.
  struct Mark {
    size_t place;
    uint32_t byte;
    uint32_t character;
    uint32_t words;
  };
  Mark BeginStretch(const char* begin) {
    if (!held_) Drop();
    return {count_, ByteAt(begin), chars_, words_};
  }
  // What follows belongs to a word of its own.
  void BeginWord() { ++words_; }
  // The next token stands for [begin, end), whole characters.
  void Add(const char* begin, const char* end) {
    if (count_ == own_.bytes.size()) Grow(1);
    own_.bytes[count_] = {ByteAt(begin), ByteAt(end)};
    own_.words[count_] = words_;
    ++count_;
  }
  // The last token added shows `text`, not what the vocabulary has.
  void SetText(std::string_view text) {
    has_texts_ = true;
    if (out_.texts) texts_.emplace_back(told_ + count_ - done_ - 1, text);
  }
  // The places of the stretch hang on what is in front of it.
  void HangOnFront() { hang_on_front_ = true; }
  void EndStretch(const char* begin, const char* end) { EndStretchOf<false>(begin, end); }

  // The same for many tokens at once: what `bytes` and `words` point to is to be filled in for each before the next call.
  // The words count from words() on, and matter only where it is so said; AddWords() counts them. A token may be a part
  // of a character, and stands for all of it from EndStretchOfParts() on.
  struct Rows {
    Span* bytes;
    uint32_t* words;
  };
  Rows AddTokens(size_t count) {
    if (own_.bytes.size() - count_ < count) Grow(count);
    count_ += count;
    return {own_.bytes.data() + count_ - count, own_.words.data() + count_ - count};
  }
  bool WantsWords() const { return out_.words != nullptr || held_; }
  void AddWords(size_t count) { words_ += static_cast<uint32_t>(count); }
  void EndStretchOfParts(const char* begin, const char* end) { EndStretchOf<true>(begin, end); }

  // A stretch that is one token, the spaces around it no part of its place where this trims.
  void AddWhole(const char* begin, const char* end);
  // A stretch [begin, end) whose tokens stand for these bytes of the whole text, in `count` words from 0 on.
  void AddStretch(const char* begin, const char* end, std::span<const Span> bytes,
                  std::span<const int32_t> words, uint32_t count);

  // Whether the places since the mark may be told of the same bytes elsewhere.
  bool MayKeep() const { return !hang_on_front_; }
  // The places of the `bytes` since the mark, at most TextCache::kMost; valid until the next Pack().
  std::span<const uint32_t> Pack(const Mark& mark, size_t bytes);
  // A stretch that is remembered, instead of telling it. False, and nothing, where it lacks what is wanted.
  bool Copy(const char* begin, const TextCache::Found& found);

  // The stretch that begins is made of stretches: what they tell is kept for a Pack() of all of them before Release().
  void Hold() { held_ = true; }
  void Release() { held_ = false; }

  // `copy` is the text from `original` on with a space in front, which stands for the first character.
  void BeginPrefixed(const char* copy, const char* original);
  void EndPrefixed();

  // Where `p` is in the whole text. The space in front, where there is one, is the byte before the first, which may wrap
  // around.
  uint32_t ByteAt(const char* p) const { return base_ + static_cast<uint32_t>(p - origin_); }
  // How many tokens were told of, and the texts of some by their number.
  size_t size() const { return told_; }
  uint32_t words() const { return words_; }
  const std::vector<std::pair<size_t, std::string>>& texts() const { return texts_; }

 private:
  // Handed on to the thread's next sink, so that a short text does not wait for a dozen allocations.
  struct Lists {
    // A token each, and room for more.
    std::vector<Span> bytes;
    std::vector<Span> chars;
    std::vector<uint32_t> words;  // begun with the token
    std::vector<uint32_t> packed;
    CharBlocks blocks;
  };
  static constexpr size_t kMostKept = 4096;          // tokens
  static constexpr size_t kMostKeptBytes = 1 << 18;  // of a stretch
  static Lists& Spare();

  template <typename F>
  void ForEachList(F f) const;
  void Drop();
  void Grow(size_t count);
  template <bool kParts>
  void EndStretchOf(const char* begin, const char* end);
  template <bool kParts>
  void CountChars(std::string_view stretch, uint32_t from);
  void Emit();

  const size_t text_size_;
  const char* origin_;
  uint32_t base_ = 0;   // of the origin, in bytes of the whole text
  uint32_t chars_ = 0;  // before the stretch
  uint32_t words_ = 0;  // begun so far
  size_t told_ = 0;
  const PlaceLists out_;
  const bool trims_;
  std::vector<std::pair<size_t, std::string>> texts_;

  // Of the stretch, or of all since Hold().
  bool held_ = false;
  bool has_texts_ = false;
  bool hang_on_front_ = false;
  size_t count_ = 0;  // tokens
  size_t done_ = 0;   // so many are told of
  Lists own_;

  // What BeginPrefixed() found.
  struct Outer {
    const char* origin;
    uint32_t base;
    size_t told;
    size_t bytes;  // in the lists that are wanted
    size_t chars;
    size_t place;
    uint32_t first_length;  // of the first character
  };
  Outer outer_{};
};

}  // namespace portico::tokenizer
