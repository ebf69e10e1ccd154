"""The objective: how wrong each slot is, and how much each slot weighs."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from trainer.blocks import Blocks
from trainer.config import Config
from trainer.errors import ConfigError
from trainer.head import Mix, head_scores
from trainer.metrics import Tally, leading_runs, tally
from trainer.target import Target

# What the weighted sum is divided by; trainers differ, and so do their losses.
LOSS_NORM = "sum_w"
# D-PACE's smoothing: a slot is held half right at least.
_PACE = 0.5


@dataclass(frozen=True)
class Scoring:
    """`position_weight` is decay, dpace, uniform or streak; `gamma`, in slots, is the decay's."""

    gamma: float
    position_weight: str = "decay"
    mix: Mix = field(default_factory=Mix)


def auto_gamma(block_size: int) -> float:
    """The paper's values for blocks of 16, 10 and 8 tokens, each also for the sizes up to the next."""
    return 7.0 if block_size >= 16 else 5.0 if block_size >= 10 else 4.0


def make_scoring(config: Config) -> Scoring:
    """ConfigError if what is asked for needs another teacher, or is nothing."""
    from_tokens = config["teacher"] == "tokens"
    mix = Mix(config["loss.ce"], config["loss.kl"], config["kl_temperature"])
    if not mix.ce and not mix.kl:
        raise ConfigError("loss.ce and loss.kl are both 0, so there is nothing to learn; raise one of them")
    if from_tokens and mix.kl:
        raise ConfigError('loss.kl: tokens have no distribution to come near to; set teacher = "final_hidden"')
    if from_tokens and config["noise.on"] == "all":
        raise ConfigError('noise.on: "all" reaches no label that is a token; set teacher = "final_hidden"')
    gamma = auto_gamma(config["block_size"]) if config["gamma"] == "auto" else config["gamma"]
    return Scoring(gamma, config["position_weight"], mix)


def slot_weights(scoring: Scoring, supervised: Tensor, ce: Tensor, right: Tensor) -> Tensor:
    """Weights [blocks, slots], the anchor's slot left out; they pass no gradient on.

    decay    exp(-(k-1)/gamma) for slot k (the paper's equation 4)
    uniform  1
    streak   decay * (1 + how many earlier slots of the block are right)
    dpace    the sum over m >= k of the product over i <= m of (q_i + 1) / 2, q = exp(-ce) (arXiv:2605.18810)

    Slots that are not supervised weigh 0; to dpace they are not there.
    """
    distance = torch.arange(supervised.shape[-1], device=ce.device, dtype=ce.dtype)
    if scoring.position_weight == "uniform":
        weights = torch.ones_like(ce)
    elif scoring.position_weight == "dpace":
        factors = torch.where(supervised, (1 - _PACE) * (-ce).exp() + _PACE, 1.0)
        reached = factors.cumprod(-1) * supervised
        weights = reached.flip(-1).cumsum(-1).flip(-1)
    else:
        weights = torch.exp(-distance / scoring.gamma).expand_as(ce)
        if scoring.position_weight == "streak":
            hits = (right & supervised).to(ce.dtype)
            weights = weights * (1 + hits.cumsum(-1) - hits)
    return weights * supervised


def weighted_mean(losses: Tensor, weights: Tensor) -> Tensor:
    """sum(w l) / sum(w); 0 where no slot counts, with a gradient of 0."""
    total = weights.sum()
    return (losses * weights).sum() / torch.where(total > 0, total, torch.ones_like(total))


def score(
    target: Target, hidden: Tensor, blocks: Blocks, final: Tensor | None, scoring: Scoring
) -> tuple[Tensor, Tally, Tensor]:
    """The weighted sum of losses over the final `hidden` [supervised slots, hidden], the counts, and how many slots of
    each block are right without a gap [sequences, blocks].

    The sum is not yet divided: what it is to be divided by is the counts' `weight`, which other micro-batches and
    processes add to. `final` [sequences, tokens, hidden], the target's last layer, makes the target's own choices the
    labels; without it they are the tokens.
    """
    supervised = blocks.supervised
    teacher = None
    if final is not None:
        rows = torch.arange(len(final), device=final.device)[:, None, None].expand_as(supervised)
        # What the target says after the token before the slot's own is what it says in the slot's place.
        teacher = target.normed(final[rows[supervised], blocks.places[supervised] - 1])
    wanted = blocks.labels[supervised]
    scores = head_scores(target.output_head, hidden, wanted, teacher, scoring.mix)

    def spread(flat: Tensor) -> Tensor:
        """Every slot of every block again; what is not supervised is 0 and is not looked at."""
        grid = torch.zeros(supervised.shape, dtype=flat.dtype, device=flat.device)
        return grid.masked_scatter(supervised, flat)[..., 1:].flatten(0, 1)

    held = supervised[..., 1:].flatten(0, 1)
    with torch.no_grad():
        ranks, ce = spread(scores.ranks), spread(scores.ce)
        weights = slot_weights(scoring, held, ce, ranks == 0)
    loss = (scores.loss * weights[held]).sum()
    with torch.no_grad():
        sums = torch.stack([part.sum().double() for part in (loss, weights, ce, spread(scores.kl))])
        counts = tally(held, ranks, spread(scores.top1_prob), sums)
        runs = leading_runs(held & (ranks == 0)).view(supervised.shape[:2])
    return loss, counts, runs
