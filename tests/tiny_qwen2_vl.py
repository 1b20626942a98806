"""Writes a Qwen2-VL of random weights, small enough for any machine: python tiny_qwen2_vl.py TOKENIZER_FOLDER TARGET

Needs torch and transformers. The tokenizer is another model's, with the special tokens of vision added.
"""
import json
import pathlib
import sys

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part.type == 'video' %}<|vision_start|><|video_pad|><|vision_end|>"
    "{% elif part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
VISION = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")


def main(source, target):
    import tokenizers
    import torch
    import transformers
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor

    target.mkdir(parents=True, exist_ok=True)
    tokenizer = tokenizers.Tokenizer.from_file(str(source / "tokenizer.json"))
    tokenizer.add_special_tokens(list(VISION))
    tokenizer.save(str(target / "tokenizer.json"))
    start, end, image, video = map(tokenizer.token_to_id, VISION)
    told = json.loads((source / "tokenizer_config.json").read_text())
    told.update(tokenizer_class="PreTrainedTokenizerFast", chat_template=TEMPLATE, processor_class="Qwen2VLProcessor")
    (target / "tokenizer_config.json").write_text(json.dumps(told))

    torch.manual_seed(24)
    eos = json.loads((source / "config.json").read_text())["eos_token_id"]
    config = transformers.Qwen2VLConfig(
        text_config=dict(
            vocab_size=tokenizer.get_vocab_size(), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=2048, bos_token_id=None,
            eos_token_id=eos, initializer_range=0.5,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}),
        vision_config=dict(
            depth=2, embed_dim=32, hidden_size=64, num_heads=2, mlp_ratio=2, patch_size=14, spatial_merge_size=2,
            temporal_patch_size=2, in_channels=3, in_chans=3, initializer_range=0.5),
        vision_start_token_id=start, vision_end_token_id=end, image_token_id=image, video_token_id=video,
        tie_word_embeddings=False, initializer_range=0.5)
    model = transformers.Qwen2VLForConditionalGeneration(config).to(torch.float32)
    # The default of 0.02 makes everything alike: wide weights give an answer that depends on the picture.
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if weights.dim() > 1:
                weights.normal_(0, 0.5 if "visual" not in name else 0.2)
    model.save_pretrained(target)
    Qwen2VLImageProcessor(min_pixels=28 * 28, max_pixels=28 * 28 * 64).save_pretrained(target)


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:3]))
