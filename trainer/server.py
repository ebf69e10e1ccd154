"""Answers written by an OpenAI-compatible server that runs the target: vLLM, SGLang, llama.cpp.

`/completions` on our own tokens, not `/chat/completions`: the prompt is then exactly what training shows, template and
thinking included. Standard library only.
"""

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from trainer.config import Config
from trainer.errors import ConfigError, RunError
from trainer.regenerate import Answered, Asked

_TRIES = 8
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 60.0
# A long answer of a busy server takes minutes.
_TIMEOUT_S = 1800.0
_BUSY = (408, 429, 500, 502, 503, 504)


class Server:
    """`data.server`, asked `data.server_requests` things at a time. ConfigError if it is not there."""

    def __init__(self, config: Config, tokenizer: Any) -> None:
        self._url = str(config["data.server"]).rstrip("/")
        self._tokenizer, self._num_requests = tokenizer, config["data.server_requests"]
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
        with ThreadPoolExecutor(self._num_requests, "server") as pool:
            running: dict[Future[list[int]], int] = {}
            try:
                while True:
                    for place in places:
                        running[pool.submit(self._complete, *asked[place])] = place
                        if len(running) == self._num_requests:
                            break
                    if not running:
                        return
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    yield [(running.pop(future), future.result()) for future in done]
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

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
                why = f"{e.code} {e.reason}: {e.read(200).decode(errors='replace')}"
                if e.code not in _BUSY:
                    raise RunError(f"{self._url} refused a prompt of {len(prompt)} tokens ({why})") from e
            except (OSError, ValueError, http.client.HTTPException) as e:
                why = str(e) or type(e).__name__
            except (KeyError, IndexError, TypeError) as e:
                raise RunError(f"{self._url} answers as no completion server does ({e!r})") from e
            if left:
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_WAIT_S)
        raise RunError(f"{self._url} gave no answer in {_TRIES} tries ({why}); look at it, then resume")

    def _tokens(self, choice: dict[str, Any], budget: int) -> list[int]:
        """The answer's, with the end token where it ended by itself."""
        tokens: list[int] | None = choice.get("token_ids")
        if tokens is None:
            tokens = list(self._tokenizer(choice["text"], add_special_tokens=False)["input_ids"])
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
            return json.load(answer)
