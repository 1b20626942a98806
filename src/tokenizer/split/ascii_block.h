// Where the pieces of plain text begin, for 64 bytes at once. The scanners (scanner_inline.h) decide one piece after the
// other, and each decision waits for the one before it; here every byte's class is one bit of a word, and the split
// patterns are a few shifts of such words. Only ASCII is looked at, and only what is surely so is told: the scanners
// remain the law.
#pragma once

#include <bit>
#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace portico::tokenizer::scan {

// In what the split patterns differ, where text is ASCII.
struct SplitRules {
  bool contractions = false;  // 's, 't, 're … are pieces, or ends of pieces
  bool any_leads = false;  // not only a space, a tab or one mark too goes with the word behind it
  bool lines = false;      // \s*[\r\n]+, and [\r\n]* goes with the punctuation before it
  bool slashes = false;    // … as does a slash
  bool cased = false;      // a capital behind a small letter begins a piece
  int digits = 0;          // at most so many in a piece; 0: any number
  bool space_leads_digits = false;  // a space goes with the number behind it
  bool numbers_cut = false;         // numbers are cut out first: text before one ends there
};

inline constexpr SplitRules kGpt2Rules = {.contractions = true, .space_leads_digits = true};
template <int kDigits>
inline constexpr SplitRules kCl100kRules = {
    .contractions = true, .any_leads = true, .lines = true, .digits = kDigits};
inline constexpr SplitRules kO200kRules = {.contractions = true,
                                           .any_leads = true,
                                           .lines = true,
                                           .slashes = true,
                                           .cased = true,
                                           .digits = 3};
inline constexpr SplitRules kDeepSeekRules = {
    .any_leads = true, .lines = true, .digits = 3, .numbers_cut = true};

#if defined(__SSE2__)

#define PORTICO_HAS_ASCII_BLOCK 1

inline constexpr unsigned kBlockBytes = 64;

