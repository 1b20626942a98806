"""Texts made at random: scripts, controls, emoji, joiners, combining marks, private use, long runs."""

# Blocks of code points, of which a text takes a few.
SCRIPTS = [(0x20, 0x7E), (0xA0, 0xFF), (0x100, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x531, 0x58F), (0x591, 0x5F4),
           (0x600, 0x6FF), (0x700, 0x74F), (0x900, 0x97F), (0x980, 0x9FF), (0xB80, 0xBFF), (0xE01, 0xE5B),
           (0xE81, 0xEDF), (0xF00, 0xFDA), (0x1000, 0x109F), (0x10A0, 0x10FF), (0x1100, 0x11FF), (0x1200, 0x137F),
           (0x13A0, 0x13FD), (0x1780, 0x17F9), (0x1800, 0x18AA), (0x1E00, 0x1EFF), (0x1F00, 0x1FFE), (0x2150, 0x218B),
           (0x2C60, 0x2C7F), (0x3040, 0x30FF), (0x3105, 0x312F), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA000, 0xA48C),
           (0xAC00, 0xD7A3), (0xF900, 0xFAD9), (0xFB00, 0xFDFF), (0xFE70, 0xFEFC), (0xFF01, 0xFFEE), (0x10330, 0x1034A),
           (0x10400, 0x1044F), (0x11000, 0x1106F), (0x1D400, 0x1D7FF), (0x1E900, 0x1E95F), (0x20000, 0x2A6DF)]
MARKS = [(0x300, 0x36F), (0x483, 0x489), (0x591, 0x5BD), (0x64B, 0x65F), (0x93A, 0x94F), (0xE31, 0xE3A), (0x1AB0, 0x1ACE),
         (0x20D0, 0x20F0), (0x3099, 0x309A), (0xFE20, 0xFE2F)]
SYMBOLS = [(0x2000, 0x206F), (0x20A0, 0x20C0), (0x2100, 0x214F), (0x2190, 0x21FF), (0x2200, 0x22FF), (0x2460, 0x24FF),
           (0x2500, 0x25FF), (0x2600, 0x27BF), (0x3000, 0x303F), (0xFE10, 0xFE6B), (0x1F000, 0x1F0FF)]
EMOJI = [(0x1F300, 0x1F64F), (0x1F680, 0x1F6FF), (0x1F900, 0x1F9FF), (0x1FA70, 0x1FAFF)]
JOINERS = ["\u200d", "\u200c", "\ufe0f", "\ufe0e", "\u2060", "\u00ad", "\u034f", "\U0001f3fb", "\U0001f3ff", "\u200b", "\ufeff"]
SPACES = [" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2003", "\u2028", "\u0085", " \n ", "\x0b", "\x0c", "\u1680", "\u202f"]
CONTROLS = [chr(c) for c in range(0x20)] + [chr(c) for c in range(0x7F, 0xA0)] + ["\u202e", "\u2066", "\ufffd", "\ufffe", "\uffff"]
WORDS = ("the of and a to in is you that it was for on are as with his they at be this have from or one had by word but not what all "
         "were we when your can said there use an each which she do how their if will up other about out many then them these so "
         "I'm don't it's we'll THEY'RE isn't 's 'S 're ﬁre naïve Straße İstanbul ΣΟΦΟΣ café e\u0301 \u1e9b\u0323 "
         "def return lambda == != -> :: {} [] () // /* */ #include <s> </s> <unk> [CLS] [MASK] <|end|> http://a.b/c?d=1&e=2 "
         "1 12 123 1234 3.14 1,000,000 ½ ² Ⅷ ٣٤ 2026-11-21 0x1F user@host _under_score camelCase "
         "▁ ▁▁ ▁a Ġ Ċ ## ##ing <0x0A> <0xE2> \\n %s").split()


def between(random, blocks):
    low, high = random.choice(blocks)
    return chr(random.randint(low, high))


def words(random):
    return random.choice(SPACES[:4]).join(random.choice(WORDS) for _ in range(random.randint(1, 12)))


def script(random):
    block = random.choice(SCRIPTS)
    return "".join(" " if random.random() < 0.15 else between(random, [block]) for _ in range(random.randint(1, 25)))


def marked(random):
    return "".join(between(random, SCRIPTS) + "".join(between(random, MARKS) for _ in range(random.randint(0, 3)))
                   for _ in range(random.randint(1, 8)))


def emoji(random):
    return "".join(between(random, EMOJI) + (random.choice(JOINERS) if random.random() < 0.5 else "")
                   for _ in range(random.randint(1, 8)))


def run(random):
    unit = random.choice([" ", "a", "\n", "=", "-", "1", "é", "哈", "😀", "\u0301", "\u200d", "ab", " a", "\r\n", "▁", "!", "\u00a0"])
    length = random.choice([3, 8, 16, 17, 63, 64, 65, 200, 700])
    return unit * length


def anything(random):
    out = []
    for _ in range(random.randint(1, 12)):
        c = random.randrange(0x110000)
        out.append("\ufffd" if 0xD800 <= c < 0xE000 else chr(c))
    return "".join(out)


def private(random):
    return "".join(between(random, [(0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD)]) for _ in range(random.randint(1, 5)))


MAKERS = [words, words, words, script, script, marked, emoji, run, anything, private,
          lambda r: between(r, SYMBOLS), lambda r: r.choice(SPACES), lambda r: r.choice(CONTROLS), lambda r: r.choice(JOINERS)]


def text(random):
    """A text of a few parts; now and then none."""
    if random.random() < 0.01:
        return ""
    return "".join(random.choice(MAKERS)(random) for _ in range(random.choice([1, 1, 2, 3, 5])))


def prose(random, count):
    """Something to train on: mostly words."""
    return [words(random) if random.random() < 0.8 else text(random) for _ in range(count)]
