"""The frozen model that is drafted for: running it, and reading its layers while it runs.

Nothing here is trained, and nothing of it is ever saved.
"""

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trainer.cache import KeyValueCache
from trainer.config import Config
from trainer.errors import ConfigError
from trainer.placement import call_at, layer_devices, spread
from trainer.pretrained import fingerprint, folder, load_config, load_model, load_tokenizer
from trainer.ranks import Ranks
from trainer.taps import tapped_layers


@dataclass(frozen=True)
class Features:
    """What the target says of a batch: the tapped layers [sequences, tokens, taps * hidden], which the drafter reads,
    and the last layer before the final norm [sequences, tokens, hidden], if asked for, which makes labels."""

    taps: Tensor
    final: Tensor | None = None


class Target:
    """The frozen target: its ends on `device`, with the drafter, and its layers there too or on GPUs of their own.

    `layer_ids` are the layers that features are taken from. Where features were captured before, no layer is loaded
    until somebody runs the target, as an evaluation does.
    """

    def __init__(self, config: Config, device: torch.device | None = None) -> None:
        self.path = folder(config)
        self.tokenizer = load_tokenizer(self.path)
        ranks = Ranks()
        self.device = device or ranks.device(config["device"])
        self._layer_devices = layer_devices(config, ranks.count)
        dtype = config["dtype"]
        if dtype == "auto":
            dtype = "float32" if self.device.type == "cpu" else "bfloat16"
        self.num_layers: int = load_config(self.path).get_text_config().num_hidden_layers
        self.model = load_model(self.path, dtype, with_layers=config["features.path"] is None)
        self.config = self.model.config.get_text_config()
        self._ends = self.model.get_decoder()
        layers, self._ends.layers = self._ends.layers, torch.nn.ModuleList()
        self.model.to(self.device)
        if layers:
            self._take_layers(layers)
        self.vocab_size: int = self.model.get_input_embeddings().weight.shape[0]
        self.layer_ids = tapped_layers(config, self.num_layers)
        self.mask_token_id = self._mask_token_id(config)
        names = inspect.signature(self._ends.forward).parameters
        # transformers 5.2x renamed it.
        self._cache_name = "cache" if "cache" in names else "past_key_values"

    @property
    def end_token_ids(self) -> frozenset[int]:
        """Tokens that end a response."""
        ends = self.model.generation_config.eos_token_id
        return frozenset(() if ends is None else [ends] if isinstance(ends, int) else ends)

    def listening(self, layer_ids: list[int], mask_token_id: int) -> "Target":
        """The same model, loaded once, for a drafter that listens to other layers or has another mask."""
        other = copy.copy(self)
        other.layer_ids, other.mask_token_id = layer_ids, mask_token_id
        return other

    def _take_layers(self, layers: torch.nn.ModuleList) -> None:
        if self._layer_devices:
            spread(layers, self._layer_devices)
            call_at(self._ends.norm, self.device)
        self._ends.layers = layers if self._layer_devices else layers.to(self.device)
        self.config.num_hidden_layers = self.num_layers

    @property
    def _decoder(self) -> Any:
        """All of it, which is loaded now if it was not needed before."""
        if not self._ends.layers:
            dtype = str(self.model.dtype).removeprefix("torch.")
            self._take_layers(load_model(self.path, dtype).get_decoder().layers)
        return self._ends

    def fingerprint(self) -> str:
        """Changes when the target does."""
        return fingerprint(self.path)

    def _mask_token_id(self, config: Config) -> int:
        mask = config["mask_token_id"]
        if mask == "auto":
            mask = self.tokenizer.mask_token_id
            mask = len(self.tokenizer) if mask is None else mask
            if mask >= self.vocab_size:
                raise ConfigError('mask_token_id: "auto" finds no unused row; give the id of a token that never occurs')
        if mask >= self.vocab_size:
            raise ConfigError(
                f"mask_token_id: {mask} is no row of the embedding: its rows are 0 to {self.vocab_size - 1}"
            )
        return int(mask)

    def embed(self, tokens: Tensor) -> Tensor:
        """Rows of the frozen embedding: [..., hidden]."""
        embedded: Tensor = self.model.get_input_embeddings()(tokens)
        return embedded

    @property
    def output_head(self) -> torch.nn.Module:
        """The frozen head: hidden -> vocabulary."""
        head: torch.nn.Module = self.model.get_output_embeddings()
        return head

    def logits(self, hidden: Tensor) -> Tensor:
        """The frozen head over the drafter's `hidden`, in the drafter's number format: [..., vocabulary]."""
        head = self.model.get_output_embeddings()
        scores: Tensor = head(hidden.to(head.weight.dtype)).to(hidden.dtype)
        return scores

    @torch.no_grad()
    def normed(self, final: Tensor) -> Tensor:
        """The final norm over the last layer's states: what the head reads."""
        out: Tensor = self._ends.norm(final)
        return out

    def rotary(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """cos and sin of the target's own position encoding: [sequences, tokens, head_dim] each."""
        cos, sin = self._ends.rotary_emb(torch.empty(0, device=self.device), positions)
        return cos, sin

    @torch.no_grad()
    def features(self, tokens: Tensor, begins: Tensor | None = None, *, final: bool = False) -> Features:
        """What the tapped layers, and the last one if `final`, say of whole sequences [rows, tokens].

        `tokens` may be padded at the end: no token sees what comes after it. Where rows hold several sequences,
        `begins` says where each token's begins, and none sees another.
        """
        taps, handles = self._tap(stop_after_last=not final)
        last: list[Tensor] = []
        if final:
            handles.append(self._ends.norm.register_forward_pre_hook(lambda _norm, inputs: last.append(inputs[0])))
        try:
            self._decoder(input_ids=tokens, use_cache=False, **_apart(begins))
        except _LastTapError:
            pass
        finally:
            for handle in handles:
                handle.remove()
        return Features(self._joined(taps), last[0] if final else None)

    def features_of(self, batch_tokens: Tensor, begins: Tensor | None = None, *, final: bool = False) -> Tensor:
        """`features` as one: the taps, and the last layer behind them if `final`."""
        features = self.features(batch_tokens, begins, final=final)
        return features.taps if features.final is None else torch.cat((features.taps, features.final), dim=-1)

    def features_for(self, tokens: Tensor, listeners: Sequence[Sequence[int]]) -> list[Features]:
        """`features` for several drafters that listen to layers of their own, of one pass."""
        everyone = sorted({i for ids in listeners for i in ids})
        taps = self.listening(everyone, self.mask_token_id).features(tokens).taps
        by_layer = dict(zip(everyone, taps.chunk(len(everyone), dim=-1), strict=True))
        return [Features(torch.cat([by_layer[i] for i in ids], dim=-1)) for ids in listeners]

    @torch.no_grad()
    def run(self, tokens: Tensor, starts: Tensor, cache: KeyValueCache, *, tap: bool) -> tuple[Tensor, Tensor | None]:
        """Runs `tokens` [sequences, n], row r standing at position starts[r], on top of what `cache` holds.

        Returns the final hidden states [sequences, n, hidden] (for `head`), and the features if `tap`.
        """
        positions = starts[:, None] + torch.arange(tokens.shape[1], device=tokens.device)
        cache.seek(positions)
        return self.run_at(tokens, positions, cache, cache.causal_mask(), tap=tap)

    @torch.no_grad()
    def run_at(
        self, tokens: Tensor, positions: Tensor, cache: KeyValueCache, visible: Tensor, *, tap: bool
    ) -> tuple[Tensor, Tensor | None]:
        """`run` with positions of one's own, where the cache was sought; `visible` is a mask like its `causal_mask`."""
        taps, handles = self._tap(stop_after_last=False) if tap else ({}, [])
        try:
            out = self._decoder(
                input_ids=tokens,
                position_ids=positions,
                attention_mask=visible,
                use_cache=True,
                **{self._cache_name: cache},
            )
        finally:
            for handle in handles:
                handle.remove()
        return out.last_hidden_state, self._joined(taps) if tap else None

    def head(self, hidden: Tensor) -> Tensor:
        """The target's own next-token scores for its final hidden states."""
        scores: Tensor = self.model.get_output_embeddings()(hidden)
        return scores

    def _joined(self, taps: dict[int, Tensor]) -> Tensor:
        return torch.cat([taps[i].to(self.device) for i in self.layer_ids], dim=-1)

    def _tap(self, *, stop_after_last: bool) -> tuple[dict[int, Tensor], list[Any]]:
        """Hooks that keep the output of the tapped layers: that of layer i is HF's hidden_states[i + 1]."""
        taps: dict[int, Tensor] = {}

        def keep(i: int) -> Any:
            def hook(_module: object, _inputs: object, output: Any) -> None:
                taps[i] = output[0] if isinstance(output, tuple) else output
                if stop_after_last and len(taps) == len(self.layer_ids):
                    raise _LastTapError

            return hook

        # HF's last hidden state is the one behind the final norm.
        layers = [*self._decoder.layers[: self.num_layers - 1], self._decoder.norm]
        return taps, [layers[i].register_forward_hook(keep(i)) for i in self.layer_ids]


def _apart(begins: Tensor | None) -> dict[str, Tensor]:
    """What keeps the sequences of a row from seeing each other, each from its own position 0 on."""
    if begins is None:
        return {}
    places = torch.arange(begins.shape[1], device=begins.device)
    visible = (begins[:, :, None] == begins[:, None, :]) & (places <= places[:, None])
    return {"attention_mask": visible[:, None], "position_ids": places - begins}


class _LastTapError(Exception):
    """Ends a forward pass whose remaining layers nobody asked for."""
