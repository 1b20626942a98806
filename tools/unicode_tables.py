#!/usr/bin/env python3
"""Writes src/text/unicode_tables.cc: what Hugging Face `tokenizers` takes each character for.

The reference mixes several Unicode versions (its regex engine, Rust's own tables and two older crates), so the
tables are asked from the package itself, one character at a time.  pip install tokenizers==0.23.3 fonttools==4.68.0
(which lists the names of scripts and blocks), then run.
"""
import pathlib
import unicodedata

from fontTools.unicodedata import Blocks, Scripts
from tokenizers import Regex, normalizers, pre_tokenizers

CATEGORIES = ("Cn Cc Cf Co Cs Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp").split()
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
FLAGS = ("word", "regex_word", "space", "numeric", "punctuation", "other", "nonspacing", "combining")
# Properties of a pattern that are no general category.
BINARY = ("alphabetic alpha uppercase upper lowercase lower alnum blank cntrl graph print xdigit ascii any assigned "
          "whitespace dash hyphen quotationmark terminalpunctuation sentenceterminal math otheralphabetic hexdigit asciihexdigit "
          "ideographic unifiedideograph radical diacritic extender cased caseignorable changeswhenlowercased changeswhenuppercased "
          "changeswhentitlecased changeswhencasefolded changeswhencasemapped idstart idcontinue xidstart xidcontinue "
          "defaultignorablecodepoint graphemebase graphemeextend graphemelink joincontrol variationselector patternsyntax "
          "patternwhitespace noncharactercodepoint deprecated softdotted logicalorderexception regionalindicator emoji "
          "emojipresentation emojimodifier emojimodifierbase emojicomponent extendedpictographic bidicontrol").split()
HERE = pathlib.Path(__file__).resolve().parent.parent / "src" / "text"


def removed(split):
    found = set()
    for i in range(0, len(POINTS), 50000):
        points = POINTS[i:i + 50000]
        kept = set()
        for _, (begin, end) in split.pre_tokenize_str("".join(map(chr, points))):
            kept.update(range(begin, end))
        found.update(c for k, c in enumerate(points) if k not in kept)
    return found


def pattern(regex):
    return removed(pre_tokenizers.Split(Regex(regex), "removed"))


def erased(normalizer):
    return {c for c in POINTS if normalizer.normalize_str(chr(c)) == ""}


def split_off(pre_tokenizer):
    return {c for c in POINTS if len(pre_tokenizer.pre_tokenize_str("a" + chr(c))) == 2}


def runs(value):
    out = []
    for c in range(0x110000):
        v = value.get(c, 0)
        if out and out[-1][1] == v:
            out[-1][0] += 1
        else:
            out.append([1, v])
    return out


def lines(numbers, width=100):
    line = "   "
    for n in numbers:
        item = " %d," % n
        if len(line) + len(item) > width:
            yield line
            line = "   "
        line += item
    yield line


def array(name, numbers, kind="uint32_t"):
    numbers = list(numbers)
    yield "const %s %s[] = {" % (kind, name)
    yield from lines(numbers)
    yield "};"
    yield "const size_t %sSize = %d;" % (name, len(numbers))
    yield ""


def normal_forms():
    """Where the reference (an older Unicode) differs from the newest that a system library may have: the characters
    it decomposes, composes and reorders are listed, all others stay as they are."""
    nfd, nfkd, nfc = normalizers.NFD(), normalizers.NFKD(), normalizers.NFC()
    hangul = range(0xAC00, 0xAC00 + 11172)
    canonical, compatible, pairs, classes = [], [], [], []
    for c in POINTS:
        if c in hangul:
            continue
        d, k = nfd.normalize_str(chr(c)), nfkd.normalize_str(chr(c))
        if d != chr(c):
            canonical.append((c, d))
            if len(d) > 1 and nfc.normalize_str(d) == chr(c):
                pairs.append((nfc.normalize_str(d[:-1]), d[-1], c))
        if k != d:
            compatible.append((c, k))
    # The combining class: the largest known class that the character is moved before.
    probes = {unicodedata.combining(chr(c)): chr(c) for c in sorted(POINTS, reverse=True)
              if unicodedata.combining(chr(c)) and unicodedata.normalize("NFD", chr(c)) == chr(c) and c < 0x1200}
    for c in POINTS:
        guess = unicodedata.combining(chr(c))
        x = chr(c)
        if guess and nfd.normalize_str(x) == x:
            above = [p for k, p in probes.items() if k > guess]
            below = [p for k, p in probes.items() if k < guess]
            moved = [nfd.normalize_str("a" + p + x) == "a" + x + p for p in above[:1]] + \
                    [nfd.normalize_str("a" + x + p) == "a" + p + x for p in below[:1]]
            if all(moved):
                classes.append((c, guess))
    return canonical, compatible, pairs, classes


