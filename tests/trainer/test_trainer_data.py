import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.batches import Plan, collate
from trainer.config import ConfigError
from trainer.data import Row, Sample, read_rows
from trainer.dataset import prepare
from trainer.decode import greedy
from trainer.errors import Interrupted
from trainer.ranks import Ranks
from trainer.regenerate import responses
from trainer.stop import Stop

from .trainer_setup import checked, write_rows

TEMPLATE = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


def rows_of(tmp_path, tiny, rows, **changes) -> list[Row]:
    return read_rows(write_rows(tmp_path / "rows.jsonl", rows), tiny.tokenizer, checked(tmp_path, **changes))[0]


def test_a_prompt_is_its_bytes_and_waits_for_a_response(tmp_path, tiny):
    row = {"prompt": "é\n", "max_new_tokens": 7, "source": "a key that nobody knows"}
    assert rows_of(tmp_path, tiny, [row]) == [Row("train", list("é\n".encode()), None, 7)]


def test_the_smallest_of_the_limits_on_new_tokens_holds(tmp_path, tiny):
    row = {"prompt": "ab", "max_new_tokens": 9}
    limits = {"data.max_new_tokens": 5}, {"data.max_new_tokens": 50}, {"data.max_seq_len": 8}
    assert [rows_of(tmp_path, tiny, [row], **limit)[0].budget for limit in limits] == [5, 9, 6]


def test_a_response_that_is_there_is_kept(tmp_path, tiny):
    rows = rows_of(tmp_path, tiny, [{"prompt": "ab", "response": "cde"}])
    assert (rows[0].prompt, rows[0].response) == (list(b"ab"), list(b"cde"))


def test_messages_go_through_the_chat_template(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr(tiny.tokenizer, "chat_template", TEMPLATE)
    ask, answer = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}
    rows = rows_of(
        tmp_path, tiny, [{"messages": [ask]}, {"messages": [ask, answer]}, {"messages": [ask], "response": "yo"}]
    )
    prompt = list(b"[user]hi\n[assistant]")
    assert [row.prompt for row in rows] == [prompt] * 3
    assert [row.response for row in rows] == [None, list(b"yo\n"), list(b"yo\n")]


def test_a_template_that_rewrites_the_prompt_is_refused(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr(tiny.tokenizer, "chat_template", "{{ messages | length }}" + TEMPLATE)
    with pytest.raises(ConfigError, match=r"rows\.jsonl:1: the chat template rewrites"):
        rows_of(
            tmp_path, tiny, [{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}]
        )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "is not JSON"),
        ("[]", "must be an object"),
        ("{}", "either a prompt"),
        ('{"prompt": 3}', "either a prompt"),
        ('{"prompt": ""}', "the prompt is empty"),
        ('{"prompt": "a", "messages": []}', "either a prompt"),
        ('{"prompt": "a", "response": 1}', "response must be text"),
        ('{"prompt": "a", "split": "test"}', "'test' is not allowed"),
        ('{"prompt": "a", "max_new_tokens": 0}', "max_new_tokens 0 is not allowed"),
        ('{"messages": [{"role": "user", "content": "a"}]}', "no chat template"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path, tiny, line, why):
    place = tmp_path / "rows.jsonl"
    place.write_text('{"prompt": "fine"}\n\n' + line + "\n")
    with pytest.raises(ConfigError, match=rf"rows\.jsonl:3: .*{why}"):
        read_rows(place, tiny.tokenizer, checked(tmp_path))


def test_rows_are_cut_to_the_longest_sequence_and_those_without_room_are_counted(tmp_path, tiny):
    place = write_rows(tmp_path / "rows.jsonl", [{"prompt": "a" * n, "response": "b" * 20} for n in (6, 8, 14, 15, 40)])
    rows, num_too_long = read_rows(place, tiny.tokenizer, checked(tmp_path, data={"max_seq_len": 16}))
    assert [len(row.prompt) + len(row.response or []) for row in rows] == [16, 16, 16]
    assert [row.budget for row in rows] == [10, 8, 2]
    assert num_too_long == 2


def test_only_the_first_rows_of_each_split_are_taken(tmp_path, tiny):
    rows = [{"prompt": f"p{i}", "split": "eval" if i % 2 else "train"} for i in range(8)]
    taken = rows_of(tmp_path, tiny, rows, data={"num_train": 3, "num_eval": 1})
    assert [bytes(row.prompt).decode() for row in taken] == ["p0", "p1", "p2", "p4"]


def test_a_file_without_training_rows_is_refused(tmp_path, tiny):
    with pytest.raises(ConfigError, match="no row to train on"):
        rows_of(tmp_path, tiny, [{"prompt": "a", "split": "eval"}])
    with pytest.raises(ConfigError, match="cannot be read"):
        read_rows(tmp_path / "none.jsonl", tiny.tokenizer, checked(tmp_path))


ROWS = [
    Row("train", list(b"def f"), None, 9),
    Row("eval", list(b"import"), None, 6),
    Row("train", list(b"x = "), list(b"given"), 5),
    Row("train", list(b"class A"), None, 12),
]


