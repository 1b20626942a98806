"""Asks an exported folder held-back questions and prints how many it answers right.

An answer is right when greedy decoding gives exactly one of the accepted texts. One pass over
question and answer shows that where each token, the end of the turn included, is the likeliest one
after those before it. Where one is not, the answer is decoded, as other tokens can make the same
text. Exit status 1 when fewer than 95 % are right."""

import argparse
import random
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer

from conversations import (CATEGORIES, episode, prompt_of, system_prompt, thinking, tools_and_turns)
from model import load

THINKING = "thinking first"
CALLS, REPLIES = "tool calls", "answers after a tool"
BAR = 0.95


class Greedy:
    def __init__(self, folder: Path):
        self.model = load(folder)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.end = self.tokenizer.token_to_id("<|im_end|>")
        self.pad = self.tokenizer.token_to_id("<|endoftext|>")

    @torch.no_grad()
    def agrees(self, pairs):
        """For each (prompt, answer): does greedy decoding give this answer?"""
        done = {}
        rows = []
        for at, (prompt, answer) in enumerate(pairs):
            head = self.tokenizer.encode(prompt).ids
            rows.append((head + self.tokenizer.encode(answer).ids + [self.end], len(head), at))
        rows.sort(key=lambda row: len(row[0]))
        for first in range(0, len(rows), 32):
            part = rows[first:first + 32]
            width = max(len(ids) for ids, _, _ in part)
            tokens = torch.tensor([ids + [self.pad] * (width - len(ids)) for ids, _, _ in part])
            hidden = self.model.hidden(tokens)
            for row, (ids, head, at) in enumerate(part):
                best = self.model.logits(hidden[row, head - 1:len(ids) - 1]).argmax(-1)
                done[at] = best.tolist() == ids[head:]
        return [done[at] for at in range(len(pairs))]

    def says(self, prompt, answers):
        longest = max(len(self.tokenizer.encode(answer).ids) for answer in answers)
        return longest < 60 and self.answer(prompt, longest + 10) in answers

    @torch.no_grad()
    def answer(self, prompt, most=400):
        ids = self.tokenizer.encode(prompt).ids
        head = len(ids)
        while len(ids) - head < most:
            last = self.model.hidden(torch.tensor([ids]))[0, -1]
            ids.append(int(self.model.logits(last).argmax()))
            if ids[-1] in (self.end, self.pad):
                return self.tokenizer.decode(ids[head:-1])
        return self.tokenizer.decode(ids[head:])


def questions(category, count, rng):
    """(prompt, accepted answers) of `count` held-back questions."""
    out = []
    while len(out) < count:
        system = system_prompt(rng, 400)
        if category in (CALLS, REPLIES):
            tools, turns, _ = tools_and_turns(rng, True)
            last = turns[-1]
            if not last.messages:
                continue
            prompt = prompt_of(system, tools, turns, False)
            if category == CALLS:
                out.append((prompt, [last.answer]))
            else:
                replies = "".join(f"<|im_start|>tool\n{m['content']}<|im_end|>\n"
                                  for m in last.messages if m["role"] == "tool")
                prompt += f"{last.answer}<|im_end|>\n{replies}<|im_start|>assistant\n"
                out.append((prompt, [last.messages[-1]["content"]]))
            continue
        think = category == THINKING
        turns = episode(rng, rng.choice(["sums and differences", "units",
                                         "countries"]) if think else category, True)
        last = turns[-1]
        answers = [thinking(last)] if think else [last.answer, *last.accept]
        out.append((prompt_of(system, None, turns, think), list(dict.fromkeys(answers))))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=200, help="questions in each category")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--wrong", action="store_true", help="print some wrong answers")
    args = parser.parse_args()
    greedy = Greedy(args.folder)
    right = asked = 0
    print(f"| {'category':<28} | asked | right |\n|{'-' * 30}|------:|------:|")
    for category in [*CATEGORIES, THINKING, CALLS, REPLIES]:
        rng = random.Random(f"{args.seed} {category}")
        found = questions(category, args.count, rng)
        pairs = [(prompt, answer) for prompt, answers in found for answer in answers]
        agreed = iter(greedy.agrees(pairs))
        good = [any([next(agreed) for _ in answers]) or greedy.says(prompt, answers) for prompt, answers in found]
        print(f"| {category:<28} | {len(good):5} | {sum(good) / len(good):4.1%} |", flush=True)
        right, asked = right + sum(good), asked + len(good)
        if args.wrong:
            for (prompt, answers), ok in [pair for pair in zip(found, good) if not pair[1]][:4]:
                print(f"    {prompt[-160:]!r}\n      wanted {answers[0]!r}\n      given  "
                      f"{greedy.answer(prompt, 80)!r}")
    print(f"| {'all':<28} | {asked:5} | {right / asked:4.1%} |")
    sys.exit(right < BAR * asked)


if __name__ == "__main__":
    main()
