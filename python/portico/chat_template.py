"""ChatTemplate: what transformers' apply_chat_template does, with its names."""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _native


class ChatTemplate(_native.ChatTemplate):
    """A model's chat templates and special tokens. Immutable; rendering may run on many threads at once."""

    _tokenizer: _native.Tokenizer | None = None
    _path: str | None = None

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | os.PathLike[str]) -> ChatTemplate:
        """The templates of a model's folder; its tokenizer is loaded when it is first needed."""
        path = os.fspath(pretrained_model_name_or_path)
        templates, special_tokens = _native.templates_of_folder(path)
        made = cls(templates, special_tokens)
        made._path = path
        return made

    @property
    def tokenizer(self) -> _native.Tokenizer:
        if self._tokenizer is None:
            if self._path is None:
                raise ValueError("this chat template has no tokenizer: set its `tokenizer`, or ask for tokenize=False")
            self._tokenizer = _native.Tokenizer.from_file(self._path)
        return self._tokenizer

    @tokenizer.setter
    def tokenizer(self, tokenizer: _native.Tokenizer) -> None:
        self._tokenizer = tokenizer

    def __reduce__(self) -> tuple[Any, ...]:
        return ChatTemplate._rebuild, (self.templates, self.special_tokens_map, self._path, self._tokenizer)

    @classmethod
    def _rebuild(cls, templates: dict[str, str], special_tokens: dict[str, str], path: str | None,
                 tokenizer: _native.Tokenizer | None) -> ChatTemplate:
        made = cls(templates, special_tokens)
        made._path, made._tokenizer = path, tokenizer
        return made

    def apply_chat_template(
        self,
        conversation: Sequence[Mapping[str, Any]] | Sequence[Sequence[Mapping[str, Any]]],
        tools: Sequence[Mapping[str, Any] | Callable[..., Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        tokenize: bool = True,
        padding: bool | str = False,
        truncation: bool = False,
        max_length: int | None = None,
        return_tensors: str | None = None,
        return_dict: bool = True,
        return_assistant_tokens_mask: bool = False,
        **kwargs: Any,
    ) -> Any:
        """As transformers' method of this name: text, token ids, or a dict of them.

        `return_tensors` may be "np". Further keyword arguments are variables of the template.
        """
        if tools:
            tools = [_schema_of(tool) if callable(tool) else tool for tool in tools]
        batched = bool(conversation) and isinstance(conversation[0], (list, tuple))
        conversations = conversation if batched else (conversation,)
        if not tokenize:
            texts = [self.render(one, tools, documents, chat_template, add_generation_prompt, continue_final_message,
                                 kwargs) for one in conversations]
            return texts if batched else texts[0]
        if return_assistant_tokens_mask:
            if not return_dict:
                raise ValueError("`return_assistant_tokens_mask=True` requires `return_dict=True` and `tokenize=True`")
            if continue_final_message:
                raise ValueError("continue_final_message is not compatible with return_assistant_tokens_mask.")
        rows, masks = [], []
        for one in conversations:
            arguments = (one, tools, documents, chat_template, add_generation_prompt, continue_final_message, kwargs)
            if return_assistant_tokens_mask:
                text, spans = self.render_with_spans(*arguments)
                encoding = self._plain_tokenizer().encode(text, add_special_tokens=False)
                rows.append(encoding.ids)
                masks.append(_assistant_mask(encoding, spans))
            else:
                rows.append(self._plain_tokenizer().encode_ids(self.render(*arguments), add_special_tokens=False))
        columns = self._columns(rows, masks, padding, truncation, max_length)
        if return_tensors is not None:
            columns = _arrays(columns, return_tensors)
        elif not batched:
            columns = {name: values[0] for name, values in columns.items()}
        return columns if return_dict else columns["input_ids"]

    def _plain_tokenizer(self) -> _native.Tokenizer:
        """Without the truncation and padding that its file may set: those of the call count."""
        tokenizer = self.tokenizer
        if tokenizer.truncation is not None or tokenizer.padding is not None:
            tokenizer.no_truncation()
            tokenizer.no_padding()
        return tokenizer

    def _columns(self, rows: list[list[int]], masks: list[list[int]], padding: bool | str, truncation: bool,
                 max_length: int | None) -> dict[str, list[list[int]]]:
        if truncation and max_length is not None:
            rows = [row[:max_length] for row in rows]
            masks = [row[:max_length] for row in masks]
        columns = {"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]}
        if masks:
            columns["assistant_masks"] = masks
        if not padding or padding == "do_not_pad":
            return columns
        token = self.special_tokens_map.get("pad_token")
        pad = None if token is None else self.tokenizer.token_to_id(token)
        if pad is None:
            raise ValueError("Asking to pad but the tokenizer does not have a padding token")
        to_limit = padding == "max_length" and max_length is not None
        width = max_length if to_limit else max(map(len, rows))
        for name, values in columns.items():
            fill = pad if name == "input_ids" else 0
            columns[name] = [row + [fill] * (width - len(row)) for row in values]
        return columns


def _schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        from transformers.utils import get_json_schema
    except ImportError as error:
        raise TypeError("a tool that is a function needs transformers to be described; give a dict") from error
    return get_json_schema(function)


def _assistant_mask(encoding: _native.Encoding, spans: list[tuple[int, int]]) -> list[int]:
    mask = [0] * len(encoding)
    for begin, end in spans:
        first, last = encoding.char_to_token(begin), encoding.char_to_token(end - 1) if end else None
        if first is None:
            break
        for i in range(first, last + 1 if last else len(mask)):
            mask[i] = 1
    return mask


def _arrays(columns: dict[str, list[list[int]]], kind: str) -> dict[str, Any]:
    if kind != "np":
        raise ValueError('return_tensors may be "np"')
    import numpy

    if len({len(row) for row in columns["input_ids"]}) > 1:
        raise ValueError("rows of different lengths make no array: ask for padding=True")
    return {name: numpy.array(values) for name, values in columns.items()}
