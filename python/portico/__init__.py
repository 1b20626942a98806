"""Portico's tokenizers and chat templates: exact to Hugging Face's for the same files, and fast.

The names are those of `tokenizers` and `transformers`:

    from portico import Tokenizer                 # instead of: from tokenizers import Tokenizer
    Tokenizer.from_file("tokenizer.json").encode("Hello").ids

    from portico import ChatTemplate              # instead of: AutoTokenizer
    ChatTemplate.from_pretrained("models/demo").apply_chat_template(messages, tokenize=False)
"""
from ._native import DecodeStream, Encoding, Tokenizer, __version__
from .chat_template import ChatTemplate

__all__ = ["ChatTemplate", "DecodeStream", "Encoding", "Tokenizer", "__version__"]