def test_the_target_writes_what_is_missing_and_keeps_it(tmp_path, tiny, capsys):
    place = tmp_path / "responses.jsonl"
    config = checked(tmp_path, data={"generate_batch": 2})
    written = responses(tiny, ROWS, config, place, 3, lambda: None)
    assert written[0] == greedy(tiny, [ROWS[0].prompt], [9])[0].tokens
    assert written[1] == greedy(tiny, [ROWS[1].prompt], [9])[0].tokens
    assert written[2] == list(b"given")
    assert "3 of 3 written by the target" in capsys.readouterr().out
    before = place.read_bytes()
    assert responses(tiny, ROWS, config, place, 3, lambda: None) == written
    assert place.read_bytes() == before
    assert capsys.readouterr().out == ""


def test_a_stop_while_writing_loses_nothing_that_was_written(tmp_path, tiny, capsys):
    place, stop = tmp_path / "responses.jsonl", Stop()
    config = checked(tmp_path, data={"generate_batch": 1})
    whole = responses(tiny, ROWS, config, tmp_path / "other.jsonl", 3, lambda: None)

    def stop_after_the_first() -> None:
        stop.check()
        stop.asked = True

    with pytest.raises(Interrupted):
        responses(tiny, ROWS, config, place, 3, stop_after_the_first)
    kept = place.read_bytes()
    assert kept.count(b"\n") == 2
    # A line that a crash left torn is written again.
    place.write_bytes(kept + b'{"row": 3, "respo')
    capsys.readouterr()
    assert responses(tiny, ROWS, config, place, 3, lambda: None) == whole
    assert place.read_bytes().startswith(kept)
    assert "2 of 2" in capsys.readouterr().out


def test_responses_of_other_data_are_not_taken(tmp_path, tiny):
    place, config = tmp_path / "responses.jsonl", checked(tmp_path)
    responses(tiny, ROWS, config, place, 3, lambda: None)
    longer = [Row("train", ROWS[0].prompt, None, 20), *ROWS[1:]]
    assert len(responses(tiny, longer, config, place, 3, lambda: None)[0]) == 20


def test_short_and_odd_lengths_are_counted_and_the_rest_is_trained_on(tmp_path, tiny):
    """Responses of one token have no slot to ask for; those of block_size, block_size + 1, 2 block_size - 1 do."""
    lengths = [1, 4, 5, 7, 1, 40]
    rows = [{"prompt": "p", "response": "r" * n} for n in lengths] + [{"prompt": "q" * 99, "response": "r"}]
    place = write_rows(tmp_path / "rows.jsonl", rows)
    config = checked(tmp_path, data={"path": str(place), "max_seq_len": 64})
    data = prepare(config, tiny, lambda: None, Ranks())
    assert [len(s.tokens) - s.start for s in data.train] == [4, 5, 7, 40]
    assert data.held_out == []
    assert [note[:18] for note in data.notes] == ["rows left out: 1 (", "rows left out: 2 (", "no evaluation: row"]


def test_nothing_but_rows_without_a_slot_is_refused(tmp_path, tiny):
    place = write_rows(tmp_path / "rows.jsonl", [{"prompt": "p", "response": "r"}])
    with pytest.raises(ConfigError, match="nothing to train on"):
        prepare(checked(tmp_path, data={"path": str(place)}), tiny, lambda: None, Ranks())


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(2, 60), min_size=1, max_size=60), st.integers(60, 300), st.integers(1, 8), st.integers(0, 5)
)
def test_an_epoch_holds_every_sequence_once_within_the_budget(lengths, batch_tokens, num_buckets, epoch):
    samples = [Sample([0] * n, 1) for n in lengths]
    plan = Plan(samples, batch_tokens, num_buckets, seed=3)
    batches = plan.epoch(epoch)
    assert sorted(i for batch in batches for i in batch) == list(range(len(samples)))
    assert len(batches) == plan.per_epoch
    assert all(len(batch) * max(lengths[i] for i in batch) <= batch_tokens for batch in batches)
    assert batches == Plan(samples, batch_tokens, num_buckets, seed=3).epoch(epoch)


def test_epochs_are_shuffled_anew():
    plan = Plan([Sample([0] * 5, 1) for _ in range(40)], 20, 2, seed=0)
    assert plan.epoch(0) != plan.epoch(1)


def test_a_sequence_longer_than_a_batch_is_refused():
    with pytest.raises(ConfigError, match="batch_tokens: 8 does not hold the longest sequence"):
        Plan([Sample([0] * 9, 1)], 8, 1, seed=0)


def test_a_batch_is_padded_behind_and_knows_its_responses():
    batch = collate([Sample([1, 2, 3, 4], 2), Sample([5, 6], 1)], torch.device("cpu"))
    assert batch.tokens.tolist() == [[1, 2, 3, 4], [5, 6, 0, 0]]
    assert batch.response.int().tolist() == [[0, 0, 1, 1], [0, 1, 0, 0]]
    assert batch.lengths.tolist() == [4, 2]


def test_the_bundled_prompts_are_many_and_told_apart(tiny):
    rows = [json.loads(line) for line in (tiny.path / "prompts.jsonl").read_text().splitlines()]
    prompts = {split: {row["prompt"] for row in rows if row["split"] == split} for split in ("train", "eval")}
    assert len(prompts["train"]) >= 1024 and len(prompts["eval"]) >= 64
    assert not prompts["train"] & prompts["eval"]
    assert len({row["max_new_tokens"] for row in rows}) > 100
    assert (tiny.path / "model.safetensors").stat().st_size <= 4_000_000
