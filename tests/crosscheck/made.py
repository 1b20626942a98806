"""Tokenizers with parts chosen at random, trained here on generated text by the `tokenizers` package."""
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import texts

BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
PATTERNS = [r"\d+", r"\w+|[^\w\s]+", r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", r"[一-龥]+", r"\s+",
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            r"[A-Z][a-z]*", r"\p{Lu}\p{Ll}+", r".", r"[^a]"]
SPECIAL = ["<unk>", "<s>", "</s>", "[CLS]", "[SEP]", "[PAD]"]


def normalizer(random, depth=0):
    kind = random.randrange(13 if depth == 0 else 12)
    if kind == 12:
        return normalizers.Sequence([normalizer(random, 1) for _ in range(random.randint(2, 3))])
    flag = lambda: random.random() < 0.5
    return [normalizers.NFC, normalizers.NFD, normalizers.NFKC, normalizers.NFKD, normalizers.Lowercase, normalizers.StripAccents,
            lambda: normalizers.Strip(left=flag(), right=flag()),
            lambda: normalizers.BertNormalizer(flag(), flag(), random.choice([None, True, False]), flag()),
            lambda: normalizers.Replace(random.choice([" ", "``", "a", "\n"]), random.choice(["▁", '"', "", "é ", "ab"])),
            lambda: normalizers.Replace(Regex(random.choice([r" {2,}", r"[aeiou]", r"\s+", r"\d"])), random.choice(["▁", " ", "", "xy"])),
            lambda: normalizers.Prepend(random.choice(["▁", "x", " "])),
            normalizers.Nmt][kind]()


def pre_tokenizer(random, depth=0):
    kind = random.randrange(12 if depth == 0 else 11)
    if kind == 11:
        return pre_tokenizers.Sequence([pre_tokenizer(random, 1) for _ in range(random.randint(2, 3))])
    flag = lambda: random.random() < 0.5
    def split():
        pattern = Regex(random.choice(PATTERNS)) if flag() else random.choice([" ", "a", "''", "▁"])
        return pre_tokenizers.Split(pattern, random.choice(BEHAVIORS), invert=flag())
    return [pre_tokenizers.Whitespace, pre_tokenizers.WhitespaceSplit, pre_tokenizers.BertPreTokenizer,
            lambda: pre_tokenizers.Punctuation(random.choice(BEHAVIORS)), lambda: pre_tokenizers.Digits(flag()),
            lambda: pre_tokenizers.CharDelimiterSplit(random.choice([" ", "-", "e"])), split, split, pre_tokenizers.UnicodeScripts,
            lambda: pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=random.choice(["always", "never", "first"]), split=flag()),
            lambda: pre_tokenizers.FixedLength(random.randint(1, 7))][kind]()


