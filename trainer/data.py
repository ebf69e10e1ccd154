"""Rows -> token sequences that know which of their tokens are answers.

Owns where the answers of a row begin and end; those that it does not bring are the target's to write (`regenerate`,
`server`). A chat is one sequence for as long as the template only appends to it; where the template rewrites what was
said (as those of thinking models drop earlier thoughts), a new sequence begins, so that every answer is seen behind the
very tokens that a server would put before it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trainer.config import Config
from trainer.errors import ConfigError
from trainer.pretrained import folder, num_rows
from trainer.rows import Message, parts, read_rows


@dataclass(frozen=True)
class Sample:
    """A sequence [tokens]; `response` marks the tokens of answers. `line` is the data file's."""

    tokens: Tensor
    response: Tensor
    line: int = 0

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def longest_answer(self) -> int:
        """Tokens of the longest stretch of `response`."""
        gaps = torch.nn.functional.pad((~self.response).nonzero()[:, 0], (1, 1))
        gaps[0], gaps[-1] = -1, len(self.response)
        return int(gaps.diff().max()) - 1


def answered(tokens: Sequence[int], start: int, line: int = 0) -> Sample:
    """A prompt with one answer, from `start` to the end."""
    return spanned(tokens, [(start, len(tokens))], line)


def spanned(tokens: Sequence[int], spans: Sequence[tuple[int, int]], line: int = 0) -> Sample:
    """`spans` are the answers, each from its first token up to, not including, its last place."""
    response = torch.zeros(len(tokens), dtype=torch.bool)
    for first, last in spans:
        response[first:last] = True
    return Sample(torch.tensor(tokens, dtype=torch.int32), response, line)


@dataclass
class Draft:
    """A sequence in the making."""

    tokens: list[int]
    spans: list[tuple[int, int]] = field(default_factory=list)


class Talk:
    """One row on its way to sequences. While `prompt` is not None, an answer to it is wanted, of `budget` tokens.

    The last answer of an evaluation row is never taken from the row, and none is asked for here: its prompt stays.
    """

    def __init__(
        self, place: str, split: str, raw: dict[str, Any], tokenizer: Any, num_rows: int, config: Config
    ) -> None:
        """`num_rows` is how many tokens the target knows."""
        self.split, self.line, self.turn = split, int(place.rpartition(":")[2]), 0
        self.prompt: list[int] | None = None
        self.is_too_long = False
        self._place, self._tokenizer, self._num_rows, self._config = place, tokenizer, num_rows, config
        self._drafts: list[Draft] = []
        self._wanted = raw.get("max_new_tokens", config["data.max_new_tokens"])
        if type(self._wanted) is not int or self._wanted < 1:
            raise ConfigError(f"{place}: max_new_tokens {self._wanted!r} is not allowed: an integer of at least 1")
        # Answers are None where they are to be written.
        self._bare, self._messages = parts(place, raw, tokenizer, config["data.regenerate"] == "all")
        self._at = -1
        self._advance()

    @property
    def budget(self) -> int:
        room = self._config["data.max_seq_len"] - len(self.prompt or [])
        return int(min(self._wanted, self._config["data.max_new_tokens"], room))

    @property
    def is_last(self) -> bool:
        return self._at == len(self._messages) - 1

    def take(self, tokens: list[int]) -> None:
        """The answer to `prompt`."""
        text = self._tokenizer.decode(tokens[:-1] if tokens[-1:] == [self._tokenizer.eos_token_id] else tokens)
        self._messages[self._at] = {"role": "assistant", "content": text}
        self._keep(tokens)

    def samples(self) -> list[Sample]:
        longest = self._config["data.max_seq_len"]
        return [
            spanned(d.tokens[:longest], [(a, min(b, longest)) for a, b in d.spans if a < longest], self.line)
            for d in self._drafts
        ]

    def _keep(self, answer: list[int]) -> None:
        """Appends the prompt and its answer to the sequence that they go on from, or begins a new one."""
        prompt = self.prompt or []
        last = self._drafts[-1] if self._drafts else None
        if last is None or prompt[: len(last.tokens)] != last.tokens:
            last = Draft([])
            self._drafts.append(last)
        last.tokens = prompt + answer
        last.spans.append((len(prompt), len(prompt) + len(answer)))
        self._advance()

    def _advance(self) -> None:
        """To the next answer: one that is there is kept at once; else its prompt is what is wanted now."""
        self.prompt = None
        places = range(self._at + 1, len(self._messages))
        self._at = next((i for i in places if self._messages[i]["role"] == "assistant"), len(self._messages))
        if self._at == len(self._messages):
            return
        self.turn += 1
        prompt, answer = self._prompt_and_answer()
        if (largest := max((*prompt, *(answer or ())), default=0)) >= self._num_rows:
            raise ConfigError(
                f"{self._place}: the tokenizer does not fit the target: it makes token {largest} of this row, and the "
                f"rows of the embedding are 0 to {self._num_rows - 1}"
            )
        if len(prompt) > self._config["data.max_seq_len"] - 2:
            self.is_too_long = not self._drafts
            return
        self.prompt = prompt
        if answer is not None and not (self.split == "eval" and self.is_last):
            self._keep(answer)

    def _prompt_and_answer(self) -> tuple[list[int], list[int] | None]:
        content = self._messages[self._at]["content"]
        if self._bare is not None:
            return self._bare, content
        prompt = self._rendered(self._messages[: self._at], add_generation_prompt=True)
        if content is None:
            return prompt, None
        whole = self._rendered(self._messages[: self._at + 1])
        if whole[: len(prompt)] != prompt:
            raise ConfigError(
                f"{self._place}: the chat template rewrites the prompt once it is answered, so the answer cannot be "
                "told apart"
            )
        answer = whole[len(prompt) :]
        # What a template puts behind the end of an answer, nobody generates.
        end = self._tokenizer.eos_token_id
        return prompt, answer[: answer.index(end) + 1] if end in answer else answer

    def _rendered(self, messages: list[Message], **options: Any) -> list[int]:
        thinking = self._config["data.thinking"]
        if thinking is not None:
            options["enable_thinking"] = thinking
        try:
            return list(self._tokenizer.apply_chat_template(messages, return_dict=False, **options))
        except Exception as e:  # A template is a program of the model's maker, and may raise anything.
            raise ConfigError(f"{self._place}: the chat template does not take these messages ({e})") from e


def read_talks(path: Path, tokenizer: Any, config: Config) -> Iterator[Talk]:
    """The rows of `path`, as many of each split as the config takes. Raises ConfigError naming file and line."""
    limits = {"train": config["data.num_train"], "eval": config["data.num_eval"]}
    if config["kind"] == "evaluate":
        limits["train"] = 0
    taken, rows = {"train": 0, "eval": 0}, num_rows(folder(config))
    for place, raw in read_rows(path):
        split = raw.get("split", "train")
        if split not in list(limits):
            raise ConfigError(f'{place}: split {split!r} is not allowed: "train" or "eval"')
        if limits[split] is not None and taken[split] >= limits[split]:
            continue
        talk = Talk(place, split, raw, tokenizer, rows, config)
        taken[split] += not talk.is_too_long
        yield talk
