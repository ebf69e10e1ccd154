"""The method once more, in plain loops: one block, one slot, one key at a time. Shares no code with the trainer."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from trainer.batches import Batch
from trainer.blocks import Anchors
from trainer.model import Drafter
from trainer.step import Objective


def norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return x / torch.sqrt((x * x).mean() + eps) * weight


def rope(x: torch.Tensor, position: int, theta: float) -> torch.Tensor:
    half = len(x) // 2
    out = x.clone()
    for i in range(half):
        # The target's own encoding holds its angles in float32.
        inverse = torch.tensor(1.0 / theta ** (2 * i / len(x)), dtype=torch.float32)
        angle = float(torch.tensor(float(position)) * inverse)
        out[i] = x[i] * math.cos(angle) - x[i + half] * math.sin(angle)
        out[i + half] = x[i + half] * math.cos(angle) + x[i] * math.sin(angle)
    return out


def restated_hidden(
    drafter: Drafter, taps: torch.Tensor, inputs: torch.Tensor, anchor: int, theta: float
) -> torch.Tensor:
    """Final hidden states of one block [block, hidden], from the features [tokens, taps * hidden] of its sequence."""
    weights, shape = dict(drafter.named_parameters()), drafter.shape
    per_group = shape.num_heads // shape.num_kv_heads
    features = [
        norm(weights["fc.weight"] @ taps[p], weights["hidden_norm.weight"], shape.rms_norm_eps) for p in range(anchor)
    ]
    xs = list(inputs)
    for i, window in enumerate(shape.windows):
        w = {n.removeprefix(f"layers.{i}."): p for n, p in weights.items() if n.startswith(f"layers.{i}.")}

        def head(name: str, x: torch.Tensor, h: int, w=w) -> torch.Tensor:
            width = shape.head_dim
            return (w[f"self_attn.{name}_proj.weight"] @ x)[h * width : (h + 1) * width]

        normed = [norm(x, w["input_layernorm.weight"], shape.rms_norm_eps) for x in xs]
        everything = [(f, p) for p, f in enumerate(features)] + [(x, anchor + s) for s, x in enumerate(normed)]
        after = []
        for slot in range(len(normed)):
            own = anchor + slot
            seen = [(x, p) for x, p in everything if window is None or (p <= own and own - p < window)]
            read = []
            for h in range(shape.num_heads):
                q = rope(norm(head("q", normed[slot], h), w["self_attn.q_norm.weight"], shape.rms_norm_eps), own, theta)
                scores, values = [], []
                for source, position in seen:
                    k = norm(head("k", source, h // per_group), w["self_attn.k_norm.weight"], shape.rms_norm_eps)
                    scores.append(float(q @ rope(k, position, theta)) / math.sqrt(shape.head_dim))
                    values.append(head("v", source, h // per_group))
                top = max(scores)
                shares = [math.exp(s - top) for s in scores]
                read.append(sum(share * v for share, v in zip(shares, values, strict=True)) / sum(shares))
            after.append(xs[slot] + w["self_attn.o_proj.weight"] @ torch.cat(read))
        xs = []
        for x in after:
            y = norm(x, w["post_attention_layernorm.weight"], shape.rms_norm_eps)
            gate = w["mlp.gate_proj.weight"] @ y
            gated = gate / (1 + torch.exp(-gate)) * (w["mlp.up_proj.weight"] @ y)
            xs.append(x + w["mlp.down_proj.weight"] @ gated)
    return torch.stack([norm(x, weights["norm.weight"], shape.rms_norm_eps) for x in xs])


@dataclass
class Slot:
    """One supervised slot: its distance from the anchor, the drafter's scores, the target's, and the right token."""

    k: int
    logits: list[float]
    taught: list[float]
    label: int

    def right(self) -> bool:
        return max(range(len(self.logits)), key=self.logits.__getitem__) == self.label

    def ce(self) -> float:
        return log_sum_exp(self.logits) - self.logits[self.label]

    def kl(self, temperature: float) -> float:
        """T^2 KL(target || drafter), both softened."""
        q, p = ([s / temperature for s in scores] for scores in (self.logits, self.taught))
        log_q, log_p = ([s - log_sum_exp(scores) for s in scores] for scores in (q, p))
        return temperature**2 * sum(math.exp(b) * (b - a) for a, b in zip(log_q, log_p, strict=True))


def log_sum_exp(scores: list[float]) -> float:
    top = max(scores)
    return top + math.log(sum(math.exp(s - top) for s in scores))


def sequences_of(batch: Batch) -> list[tuple[int, int, int]]:
    """Row, first place and the place behind the last of every sequence."""
    found = []
    for row, length in enumerate(batch.lengths.tolist()):
        firsts = [0] if batch.begins is None else sorted(set(batch.begins[row, :length].tolist()))
        found += [(row, a, b) for a, b in zip(firsts, [*firsts[1:], length], strict=True)]
    return found


@torch.no_grad()
def restated_blocks(objective: Objective, batch: Batch, anchors: Anchors) -> Iterator[list[Slot]]:
    """The supervised slots of every block. The batch is read sequence by sequence, each alone and without padding."""
    target, size = objective.target, objective.block_size
    theta = target.model.config.rope_parameters["rope_theta"]
    embedding = target.model.get_input_embeddings().weight
    head = target.model.get_output_embeddings().weight
    for row, begin, end in sequences_of(batch):
        tokens, response, length = batch.tokens[row, begin:end], batch.response[row, begin:end], end - begin
        out = target.model(input_ids=tokens[None], output_hidden_states=True)
        taps = torch.cat([out.hidden_states[i + 1][0] for i in target.layer_ids], dim=-1)
        for place, valid in zip(anchors.positions[row].tolist(), anchors.valid[row].tolist(), strict=True):
            if not valid or not begin <= place < end:
                continue
            anchor = place - begin
            inputs = torch.stack([embedding[tokens[anchor]]] + [embedding[target.mask_token_id]] * (size - 1))
            hidden = restated_hidden(objective.drafter, taps, inputs, anchor, theta)
            slots = []
            for k in range(1, size):
                if anchor + k < length and response[anchor + k]:
                    taught = out.logits[0, anchor + k - 1].tolist()
                    label = max(range(len(taught)), key=taught.__getitem__)
                    if not objective.from_final:
                        label = int(tokens[anchor + k])
                    slots.append(Slot(k, (head @ hidden[k]).tolist(), taught, label))
            yield slots


def restated_weights(slots: list[Slot], kind: str, gamma: float) -> list[float]:
    weights = []
    for j, slot in enumerate(slots):
        decay = math.exp(-(slot.k - 1) / gamma)
        if kind == "uniform":
            weights.append(1.0)
        elif kind == "decay":
            weights.append(decay)
        elif kind == "streak":
            weights.append(decay * (1 + sum(1 for earlier in slots[:j] if earlier.right())))
        else:
            pace = [0.5 * math.exp(-s.ce()) + 0.5 for s in slots]
            weights.append(sum(math.prod(pace[: m + 1]) for m in range(j, len(slots))))
    return weights


def restated_loss(objective: Objective, batch: Batch, anchors: Anchors) -> tuple[float, int, int]:
    """The loss of the batch, how many slots are supervised, and how many of them are right."""
    scoring = objective.scoring
    total = weight_sum = 0.0
    num_slots = num_right = 0
    for slots in restated_blocks(objective, batch, anchors):
        for slot, weight in zip(slots, restated_weights(slots, scoring.position_weight, scoring.gamma), strict=True):
            mix = scoring.mix
            loss = mix.ce * slot.ce() + (mix.kl * slot.kl(mix.temperature) if mix.kl else 0.0)
            total += weight * loss
            weight_sum += weight
            num_slots += 1
            num_right += slot.right()
    return total / weight_sum, num_slots, num_right
