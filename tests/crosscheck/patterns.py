"""Split patterns made at random: classes, properties, groups, looks around, quantifiers, in Oniguruma's syntax."""
ATOMS = [*r"\d \w \s \S \W \D \h . a b é ' _ \n \r \t \. \- \x41 \x{e9} \R \N \u00e9 \012 ^ $ \b \B \A".split(), " ", "(?i:k)",
         *(r"\p{%s}" % name for name in "L Lu Ll N Nd P S M Z C Han Hiragana Katakana Latin Cyrillic Greek Arabic Common Emoji Alpha Upper Lower "
                                        "Punct Alnum Letter Uppercase_Letter Other_Symbol In_CJK_Unified_Ideographs ^L ^Han".split()),
         r"\P{L}", "[a-z]", "[^a-z]", "[一-龥]", r"[\p{L}\d]", r"[^\s\p{L}\p{N}]", r"[\w&&[^a]]", r"[\p{L}&&[^\p{Han}]]", "[a[x-z]]", "[^[a-c]x]",
         "[-a]", r"[a\-z]", r"[\]]", "[A-Za-zÀ-ÿ]", r"[\x{3040}-\x{30ff}]", r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", "[^k]",
         *(f"[[:{name}:]]" for name in "alpha punct space digit alnum upper lower blank cntrl graph print xdigit word ascii ^alpha".split())]
QUANTIFIERS = ["+", "*", "?", "{1,3}", "{2}", "{2,}", "{,2}", "+?", "*?", "??", "++", "*+", "{2}?", "{1,2}?", "{2}+", "**", "+?*", "*??", "?+", "{2,1}",
               "{2}{1,2}", "+{2}"]
OF_GROUPS = ["", "", "+", "?", "*", "+?", "??", "*?"]


def pattern(random, depth=0):
    kind = random.randrange(12)
    inner = lambda: pattern(random, depth + 1)
    atom = random.choice(ATOMS)
    if depth > 2 or kind < 4:
        return atom
    if kind < 7:
        return atom + random.choice(QUANTIFIERS)
    if kind == 7:
        return random.choice([f"(?:{inner()}|{inner()})", f"(?:{inner()})", f"({inner()})"]) + random.choice(OF_GROUPS)
    if kind == 8:
        return random.choice(["(?=", "(?!", "(?<=", "(?<!"]) + random.choice(ATOMS) + ")" + inner()
    if kind == 9:
        return f"(?i:{inner()})" if random.random() < 0.7 else f"(?i){inner()}"
    if kind == 10:
        return random.choice(["(", "(?>", "(?<n>"]) + inner() + ")"
    return inner() + (random.choice(["", "|"])) + inner()