def scripts():
    """The class of each character to the UnicodeScripts pre-tokenizer; 0 for one that never begins a piece."""
    split = pre_tokenizers.UnicodeScripts()
    known, found, last = [], {}, None
    for c in POINTS:
        x = chr(c)
        if not split.pre_tokenize_str(x):
            continue
        same = [k for k in ([last] if last is not None else []) if len(split.pre_tokenize_str(known[k] + x)) == 1]
        if not same:
            same = [k for k in range(len(known)) if len(split.pre_tokenize_str(known[k] + x)) == 1][:1]
        if not same:
            known.append(x)
            same = [len(known) - 1]
        last = same[0]
        found[c] = last + 1
    return found


def plain(name):
    return "".join(c for c in name.lower() if c not in " _-")


def named_sets():
    """(name, code points) of what the regex engine knows beside general categories."""
    names = [*BINARY, *(plain(n) for pair in Scripts.NAMES.items() for n in pair),
             *("in" + plain(block) for block in Blocks.VALUES)]
    for name in sorted(set(names)):
        try:
            yield name, pattern(r"\p{%s}" % name)
        except Exception:  # it does not know the name
            pass


def properties():
    """The lines of two arrays: names with where their runs are, and the runs: a gap and a length, by turns."""
    numbers, seen, rows = [], {}, []
    for name, members in named_sets():
        lengths = [length for length, _ in runs(dict.fromkeys(members, 1))]
        lengths = tuple(lengths if 0 not in members else [0, *lengths])
        if lengths not in seen:
            seen[lengths] = len(numbers)
            numbers += lengths
        rows.append('    {"%s", %d, %d},' % (name, seen[lengths], len(lengths)))
    return [*array("kPropertyGaps", numbers), "const NamedProperty kNamedProperties[] = {", *rows, "};",
            "const size_t kNamedPropertiesSize = %d;" % len(rows), ""]


def main():
    category = {}
    for i, name in enumerate(CATEGORIES):
        for c in pattern(r"\p{%s}" % name):
            category[c] = i
    for c in range(0xD800, 0xE000):
        category[c] = CATEGORIES.index("Cs")
    space = removed(pre_tokenizers.WhitespaceSplit())
    words = pre_tokenizers.Whitespace()
    flags = {
        "word": pattern(r"\w"),
        "regex_word": {c for c in POINTS if c not in space and len(words.pre_tokenize_str("a" + chr(c))) == 1},
        "space": space,
        "numeric": split_off(pre_tokenizers.Digits(individual_digits=True)),
        "punctuation": split_off(pre_tokenizers.Punctuation()),
        "other": erased(normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False,
                                                   lowercase=False)),
        "nonspacing": erased(normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False,
                                                        strip_accents=True, lowercase=False)),
        "combining": erased(normalizers.StripAccents()),
    }
    bits = {}
    for i, name in enumerate(FLAGS):
        for c in flags[name]:
            bits[c] = bits.get(c, 0) | 1 << i
    lower = normalizers.Lowercase()
    mapped = [(c, lower.normalize_str(chr(c))) for c in POINTS]
    mapped = [(c, ord(m)) for c, m in mapped if len(m) == 1 and ord(m) != c]
    deltas = []  # (first, count, step, difference)
    for c, m in mapped:
        last = deltas[-1] if deltas else None
        if last and m - c == last[3] and c - (last[0] + (last[1] - 1) * last[2]) == (last[2] or c - last[0]):
            last[1] += 1
        elif last and last[1] == 1 and m - c == last[3] and c - last[0] in (1, 2):
            last[1], last[2] = 2, c - last[0]
        else:
            deltas.append([c, 1, 1, m - c])

    head = ['// Generated by tools/unicode_tables.py; see text/unicode.h.', '#include "text/unicode_tables.h"', "",
            "namespace portico::unicode_tables {", "", "// clang-format off"]
    tail = ["// clang-format on", "}  // namespace portico::unicode_tables", ""]

    def write(name, *arrays):
        (HERE / name).write_text("\n".join(head + [l for a in arrays for l in a] + tail))

    write("unicode_categories.cc",
          array("kCategoryRuns", (n for run in runs(category) for n in run)),
          array("kFlagRuns", (n for run in runs(bits) for n in run)),
          array("kLowercase", (n for d in deltas for n in d), "int32_t"))
    canonical, compatible, pairs, classes = normal_forms()

    def flat(table):
        return (n for c, text in table for n in (c, len(text), *map(ord, text)))
    write("unicode_canonical.cc", array("kCanonical", flat(canonical)),
          array("kCompositions", (n for a, b, c in pairs for n in (ord(a), ord(b), c))),
          array("kCombiningRuns", (n for run in runs(dict(classes)) for n in run)))
    write("unicode_compatible.cc", array("kCompatible", flat(compatible)))
    write("unicode_scripts.cc", array("kScriptRuns", (n for run in runs(scripts()) for n in run)))
    write("unicode_properties.cc", properties())


if __name__ == "__main__":
    main()
