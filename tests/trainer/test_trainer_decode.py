import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.batches import collate
from trainer.blocks import every_anchor
from trainer.data import answered
from trainer.decode import greedy, lookup, speculative
from trainer.errors import Interrupted
from trainer.evaluate import HeldOut, evaluate, teacher_forced, walks
from trainer.loss import Scoring
from trainer.model import Drafter
from trainer.run import run
from trainer.step import Objective
from trainer.target import Target
from trainer.tree_decode import tree_speculative
from trainer.zlab import draft_shape

from .trainer_setup import checked, events, write_rows

pytestmark = pytest.mark.slow

PROMPTS = ["def main():\n", "import os\n\tfor x in range", "class Thread(Base):\n\tdef __init__(self", "x"]
BUDGETS = [40, 23, 31, 1]


@pytest.fixture(scope="module")
def prompts(tiny) -> list[list[int]]:
    return [tiny.tokenizer(text)["input_ids"] for text in PROMPTS]


@pytest.fixture(scope="module")
def drafter(tiny) -> Drafter:
    return Drafter(draft_shape(tiny, (None, None)), torch.Generator().manual_seed(0))


def generated(target: Target, prompt: list[int], budget: int) -> list[int]:
    out = target.model.generate(torch.tensor([prompt]), max_new_tokens=budget, do_sample=False)
    return out[0, len(prompt) :].tolist()


def test_greedy_writes_what_transformers_writes(tiny, prompts):
    rows = greedy(tiny, prompts, BUDGETS)
    for prompt, budget, row in zip(prompts, BUDGETS, rows, strict=True):
        assert row.tokens == generated(tiny, prompt, budget)


def test_a_tail_goes_on_beyond_the_budget(tiny, prompts):
    rows = greedy(tiny, prompts, BUDGETS, tail=5)
    for prompt, budget, row in zip(prompts, BUDGETS, rows, strict=True):
        assert row.tokens == generated(tiny, prompt, budget + 5)


def test_an_end_token_ends_a_response(tiny, prompts, monkeypatch):
    whole = greedy(tiny, prompts[2:3], [40])[0].tokens
    end = next(token for token in whole[5:] if token not in whole[:5])
    monkeypatch.setattr(tiny.model.generation_config, "eos_token_id", [end, 258])
    cut = whole[: whole.index(end) + 1]
    assert greedy(tiny, prompts[2:3], [40])[0].tokens == cut
    assert greedy(tiny, prompts[2:3], [40], tail=3)[0].tokens == whole[: len(cut) + 3]


@pytest.mark.parametrize("block_size", [2, 4, 8])
def test_an_untrained_drafter_loses_nothing_and_gains_nothing(tiny, drafter, prompts, block_size):
    """Every row goes its own way, some leave the batch early: each must be what it would be alone."""
    budgets = [90, 20, 70, 33]
    plain = greedy(tiny, prompts, budgets, tail=block_size)
    decoded = speculative(tiny, drafter, prompts, budgets, block_size)
    for budget, want, row in zip(budgets, plain, decoded, strict=True):
        assert len(row.tokens) >= budget
        assert row.tokens == want.tokens[: len(row.tokens)]
        # The first token is the prompt's, not a round's.
        assert sum(row.accepted) == len(row.tokens) - 1
        assert min(row.accepted) >= 1 and max(row.accepted) <= block_size


def test_right_drafts_are_taken_whole(tiny, drafter, prompts, monkeypatch):
    """With drafts made of the target's own text, every round gives a whole block; one wrong draft costs its tail."""
    block_size, budget = 4, 33
    prompt = prompts[0]
    written = greedy(tiny, [prompt], [budget], tail=block_size)[0].tokens
    wrong_at = len(prompt) + 10

    def propose(self, token, starts):
        start = int(starts)
        future = torch.tensor([(prompt + written)[start + 1 : start + block_size]])
        return torch.where(torch.arange(start + 1, start + block_size) == wrong_at, (future + 1) % 256, future)

    monkeypatch.setattr("trainer.decode.DraftCache.propose", propose)
    row = speculative(tiny, drafter, [prompt], [budget], block_size)[0]
    assert row.tokens == written[: len(row.tokens)]
    # Blocks begin at written token 0, 4, 8; the third has its second draft (written token 10) wrong.
    assert row.accepted == [4, 4, 2, *[4] * 6]


def test_the_drafter_decodes_what_it_was_scored_on(tiny, drafter, prompts):
    """One block of a decode gives the states that the training pass gives at that anchor."""
    text = prompts[2] + greedy(tiny, prompts[2:3], [20])[0].tokens
    batch = collate([answered(text, len(prompts[2]))], tiny.device)
    size = 4
    objective = Objective(tiny, drafter, size, Scoring(4.0))
    states = []
    hook = drafter.norm.register_forward_hook(lambda _module, _inputs, out: states.append(out.detach()))
    anchors = every_anchor(batch.response, 1)
    objective.loss(batch, objective.features(batch)[0], anchors)
    speculative(tiny, drafter, prompts[2:3], [2], size)
    hook.remove()
    # The decode's first block stands on the first token of the response, which is the first anchor.
    assert int(anchors.positions[0, 0]) == len(prompts[2])
    # Training asks nothing of the anchor's slot, and leaves it out.
    torch.testing.assert_close(states[1][0, 1:], states[0][: size - 1], rtol=1e-4, atol=1e-4)


