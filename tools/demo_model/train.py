"""Makes the demo model: data, tokenizer, training, export. Ctrl-C keeps a checkpoint for --resume."""

import argparse
import math
import random
import signal
import time
from pathlib import Path

import torch
import torch.nn.functional as F

from conversations import conversation
from model import Config, Model, export
from tokenizer import save_tokenizer, train_tokenizer

# (tokens in a row, rows in a step, share of the steps)
SHAPES = [(96, 32, 0.35), (192, 16, 0.35), (384, 8, 0.2), (768, 4, 0.1)]
PEAKS = (7.5e-3, 2.5e-3)  # the highest learning rates of Muon and AdamW
READING = 0.25  # the share of the others' tokens that count, and what they count: schemas teach copying
# The share of rows that only repeat words, for each 300 steps; copying is slow to emerge otherwise.
COPYING = (0.3, 0.1, 0, 0, 0.2, 0.1, 0.05, 0)


class Batches:
    """The batch of a step hangs on the seed and the step alone."""

    def __init__(self, tokenizer, seed):
        self.tokenizer, self.seed = tokenizer, seed
        name = tokenizer.token_to_id
        self.start, self.end, self.think, self.pad = map(name, ["<|im_start|>", "<|im_end|>",
                                                                "<|think|>", "<|endoftext|>"])
        self.assistant = tokenizer.encode("assistant\n").ids
        assert len(self.assistant) == 2

    def weights(self, rng, ids):
        """What each token counts: little unless the assistant writes it, and less in long answers."""
        out, at = [READING * (rng.random() < READING) for _ in ids], 0
        while at < len(ids):
            if ids[at] == self.start and ids[at + 1:at + 3] == self.assistant:
                at += 4 if ids[at + 3:at + 4] == [self.think] else 3
                last = ids.index(self.end, at) + 1 if self.end in ids[at:] else len(ids)
                out[at:last] = [min(1.0, (15 / max(last - at, 1)) ** 0.5)] * (last - at)
                at = last
            else:
                at += 1
        return out

    def positions(self, rng, ids, length):
        """0, 1, 2 ... In a quarter of the rows some turns begin later, as if more text stood before them."""
        gaps = [0] * length
        if rng.random() < 0.25:
            turns = [i for i, token in enumerate(ids) if token == self.start]
            chosen = rng.sample(turns, min(len(turns), rng.randrange(1, 4)))
            room = (2000 - length) // len(chosen)
            for i in chosen:
                gaps[i] = rng.randrange(int(room * rng.random() ** 2) + 1)
        here, out = 0, []
        for i in range(length):
            here += gaps[i]
            out.append(here + i)
        return out

    def make(self, step):
        rng = random.Random(self.seed * 1_000_003 + step)
        length, rows, _ = rng.choices(SHAPES, [share for _, _, share in SHAPES])[0]
        copying = COPYING[min(step // 300, len(COPYING) - 1)]
        texts = [conversation(rng, length * 3, rng.random() < copying) for _ in range(rows)]
        tokens = torch.full((rows, length + 1), self.pad)
        weights = torch.zeros((rows, length + 1))
        positions = []
        for row, encoding in enumerate(self.tokenizer.encode_batch_fast(texts)):
            ids = encoding.ids[:length + 1]
            tokens[row, :len(ids)] = torch.tensor(ids)
            weights[row, :len(ids)] = torch.tensor(self.weights(rng, ids))
            positions.append(self.positions(rng, ids[:length], length))
        return tokens[:, :-1], tokens[:, 1:], weights[:, 1:], torch.tensor(positions)


def optimizers(model):
    """Muon for the matrices inside the layers, AdamW for the rest."""
    matrices = [p for n, p in model.named_parameters() if p.dim() == 2 and "embed" not in n]
    rest = [p for n, p in model.named_parameters() if p.dim() != 2 or "embed" in n]
    both = [torch.optim.Muon(matrices, weight_decay=0.02, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(rest, betas=(0.9, 0.98), weight_decay=0.0)]
    for optimizer, peak in zip(both, PEAKS):
        for group in optimizer.param_groups:
            group["peak"] = peak
    return both


def loss_of(model, tokens, targets, weights, positions):
    counted = weights > 0
    logits = model.logits(model.hidden(tokens, positions)[counted])
    losses = F.cross_entropy(logits, targets[counted], reduction="none")
    return (losses * weights[counted]).sum() / weights.sum()


def rate(step, steps):
    """Up for 100 steps, level, and down to nothing over the last 60 %."""
    return min(1, (step + 1) / 100, (steps - step) / (0.6 * steps))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the Hugging Face folder to write")
    parser.add_argument("--checkpoint", type=Path, default=Path("demo_model.pt"))
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--steps", type=int, default=9000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--bf16", action="store_true",
                        help="multiply in bf16; faster where the processor can")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    args.out.mkdir(parents=True, exist_ok=True)

    tokenizer = train_tokenizer(args.seed, 12000)
    save_tokenizer(tokenizer, args.out)
    batches = Batches(tokenizer, args.seed)
    model = Model(Config(vocab_size=tokenizer.get_vocab_size()))
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters", flush=True)
    optimizer, first = optimizers(model), 0
    if args.resume:
        state = torch.load(args.checkpoint)
        model.load_state_dict(state["model"])
        for o, s in zip(optimizer, state["optimizer"]):
            o.load_state_dict(s)
        first = state["step"]

    def keep(step):
        torch.save({"model": model.state_dict(), "optimizer": [o.state_dict() for o in optimizer],
                    "step": step}, args.checkpoint)
        export(model, args.out, batches.end, batches.pad)

    for stop in (signal.SIGINT, signal.SIGTERM):  # also when started in the background
        signal.signal(stop, signal.default_int_handler)
    began, losses, step = time.time(), [], first
    try:
        for step in range(first, args.steps):
            tokens, targets, weights, positions = batches.make(step)
            for o in optimizer:
                for group in o.param_groups:
                    group["lr"] = group["peak"] * rate(step, args.steps)
            with torch.autocast("cpu", torch.bfloat16, enabled=args.bf16):
                loss = loss_of(model, tokens, targets, weights, positions)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for o in optimizer:
                o.step()
                o.zero_grad()
            losses.append(loss.item())
            if not math.isfinite(losses[-1]):
                raise SystemExit("the loss is not finite")
            if (step + 1) % 100 == 0:
                spent = time.time() - began
                left = spent / (step + 1 - first) * (args.steps - step - 1)
                print(f"step {step + 1} loss {sum(losses[-100:]) / len(losses[-100:]):.4f} "
                      f"{spent / 60:.1f} min, {left / 60:.1f} min left", flush=True)
            if (step + 1) % 250 == 0:
                keep(step + 1)
    except KeyboardInterrupt:
        keep(step)
        raise SystemExit(f"stopped at step {step}; --resume goes on")
    keep(args.steps)


if __name__ == "__main__":
    main()