// The first `count` bits.
inline uint64_t FirstBits(unsigned count) {
  return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

// The classes of 64 bytes, the first byte in the lowest bit.
struct AsciiBlock {
  uint64_t upper = 0;
  uint64_t lower = 0;
  uint64_t digits = 0;
  uint64_t spaces = 0;
  uint64_t tabs = 0;
  uint64_t newlines = 0;  // line feeds
  uint64_t visible = 0;   // letters, digits and punctuation
  uint64_t apostrophes = 0;
  uint64_t slashes = 0;

  // Inlined, so that classes that nobody asks for are not found.
  [[gnu::always_inline]] explicit AsciiBlock(const char* text) {
    for (unsigned at = 0; at < kBlockBytes; at += kLanes) {
      Bytes bytes = Load(text + at);
      upper |= Bits(Within(bytes, 'A', 26), at);
      lower |= Bits(Within(bytes, 'a', 26), at);
      digits |= Bits(Within(bytes, '0', 10), at);
      spaces |= Bits(Equal(bytes, ' '), at);
      tabs |= Bits(Equal(bytes, '\t'), at);
      newlines |= Bits(Equal(bytes, '\n'), at);
      visible |= Bits(Within(bytes, '!', 94), at);
      apostrophes |= Bits(Equal(bytes, '\''), at);
      slashes |= Bits(Equal(bytes, '/'), at);
    }
  }

 private:
#if defined(__AVX2__)
  using Bytes = __m256i;
  static Bytes Load(const char* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static Bytes All(int b) { return _mm256_set1_epi8(static_cast<char>(b)); }
  static Bytes Equal(Bytes bytes, int b) { return _mm256_cmpeq_epi8(bytes, All(b)); }
  // first … first + count - 1: shifted so that they are the `count` least signed numbers.
  static Bytes Within(Bytes bytes, int first, int count) {
    return _mm256_cmpgt_epi8(All(count - 128), _mm256_sub_epi8(bytes, All(first + 128)));
  }
  static uint64_t Bits(Bytes found, unsigned at) {
    return uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(found))} << at;
  }
#else
  using Bytes = __m128i;
  static Bytes Load(const char* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
  static Bytes All(int b) { return _mm_set1_epi8(static_cast<char>(b)); }
  static Bytes Equal(Bytes bytes, int b) { return _mm_cmpeq_epi8(bytes, All(b)); }
  static Bytes Within(Bytes bytes, int first, int count) {
    return _mm_cmpgt_epi8(All(count - 128), _mm_sub_epi8(bytes, All(first + 128)));
  }
  static uint64_t Bits(Bytes found, unsigned at) {
    return uint64_t{static_cast<uint32_t>(_mm_movemask_epi8(found))} << at;
  }
#endif
  static constexpr unsigned kLanes = sizeof(Bytes);
};

struct BlockStarts {
  uint64_t starts;  // a bit for each byte that begins a piece, but not for the first
  unsigned known;   // bytes before the first that is not understood
};

// `text` begins a piece, and kBlockBytes can be read from it.
template <SplitRules kRules>
[[gnu::always_inline]] inline BlockStarts StartsOf(const char* text) {
  const AsciiBlock block(text);
  const uint64_t letters = block.upper | block.lower;
  const uint64_t digits = block.digits;
  const uint64_t spaces = block.spaces;
  const uint64_t newlines = block.newlines;
  const uint64_t blanks = spaces | block.tabs;
  const uint64_t white = blanks | newlines;
  const uint64_t marks = block.visible & ~(letters | digits);
  const auto before = [](uint64_t bits) { return bits << 1; };  // bytes that have such a one before
  const auto behind = [](uint64_t bits) { return bits >> 1; };  // … behind

  // Left to the scanner: other controls, what is not ASCII, an apostrophe that may begin a contraction, white space
  // before a line's end.
  uint64_t unknown = ~(block.visible | white);
  if (kRules.contractions) unknown |= block.apostrophes & ~before(marks | spaces);
  if (kRules.lines) unknown |= newlines & before(blanks);
  if (kRules.slashes) unknown |= block.slashes & before(newlines);
  const auto known = static_cast<unsigned>(std::countr_zero(unknown));

  uint64_t mark_starts = marks & ~before(marks | spaces);
  uint64_t word_starts = letters & ~before(letters | (kRules.any_leads ? blanks : spaces));
  if (kRules.any_leads) {
    word_starts &= ~before(mark_starts & ~behind(marks) & behind(letters));
  }
  if (kRules.cased) word_starts |= block.upper & before(block.lower);

  uint64_t digit_starts = digits;
  if (kRules.digits != 1) digit_starts &= ~before(digits);
  if (kRules.digits > 1) {
    for (uint64_t next = digit_starts; next != 0;) {
      uint64_t longer = next;
      for (int i = 0; i < kRules.digits; ++i) longer = before(longer) & digits;
      digit_starts |= next = longer;
    }
  }
  if (kRules.space_leads_digits) digit_starts &= ~before(spaces);

  // A run of white space is a piece but for its last character, which is one too or goes with what follows.
  uint64_t last = white & ~behind(white);
  if (kRules.numbers_cut) last &= ~behind(digits);
  uint64_t apart = white;
  if (kRules.lines) {
    // Line feeds right behind punctuation go with it: the sum carries through such a run.
    apart &= ~newlines | (newlines + (newlines & before(marks)));
    // Else they are a piece, and the spaces behind them begin another.
    last &= blanks;
    last |= blanks & before(newlines);
  }
  const uint64_t white_starts = (apart & ~before(apart)) | last;

  // What a run of white space at the end of the known bytes becomes is decided by what follows.
  const uint64_t inside = FirstBits(known);
  const auto run = static_cast<unsigned>(64 - std::countl_zero(~white & inside));
  const uint64_t decided = FirstBits(run + 1) & inside & ~uint64_t{1};
  return {(mark_starts | word_starts | digit_starts | white_starts) & decided, known};
}

#endif  // __SSE2__

}  // namespace portico::tokenizer::scan