texts = st.lists(st.integers(0, 3), min_size=1, max_size=40)


def plain_lookup(prompt, written, budget, block_size):
    """Search the whole text anew in every round, longest suffix first, latest place first."""
    rounds, done = [], 1
    while done < budget:
        text = prompt + written[:done]
        draft = []
        for size in (3, 2, 1):
            places = [p for p in range(len(text) - size) if p + size < len(text) and text[p : p + size] == text[-size:]]
            if size <= len(text) - 1 and places:
                draft = list(text)
                for i in range(block_size - 1):
                    draft.append(draft[places[-1] + size + i])
                draft = draft[len(text) :]
                break
        agreed = 0
        while agreed < len(draft) and draft[agreed] == written[done + agreed]:
            agreed += 1
        rounds.append(agreed + 1)
        done += agreed + 1
    return rounds


@settings(max_examples=100, deadline=None)
@given(texts, st.lists(st.integers(0, 3), min_size=45, max_size=45), st.integers(1, 30), st.integers(2, 9))
def test_lookup_is_a_plain_search_for_the_longest_suffix(prompt, written, budget, block_size):
    assert lookup(prompt, written, budget, block_size) == plain_lookup(prompt, written, budget, block_size)


def test_lookup_follows_a_loop():
    # Nothing to copy, then "a" and "ab" are found again, then whole blocks.
    written = [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2]
    assert lookup([9], written, 12, 4) == [1, 1, 4, 4, 4]


def test_an_evaluation_says_all_it_should(tiny, drafter, prompts, tmp_path):
    size = 4
    rows = []
    for prompt, row in zip(prompts, greedy(tiny, prompts, BUDGETS, tail=size), strict=True):
        rows.append(HeldOut(prompt, row.tokens[:-size], row.tokens[-size:]))
    ((_, fields),) = evaluate([Objective(tiny, drafter, size, Scoring(4.0))], rows, 3)
    assert fields["n_samples"] == len(prompts)
    assert fields["lossless"] == 1.0
    assert 1.0 <= fields["tau_linear_macro"] < 1.2
    # Three responses have rounds; the one of a single token has none.
    copied = [plain_lookup(r.prompt, r.response + r.beyond, len(r.response), size) for r in rows]
    means = [sum(c) / len(c) for c in copied if c]
    assert fields["lookup_tau_macro"] == pytest.approx(sum(means) / 3, rel=1e-12)
    assert len(fields["accept_hist"]) == size + 1 and fields["accept_hist"][0] == 0
    rounds = sum(fields["accept_hist"])
    assert fields["tau_linear_micro"] == pytest.approx(
        sum(i * n for i, n in enumerate(fields["accept_hist"])) / rounds, rel=1e-12
    )
    assert fields["tau_gap"] == fields["tau_linear_macro"] - fields["accept_len"]
    assert len(fields["position_acc"]) == len(fields["prefix_acc"]) == size - 1
    assert fields["full_block_rate"] == fields["prefix_acc"][-1]
    ((_, again),) = evaluate([Objective(tiny, drafter, size, Scoring(4.0))], rows, 3)
    assert {**fields, "seconds": 0} == {**again, "seconds": 0}


def test_responses_of_one_token_have_no_round_and_are_told_all_the_same(tmp_path, capsys):
    rows = [{"prompt": "ab", "response": "cdefg"}, {"prompt": "x", "split": "eval", "max_new_tokens": 1}]
    place = write_rows(tmp_path / "rows.jsonl", rows)
    assert run(checked(tmp_path / "run", data={"path": str(place)}, total_steps=1)) == 0
    told = events(tmp_path / "run", "eval")
    assert [(r["tau_linear_macro"], r["lookup_tau_macro"], r["lossless"]) for r in told] == [(None, None, 1.0)] * 2
    said = capsys.readouterr().out
    assert said.index("step 0: evaluation begins, 1 held out") < said.index("step 0: 1.00 tokens a pass")


def test_the_walk_over_the_responses_is_the_decode(tiny, trained, prompts, monkeypatch):
    """With a drafter that is sometimes right, and has a layer with a window."""
    size, budgets = 4, [60, 35, 41, 1]
    drafter = trained
    rows = []
    for prompt, row in zip(prompts, greedy(tiny, prompts, budgets, tail=size), strict=True):
        rows.append(HeldOut(prompt, row.tokens[:-size], row.tokens[-size:]))
    rounds = [row.accepted for row in speculative(tiny, drafter, prompts, budgets, size)]
    assert max(max(r, default=0) for r in rounds) > 1
    assert walks([Objective(tiny, drafter, size, Scoring(4.0))], rows)[0] == rounds
    monkeypatch.setattr("trainer.evaluate._WALK_BLOCKS", 7)
    assert walks([Objective(tiny, drafter, size, Scoring(4.0))], rows)[0] == rounds


