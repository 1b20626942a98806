"""What two tokenizers say about the same text, held against each other."""
import json

FIELDS = ["ids", "tokens", "offsets", "type_ids", "attention_mask", "special_tokens_mask", "word_ids", "sequence_ids", "n_sequences"]


def answer(call):
    """(True, value) or (False, the sentence). A panic of the reference is None: it has no answer."""
    try:
        return True, call()
    except Exception as error:
        return False, str(error)
    except BaseException as error:  # PyO3's PanicException is no Exception
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return None


def fields(encoding):
    return {name: getattr(encoding, name) for name in FIELDS} | {"overflowing": [fields(e) for e in encoding.overflowing]}


def parts(tokenizer):
    """A tokenizer's JSON without its vocabulary, for a message."""
    data = json.loads(tokenizer.to_str())
    for name in ("vocab", "merges"):
        data["model"].pop(name, None)
    return json.dumps(data, ensure_ascii=False)


class Differences:
    """Collects what differs; the test fails with the first few."""

    def __init__(self, limit=5):
        self.found, self.count, self.limit = [], 0, limit

    def note(self, *lines):
        self.count += 1
        if len(self.found) < self.limit:
            self.found.append("\n  ".join(str(line)[:1500] for line in lines))

    def check(self):
        assert not self.count, f"{self.count} differences; the first:\n" + "\n".join(self.found)


def same(differences, what, text, theirs, ours, show=""):
    if theirs is None:
        return
    if theirs[0] != ours[0] or (theirs[0] and theirs[1] != ours[1]):
        left, right = theirs[1], ours[1]
        if isinstance(left, dict) and isinstance(right, dict):
            name = next(n for n in left if left[n] != right[n])
            left, right = (f"{name}: {value[name]!r}" for value in (left, right))
        differences.note(f"{what}: {text!r}", f"reference {left}", f"portico   {right}", show)