def byte_level(random):
    flag = lambda: random.random() < 0.5
    choice = random.randrange(4)
    if choice == 0:
        return pre_tokenizers.ByteLevel(add_prefix_space=flag(), trim_offsets=flag(), use_regex=flag())
    if choice == 1:
        digits = pre_tokenizers.Digits(flag())
        return pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=flag(), use_regex=flag())])
    pattern = random.choice(PATTERNS)
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), random.choice(["isolated", "removed"]), invert=False),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def post_processor(random, tokenizer):
    flag = lambda: random.random() < 0.5
    ids = {name: tokenizer.token_to_id(name) for name in SPECIAL}
    if any(i is None for i in ids.values()):
        return None
    cls, sep = ("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])
    kind = random.randrange(6)
    if kind == 0:
        return processors.BertProcessing(sep, cls)
    if kind == 1:
        return processors.RobertaProcessing(sep, cls, trim_offsets=flag(), add_prefix_space=flag())
    if kind == 2:
        return processors.ByteLevel(trim_offsets=flag())
    template = processors.TemplateProcessing(single=random.choice(["<s> $A", "$A </s>", "[CLS] $A [SEP]", "$A", "$A [SEP] $A:1"]),
                                             pair=random.choice(["<s> $A <s> $B:1", "[CLS] $A [SEP] $B:1 [SEP]:1", "$B $A:1"]),
                                             special_tokens=[(name, ids[name]) for name in SPECIAL])
    if kind == 3:
        return processors.Sequence([processors.ByteLevel(trim_offsets=flag()), template])
    return template if kind == 4 else None


def decoder(random, family):
    if family == "byte_level":
        return decoders.ByteLevel()
    spm = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return random.choice([spm, decoders.Metaspace(prepend_scheme=random.choice(["always", "never"])), decoders.WordPiece(), decoders.BPEDecoder(),
                          decoders.WordPiece(cleanup=False), decoders.CTC(), decoders.Fuse(), None])


def add_tokens(random, tokenizer):
    flag = lambda: random.random() < 0.4
    for content in random.sample(["<|end|>", "the", " and", "e\u0301", "  ", "[MASK]", "<tool call>", "Zé", "\n\n", "of", "Ab", "1"], 4):
        # Portico refuses a token that is nothing once it is normalized, which the reference finds between any two characters.
        left = tokenizer.normalizer.normalize_str(content) if tokenizer.normalizer else content
        normalized = flag() and bool(left.strip())
        token = AddedToken(content, single_word=flag(), lstrip=flag(), rstrip=flag(), normalized=normalized)
        tokenizer.add_special_tokens([token]) if flag() else tokenizer.add_tokens([token])


def make(random, family):
    """A trained tokenizer of the family: byte_level, byte_fallback, bpe, unigram, wordpiece, wordlevel."""
    corpus = texts.prose(random, 600)
    options = {"special_tokens": SPECIAL, "show_progress": False}
    size = random.randint(350, 900)
    if family == "byte_level":
        tokenizer = Tokenizer(models.BPE(ignore_merges=random.random() < 0.3))
        tokenizer.pre_tokenizer = byte_level(random)
        trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **options)
        if random.random() < 0.4:
            tokenizer.normalizer = random.choice([normalizers.NFC(), normalizers.NFKC(), normalizers.Lowercase()])
    elif family == "byte_fallback":
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        options["special_tokens"] = SPECIAL + ["<0x%02X>" % b for b in range(256)]
        if random.random() < 0.5:
            tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        else:
            tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=random.choice(["always", "first", "never"]),
                                                               split=random.random() < 0.5)
        trainer = trainers.BpeTrainer(vocab_size=size + 256, limit_alphabet=150, max_token_length=12, **options)
    else:
        if random.random() < 0.7:
            tokenizer_normalizer = normalizer(random)
        else:
            tokenizer_normalizer = None
        if family == "bpe":
            end = random.random() < 0.4
            model = models.BPE(unk_token=random.choice(["<unk>", None]), fuse_unk=random.random() < 0.5,
                               **({"end_of_word_suffix": "</w>"} if end else {}))
            trainer = trainers.BpeTrainer(vocab_size=size, limit_alphabet=120, **({"end_of_word_suffix": "</w>"} if end else
                                          {"continuing_subword_prefix": "##"} if random.random() < 0.3 else {}), **options)
        elif family == "unigram":
            model = models.Unigram()
            corpus = [texts.words(random) for _ in corpus]  # it wants room for every character
            trainer = trainers.UnigramTrainer(vocab_size=size, unk_token="<unk>", **options)
        elif family == "wordpiece":
            model = models.WordPiece(unk_token="<unk>", max_input_chars_per_word=random.choice([100, 12]))
            trainer = trainers.WordPieceTrainer(vocab_size=size, limit_alphabet=150, **options)
        else:
            model = models.WordLevel(unk_token="<unk>")
            trainer = trainers.WordLevelTrainer(vocab_size=size, **options)
        tokenizer = Tokenizer(model)
        if tokenizer_normalizer is not None:
            tokenizer.normalizer = tokenizer_normalizer
        if family != "unigram" or random.random() < 0.8:
            tokenizer.pre_tokenizer = pre_tokenizer(random)
    tokenizer.train_from_iterator(corpus, trainer)
    processor = post_processor(random, tokenizer)
    if processor is not None:
        tokenizer.post_processor = processor
    chosen = decoder(random, family)
    if chosen is not None:
        tokenizer.decoder = chosen
    if random.random() < 0.7:
        add_tokens(random, tokenizer)
    # As it reads its own file: the scores of a Unigram in memory are not those that it writes.
    return Tokenizer.from_str(tokenizer.to_str())