@pytest.fixture(scope="module")
def trained(tiny) -> Drafter:
    """A drafter after 25 steps."""
    target = tiny
    drafter = Drafter(draft_shape(target, (None, 8)), torch.Generator().manual_seed(0))
    optimizer = torch.optim.AdamW(drafter.parameters(), lr=3e-3)
    texts = greedy(target, [[ord(c)] for c in "abcdefgh"], [60] * 8)
    batch = collate([answered(row.tokens, 0) for row in texts], target.device)
    objective = Objective(target, drafter, 4, Scoring(4.0))
    features, _ = objective.features(batch)
    for _ in range(25):
        loss, counts = objective.loss(batch, features, every_anchor(batch.response, 2))
        optimizer.zero_grad()
        (loss / counts.weight).backward()
        optimizer.step()
    return drafter


@pytest.mark.parametrize("nodes", [1, 3, 8, 20])
def test_decoding_by_trees_loses_nothing(tiny, trained, prompts, nodes):
    size, budgets = 4, [60, 35, 41, 1]
    plain = greedy(tiny, prompts, budgets, tail=size)
    decoded = tree_speculative(tiny, trained, prompts, budgets, size, nodes)
    for budget, want, row in zip(budgets, plain, decoded, strict=True):
        assert len(row.tokens) >= budget
        assert row.tokens == want.tokens[: len(row.tokens)]
        assert sum(row.accepted) == len(row.tokens) - 1
        assert max(row.accepted, default=1) <= min(size, nodes + 1)
    assert max(max(row.accepted, default=1) for row in decoded) > 1


def test_the_trees_of_an_evaluation(tiny, trained, prompts):
    """A tree of one node is the chain cut behind its first draft; a larger one accepts more on these prompts."""
    size = 4
    rows = []
    for prompt, row in zip(prompts, greedy(tiny, prompts, BUDGETS, tail=size), strict=True):
        rows.append(HeldOut(prompt, row.tokens[:-size], row.tokens[-size:]))
    ((_, fields),) = evaluate([Objective(tiny, trained, size, Scoring(4.0))], rows, 3, trees=True)
    taus = [fields[f"ddtree_tau_b{nodes}"] for nodes in (8, 16, 32, 64)]
    assert all(1 < tau <= size for tau in taus) and taus[-1] > taus[0]
    one = tree_speculative(tiny, trained, prompts, BUDGETS, size, 1)
    for row in one:
        assert all(count <= 2 for count in row.accepted)


def test_prompts_are_decoded_so_many_at_a_time_and_a_stop_is_seen_meanwhile(tiny, drafter, prompts):
    size = 4
    written = greedy(tiny, prompts, [9] * len(prompts), tail=size)
    rows = [HeldOut(p, row.tokens[:-size], row.tokens[-size:]) for p, row in zip(prompts, written, strict=True)]
    objectives = [Objective(tiny, drafter, size, Scoring(4.0))]
    whole, parts = (evaluate(objectives, rows, 3, 2, trees=True, at_a_time=count)[0][1] for count in (256, 1))
    assert {**whole, "seconds": 0} == {**parts, "seconds": 0}
    calls = []

    def stop() -> None:
        calls.append(1)
        if len(calls) == 9:
            raise Interrupted

    with pytest.raises(Interrupted):
        evaluate(objectives, rows, 3, check_stop=stop)


def test_a_wrong_token_is_seen(tiny, drafter, prompts):
    size = 4
    rows = []
    for prompt, row in zip(prompts[:2], greedy(tiny, prompts[:2], BUDGETS[:2], tail=size), strict=True):
        rows.append(HeldOut(prompt, row.tokens[:-size], row.tokens[-size:]))
    spoiled = [HeldOut(rows[0].prompt, [*rows[0].response[:-1], 1], rows[0].beyond), rows[1]]
    assert evaluate([Objective(tiny, drafter, size, Scoring(4.0))], spoiled, 3)[0][1]["lossless"] == 0.5


def test_teacher_forcing_counts_every_nth_block(tiny, drafter, prompts):
    row = HeldOut(prompts[0], greedy(tiny, prompts[:1], [20])[0].tokens, [])
    (counts,) = teacher_forced([Objective(tiny, drafter, 4, Scoring(4.0))], [row], 5)
    # Positions 0, 5, 10 and 15 of the 20; the last block holds 3 supervised slots as all do.
    assert counts.blocks == 4
    assert counts.slots == [4, 4, 4]


def test_the_loss_of_an_evaluation_is_the_same_whatever_weights_training_has(tiny, drafter, prompts):
    row = HeldOut(prompts[0], list(range(40, 60)), [])
    scorings = (Scoring(4.0), Scoring(10.0, "streak"), Scoring(4.0, "dpace"))
    told = [c.losses() for c in teacher_forced([Objective(tiny, drafter, 4, s) for s in scorings], [row], 5)]
    assert told[0] == told[1] == told[2]
    assert told[0]["loss"] == pytest.approx(told[0]["loss_ce"])
