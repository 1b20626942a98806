"""Makes a classifier of a Qwen3 with tied embeddings, whose head is random: python tiny_classifier.py SOURCE TARGET LABEL...

Needs torch and safetensors.
"""
import json
import pathlib
import shutil
import sys


def main(source, target, labels):
    import safetensors.torch
    import torch

    target.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(source / name, target / name)
    config = json.loads((source / "config.json").read_text())
    config.update(architectures=["Qwen3ForSequenceClassification"], id2label=dict(enumerate(labels)),
                  label2id={label: i for i, label in enumerate(labels)})
    (target / "config.json").write_text(json.dumps(config))
    weights = safetensors.torch.load_file(str(source / "model.safetensors"))
    torch.manual_seed(24)
    shape = (len(labels), config["hidden_size"])
    kind = weights["model.norm.weight"].dtype
    weights |= {"score.weight": torch.randn(shape).to(kind), "score.bias": torch.randn(len(labels)).to(kind)}
    safetensors.torch.save_file(weights, str(target / "model.safetensors"), {"format": "pt"})


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:3]), sys.argv[3:])
