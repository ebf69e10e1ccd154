"""Answers written by an OpenAI-compatible server that runs the target: vLLM, SGLang, llama.cpp.

`/completions` on our own tokens, not `/chat/completions`: the prompt is then exactly what training shows, template and
thinking included.
"""

import http.client
import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from trainer.config import Config
from trainer.errors import ConfigError, RunError
from trainer.pretrained import folder, num_rows
from trainer.regenerate import Answered, Asked

_TRIES = 8
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 60.0
# A long answer of a busy server takes minutes.
_TIMEOUT_S = 1800.0
# How long nothing may be heard before whoever listens is asked whether to stop.
_LOOK_S = 0.5
_BUSY = (408, 429, 500, 502, 503, 504)


class Server:
    """`data.server`, asked `data.server_requests` things at a time. ConfigError if it is not there."""

    def __init__(self, config: Config, tokenizer: Any) -> None:
        self._url = str(config["data.server"]).rstrip("/")
        self._tokenizer, self._num_requests = tokenizer, config["data.server_requests"]
        self._num_rows = num_rows(folder(config))
        try:
            listed = [model["id"] for model in self._ask("/models", None)["data"]]
        except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException) as e:
            raise ConfigError(f"data.server: {self._url}/models does not answer as such servers do ({e})") from e
        self.model = config["data.server_model"] or next(iter(listed), None)
        if self.model not in listed:
            raise ConfigError(f"data.server_model: {self.model!r} is not on {self._url}; there are {', '.join(listed)}")

    def write(self, asked: Sequence[Asked]) -> Iterator[list[Answered]]:
        """Raises RunError when the server stays away; what it has answered by then was handed out."""
        places = iter(range(len(asked)))
        said: SimpleQueue[Answered | Exception] = SimpleQueue()
        left = threading.Event()

        def ask() -> None:
            for place in places:
                if left.is_set():
                    return
                try:
                    said.put((place, self._complete(*asked[place])))
                except Exception as e:  # noqa: BLE001  (raised again where it is heard)
                    left.set()
                    said.put(e)

        # Nobody waits for them: an answer that is under way may take minutes, and a stop has seconds.
        for _ in range(min(self._num_requests, len(asked))):
            threading.Thread(target=ask, name="server", daemon=True).start()
        num_left = len(asked)
        try:
            while num_left:
                try:
                    heard = said.get(timeout=_LOOK_S)
                except Empty:
                    yield []
                    continue
                if isinstance(heard, Exception):
                    raise heard
                num_left -= 1
                yield [heard]
        finally:
            left.set()

    def _complete(self, prompt: list[int], budget: int) -> list[int]:
        body = {
            "model": self.model,
            "prompt": prompt,
            "max_tokens": budget,
            "temperature": 0,
            # vLLM says them; who does not know the key passes over it, and the text is tokenised again.
            "return_token_ids": True,
        }
        pause_s = _FIRST_WAIT_S
        for left in range(_TRIES - 1, -1, -1):
            try:
                return self._tokens(self._ask("/completions", body)["choices"][0], budget)
            except urllib.error.HTTPError as e:
                why = f"{e.code} {e.reason}: {_beginning(e)}"
                if e.code not in _BUSY:
                    raise RunError(f"{self._url} refused a prompt of {len(prompt)} tokens ({why})") from e
            except (OSError, ValueError, http.client.HTTPException) as e:
                why = str(e) or type(e).__name__
            except (KeyError, IndexError, TypeError, AttributeError) as e:
                raise RunError(f"{self._url} answers as no completion server does ({e!r})") from e
            if left:
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_WAIT_S)
        raise RunError(f"{self._url} gave no answer in {_TRIES} tries ({why}); look at it, then resume")

    def _tokens(self, choice: dict[str, Any], budget: int) -> list[int]:
        """The answer's, with the end token where it ended by itself."""
        tokens: list[int] | None = choice.get("token_ids")
        if tokens is None:
            text = choice["text"]
            if not isinstance(text, str):
                raise TypeError(f"its text is {text!r}")
            tokens = list(self._tokenizer(text, add_special_tokens=False)["input_ids"])
        if odd := [token for token in tokens if type(token) is not int or not 0 <= token < self._num_rows]:
            raise RunError(
                f"{self._url} answers with token {odd[0]!r}, and those of the target are 0 to {self._num_rows - 1}; "
                "let it run the target"
            )
        end = self._tokenizer.eos_token_id
        if choice.get("finish_reason") == "stop" and end is not None and tokens[-1:] != [end]:
            tokens = [*tokens, end]
        return tokens[:budget]

    def _ask(self, path: str, body: dict[str, Any] | None) -> Any:
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get("OPENAI_API_KEY"):
            headers["Authorization"] = f"Bearer {key}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers)
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            try:
                return json.load(answer)
            except RecursionError as e:
                raise ValueError("lists within lists, too deep to read") from e


def _beginning(error: urllib.error.HTTPError) -> str:
    """Of what it says, for a sentence about it."""
    try:
        return " ".join(error.read(200).decode(errors="replace").split())
    except (OSError, http.client.HTTPException):
        return "it says no more"
