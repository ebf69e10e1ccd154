import json
from itertools import groupby

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.batches import Plan, collate
from trainer.config import ConfigError
from trainer.data import Talk, answered, read_talks
from trainer.dataset import prepare
from trainer.decode import greedy
from trainer.errors import Interrupted
from trainer.ranks import Ranks
from trainer.regenerate import Kept
from trainer.rows import num_wanted
from trainer.stop import Stop

from .trainer_setup import checked, write_rows

TEMPLATE = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


def talks_of(tmp_path, tiny, rows, **changes) -> list[Talk]:
    return list(read_talks(write_rows(tmp_path / "rows.jsonl", rows), tiny.tokenizer, checked(tmp_path, **changes)))


def spans(sample) -> list[tuple[bytes, bool]]:
    """The stretches of a sequence, each with whether it is an answer."""
    pairs = zip(sample.tokens.tolist(), sample.response.tolist(), strict=True)
    return [(bytes(t for t, _ in group), mark) for mark, group in groupby(pairs, key=lambda pair: pair[1])]


def test_a_prompt_is_its_bytes_and_waits_for_a_response(tmp_path, tiny):
    (talk,) = talks_of(tmp_path, tiny, [{"prompt": "é\n", "max_new_tokens": 7, "source": "a key that nobody knows"}])
    assert (talk.split, talk.prompt, talk.budget, talk.line) == ("train", list("é\n".encode()), 7, 1)
    assert talk.samples() == []
    talk.take(list(b"xyz"))
    assert talk.prompt is None
    assert [spans(s) for s in talk.samples()] == [[("é\n".encode(), False), (b"xyz", True)]]


def test_the_smallest_of_the_limits_on_new_tokens_holds(tmp_path, tiny):
    row = {"prompt": "ab", "max_new_tokens": 9}
    limits = {"data.max_new_tokens": 5}, {"data.max_new_tokens": 50}, {"data.max_seq_len": 8}
    assert [talks_of(tmp_path, tiny, [row], **limit)[0].budget for limit in limits] == [5, 9, 6]


def test_a_response_that_is_there_is_kept_unless_all_are_written_anew(tmp_path, tiny):
    row = {"prompt": "ab", "response": "cde"}
    (talk,) = talks_of(tmp_path, tiny, [row])
    assert talk.prompt is None and [spans(s) for s in talk.samples()] == [[(b"ab", False), (b"cde", True)]]
    (talk,) = talks_of(tmp_path, tiny, [row], data={"regenerate": "all"})
    assert talk.prompt == list(b"ab") and talk.samples() == []


ASK, ANSWER = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}


def test_messages_go_through_the_chat_template(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr(tiny.tokenizer, "chat_template", TEMPLATE)
    rows = [{"messages": [ASK]}, {"messages": [ASK, ANSWER]}, {"messages": [ASK], "response": "yo"}]
    asked, *given = talks_of(tmp_path, tiny, rows)
    prompt = b"[user]hi\n[assistant]"
    assert asked.prompt == list(prompt)
    assert [spans(s) for talk in given for s in talk.samples()] == [[(prompt, False), (b"yo\n", True)]] * 2


def test_every_answer_of_a_chat_is_one_and_nothing_else_is(tmp_path, tiny, monkeypatch):
    """Two answers are there, the third is to be written; the template only appends, so it is one sequence."""
    monkeypatch.setattr(tiny.tokenizer, "chat_template", TEMPLATE)
    system = {"role": "system", "content": "s"}
    (talk,) = talks_of(tmp_path, tiny, [{"messages": [system, ASK, ANSWER, ASK, ANSWER, ASK]}])
    assert talk.prompt == list(b"[system]s\n" + b"[user]hi\n[assistant]yo\n" * 2 + b"[user]hi\n[assistant]")
    talk.take(list(b"end"))
    turn = [(b"[user]hi\n[assistant]", False), (b"yo\n", True)]
    want = [(b"[system]s\n[user]hi\n[assistant]", False), turn[1], *turn, (turn[0][0], False), (b"end", True)]
    assert [spans(s) for s in talk.samples()] == [want]


def test_a_chat_is_written_anew_turn_after_turn(tmp_path, tiny, monkeypatch):
    """What the target wrote, and not what the row had, stands before the second question. 258 ends an answer."""
    monkeypatch.setattr(tiny.tokenizer, "chat_template", TEMPLATE.replace("\n{%", "{{ '<|eos|>' }}\n{%"))
    (talk,) = talks_of(tmp_path, tiny, [{"messages": [ASK, ANSWER, ASK, ANSWER]}], data={"regenerate": "all"})
    first = [*b"[user]hi", 258, *b"\n[assistant]"]
    assert (talk.prompt, talk.turn) == (first, 1)
    talk.take([*b"new", 258])
    assert (talk.prompt, talk.turn) == ([*first, *b"new", 258, *b"\n", *first], 2)
    talk.take([*b"last", 258])
    (sample,) = talk.samples()
    assert sample.tokens.tolist() == [*first, *b"new", 258, *b"\n", *first, *b"last", 258]
    assert sample.tokens[sample.response].tolist() == [*b"new", 258, *b"last", 258]


def test_what_a_template_puts_behind_the_end_of_an_answer_is_none(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr(tiny.tokenizer, "chat_template", TEMPLATE.replace("\n{%", "{{ '<|eos|>' }}\n{%"))
    (talk,) = talks_of(tmp_path, tiny, [{"messages": [ASK, ANSWER]}])
    (sample,) = talk.samples()
    assert sample.tokens[sample.response].tolist() == [*b"yo", 258]
    assert sample.tokens.tolist()[-1] == 258


# As Qwen3's: thoughts of earlier turns go, and without thinking an empty thought stands before the answer.
THINKER = (
    "{% for m in messages %}{% set content = m.content %}"
    "{% if not loop.last and '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}"
    "[{{ m.role }}]{{ content }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% if enable_thinking is defined and not enable_thinking %}"
    "<think></think>{% endif %}{% endif %}"
)


def test_with_thinking_every_answer_is_seen_behind_what_a_server_would_put_there(tmp_path, tiny, monkeypatch):
    """The template drops the first thought when the second question comes: that is another sequence."""
    monkeypatch.setattr(tiny.tokenizer, "chat_template", THINKER)
    thought = {"role": "assistant", "content": "<think>hm</think>yo"}
    (talk,) = talks_of(tmp_path, tiny, [{"messages": [ASK, thought, ASK]}], data={"thinking": True})
    assert talk.prompt == list(b"[user]hi[assistant]yo[user]hi[assistant]")
    talk.take(list(b"<think>oh</think>ah"))
    assert [spans(s) for s in talk.samples()] == [
        [(b"[user]hi[assistant]", False), (b"<think>hm</think>yo", True)],
        [(b"[user]hi[assistant]yo[user]hi[assistant]", False), (b"<think>oh</think>ah", True)],
    ]


def test_without_thinking_the_empty_thought_is_the_prompts(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr(tiny.tokenizer, "chat_template", THINKER)
    (talk,) = talks_of(tmp_path, tiny, [{"messages": [ASK]}], data={"thinking": False})
    assert talk.prompt == list(b"[user]hi[assistant]<think></think>")
    talk.take(list(b"yo"))
    assert [spans(s) for s in talk.samples()] == [[(b"[user]hi[assistant]<think></think>", False), (b"yo", True)]]


def test_a_template_that_rewrites_the_prompt_is_refused(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr(tiny.tokenizer, "chat_template", "{{ messages | length }}" + TEMPLATE)
    with pytest.raises(ConfigError, match=r"rows\.jsonl:1: the chat template rewrites"):
        talks_of(tmp_path, tiny, [{"messages": [ASK, ANSWER]}])


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
        ('{"prompt": "a", "split": ["eval"]}', r"split \['eval'\] is not allowed"),
        ('{"prompt": "a", "max_new_tokens": true}', "max_new_tokens True is not allowed"),
        (r'{"prompt": "a\ud83d"}', "is not UTF-8 text"),
        ("[" * 100_000, "is not JSON"),
        ("\udcff", "is not UTF-8 text"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path, tiny, line, why):
    place = tmp_path / "rows.jsonl"
    place.write_bytes(b'{"prompt": "fine"}\n\n' + line.encode(errors="surrogateescape") + b"\n")
    with pytest.raises(ConfigError, match=rf"rows\.jsonl:3: .*{why}"):
        list(read_talks(place, tiny.tokenizer, checked(tmp_path)))


def test_lines_as_other_systems_write_them_are_read(tmp_path, tiny):
    """A mark before the first, carriage returns, and half characters that make a whole one."""
    place = tmp_path / "rows.jsonl"
    place.write_bytes(b'\xef\xbb\xbf{"prompt": "a"}\r\n\r\n{"prompt": "\\ud83d\\ude00"}\r\n')
    prompts = [bytes(talk.prompt).decode() for talk in read_talks(place, tiny.tokenizer, checked(tmp_path))]
    assert prompts == ["a", "\N{GRINNING FACE}"]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("hi", "every message must be an object with a role"),
        ({"role": "user"}, "the content of a message with role 'user' must be text"),
        ({"role": "tool", "content": None}, "the content of a message with role 'tool' must be text"),
        ({"role": "assistant", "content": [{"type": "text", "text": "yo"}]}, "role 'assistant' must be text"),
    ],
)
def test_a_message_that_is_none_is_named(tmp_path, tiny, monkeypatch, message, words):
    monkeypatch.setattr(tiny.tokenizer, "chat_template", TEMPLATE)
    with pytest.raises(ConfigError, match=rf"rows\.jsonl:1: .*{words}"):
        talks_of(tmp_path, tiny, [{"messages": [ASK, message, ASK]}])


@pytest.mark.parametrize("answer", [{"role": "assistant"}, {"role": "assistant", "content": None}])
def test_an_answer_without_content_is_the_targets_to_write(tmp_path, tiny, monkeypatch, answer):
    monkeypatch.setattr(tiny.tokenizer, "chat_template", TEMPLATE)
    (talk,) = talks_of(tmp_path, tiny, [{"messages": [ASK, answer, ASK, ANSWER]}])
    assert talk.prompt == list(b"[user]hi\n[assistant]")
    assert num_wanted(tmp_path / "rows.jsonl", checked(tmp_path)) == 1
    write_rows(tmp_path / "rows.jsonl", [{"messages": 5}])
    assert num_wanted(tmp_path / "rows.jsonl", checked(tmp_path)) == 1


def test_rows_are_cut_to_the_longest_sequence_and_those_without_room_are_counted(tmp_path, tiny):
    rows = [{"prompt": "a" * n, "response": "b" * 20} for n in (6, 8, 14, 15, 40)]
    talks = talks_of(tmp_path, tiny, rows, data={"max_seq_len": 16})
    assert [[len(s) for s in talk.samples()] for talk in talks] == [[16], [16], [16], [], []]
    assert [talk.is_too_long for talk in talks] == [False, False, False, True, True]


def test_only_the_first_rows_of_each_split_are_taken(tmp_path, tiny):
    rows = [{"prompt": f"p{i}", "split": "eval" if i % 2 else "train"} for i in range(8)]
    taken = talks_of(tmp_path, tiny, rows, data={"num_train": 3, "num_eval": 1})
    assert [bytes(talk.prompt).decode() for talk in taken] == ["p0", "p1", "p2", "p4"]


def test_a_file_without_training_rows_is_refused(tmp_path, tiny):
    place = write_rows(tmp_path / "rows.jsonl", [{"prompt": "a", "split": "eval"}])
    with pytest.raises(ConfigError, match="no row to train on"):
        prepare(checked(tmp_path, data={"path": str(place)}), tiny, lambda: None, Ranks())
    with pytest.raises(ConfigError, match="cannot be read"):
        prepare(checked(tmp_path, data={"path": str(tmp_path / "none.jsonl")}), tiny, lambda: None, Ranks())


ROWS = [
    {"prompt": "def f", "max_new_tokens": 9},
    {"prompt": "x = ", "response": "given"},
    {"prompt": "class A", "max_new_tokens": 12},
    {"prompt": "import", "max_new_tokens": 6, "split": "eval"},
]


def settings_for(tmp_path, rows=ROWS, **changes) -> dict:
    return checked(
        tmp_path, data={"path": str(write_rows(tmp_path / "rows.jsonl", rows)), "generate_batch": 1, **changes}
    )


@pytest.mark.parametrize("damage", [b"\0" * 40 + b"\n", b"7\n", b'{"of": "a"}\n', b'{"of": 1, "answer": []}\n'])
def test_damaged_lines_of_kept_answers_cost_those_answers_alone(tmp_path, damage):
    place = tmp_path / "responses.jsonl"
    with Kept(place, "k") as kept:
        kept.add({"a": [1]})
    with place.open("ab") as file:
        file.write(damage)
    with Kept(place, "k") as kept:
        assert (len(kept), kept["a"]) == (1, [1])
        kept.add({"b": [2]})
    with Kept(place, "k") as kept:
        assert (kept["a"], kept["b"]) == ([1], [2])


def test_answers_of_another_target_are_set_aside_and_found_again(tmp_path):
    place = tmp_path / "responses.jsonl"
    for key, answer in (("one", [1]), ("two", [2])):
        with Kept(place, key) as kept:
            assert len(kept) == 0
            kept.add({"a": answer})
    for key, answer in (("one", [1]), ("two", [2]), ("two", [2]), ("one", [1])):
        with Kept(place, key) as kept:
            assert kept["a"] == answer
    place.unlink()
    with Kept(place, "one") as kept:
        assert len(kept) == 0


def written_by(tiny, text: str, count: int) -> list[int]:
    return greedy(tiny, [list(text.encode())], [count])[0].tokens


def test_the_target_writes_what_is_missing_and_keeps_it(tmp_path, tiny, capsys):
    config = settings_for(tmp_path)
    data = prepare(config, tiny, lambda: None, Ranks())
    assert [bytes(s.tokens.tolist()) for s in data.train] == [
        b"def f" + bytes(written_by(tiny, "def f", 9)),
        b"x = given",
        b"class A" + bytes(written_by(tiny, "class A", 12)),
    ]
    (held_out,) = data.held_out
    beyond = config["block_size"]
    assert held_out.prompt == list(b"import")
    assert held_out.response + held_out.beyond == written_by(tiny, "import", 6 + beyond)
    assert len(held_out.beyond) == beyond
    assert "2 of 2 written by the target" in capsys.readouterr().out
    kept = {p.name: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    again = prepare(config, tiny, lambda: None, Ranks())
    assert (again.digest, again.held_out) == (data.digest, data.held_out)
    assert kept == {p.name: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert capsys.readouterr().out == ""


def test_a_stop_while_writing_loses_nothing_that_was_written(tmp_path, tiny, capsys):
    (tmp_path / "other").mkdir()
    whole = prepare(settings_for(tmp_path / "other"), tiny, lambda: None, Ranks())
    config, stop = settings_for(tmp_path), Stop()

    place = tmp_path / "responses.jsonl"

    def stop_after_the_first() -> None:
        stop.asked = place.exists() and place.read_bytes().count(b"\n") == 2
        stop.check()

    with pytest.raises(Interrupted):
        prepare(config, tiny, stop_after_the_first, Ranks())
    kept = place.read_bytes()
    assert kept.count(b"\n") == 2
    assert not (tmp_path / "sequences").exists()
    # A line that a crash left torn is written again.
    place.write_bytes(kept + b'{"of": "3", "answ')
    capsys.readouterr()
    assert prepare(config, tiny, lambda: None, Ranks()).digest == whole.digest
    assert place.read_bytes().startswith(kept)
    assert "responses: 1 of 1" in capsys.readouterr().out


def test_rows_that_are_added_cost_no_answer_that_is_there(tmp_path, tiny, capsys):
    prepare(settings_for(tmp_path), tiny, lambda: None, Ranks())
    capsys.readouterr()
    more = [{"prompt": "while", "max_new_tokens": 5}, *reversed(ROWS)]
    data = prepare(settings_for(tmp_path, more), tiny, lambda: None, Ranks())
    assert "responses: 1 of 1" in capsys.readouterr().out
    assert [bytes(s.tokens.tolist())[:5] for s in data.train] == [b"while", b"class", b"x = g", b"def f"]
    longer = [{**ROWS[0], "max_new_tokens": 20}, *ROWS[1:]]
    assert len(prepare(settings_for(tmp_path, longer), tiny, lambda: None, Ranks()).train[0]) == 5 + 20


def test_short_and_odd_lengths_are_counted_and_the_rest_is_trained_on(tmp_path, tiny):
    """Responses of one token have no slot to ask for; those of block_size, block_size + 1, 2 block_size - 1 do."""
    lengths = [1, 4, 5, 7, 1, 40]
    rows = [{"prompt": "p", "response": "r" * n} for n in lengths] + [{"prompt": "q" * 99, "response": "r"}]
    place = write_rows(tmp_path / "rows.jsonl", rows)
    config = checked(tmp_path, data={"path": str(place), "max_seq_len": 64})
    data = prepare(config, tiny, lambda: None, Ranks())
    assert [int(s.response.sum()) for s in data.train] == [4, 5, 7, 40]
    assert data.held_out == []
    assert [note[:18] for note in data.notes] == ["rows left out: 1 (", "rows left out: 2 (", "no evaluation: row"]


def test_nothing_but_rows_without_a_slot_is_refused(tmp_path, tiny):
    place = write_rows(tmp_path / "rows.jsonl", [{"prompt": "p", "response": "r"}])
    with pytest.raises(ConfigError, match="nothing to train on"):
        prepare(checked(tmp_path, data={"path": str(place)}), tiny, lambda: None, Ranks())


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["bucket", "pack", "fixed"]),
    st.lists(st.integers(2, 60), min_size=1, max_size=60),
    st.integers(60, 300),
    st.integers(1, 8),
    st.integers(0, 5),
)
def test_an_epoch_holds_every_sequence_once_within_the_budget(kind, lengths, batch_tokens, num_buckets, epoch):
    config = {"batching": kind, "batch_tokens": batch_tokens, "num_buckets": num_buckets, "seed": 3}
    plan = Plan(lengths, config)
    batches = plan.epoch(epoch)
    assert sorted(i for batch in batches for row in batch for i in row) == list(range(len(lengths)))
    assert len(batches) == plan.per_epoch
    assert kind == "pack" or all(len(row) == 1 for batch in batches for row in batch)
    for batch in batches:
        assert len(batch) * max(sum(lengths[i] for i in row) for row in batch) <= batch_tokens
    assert batches == Plan(lengths, config).epoch(epoch)
    if kind == "fixed":
        assert {len(batch) for batch in batches[:-1]} <= {
            batch_tokens // max(lengths),
            len(lengths) % (batch_tokens // max(lengths)),
        }


def test_epochs_are_shuffled_anew():
    plan = Plan([5] * 40, {"batching": "bucket", "batch_tokens": 20, "num_buckets": 2, "seed": 0})
    assert plan.epoch(0) != plan.epoch(1)


def test_a_sequence_longer_than_a_batch_is_refused():
    with pytest.raises(ConfigError, match="batch_tokens: 8 does not hold the longest sequence"):
        Plan([9], {"batching": "bucket", "batch_tokens": 8, "num_buckets": 1, "seed": 0})


def test_a_batch_is_padded_behind_and_knows_its_responses():
    batch = collate([answered([1, 2, 3, 4], 2), answered([5, 6], 1)], torch.device("cpu"))
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


@pytest.mark.parametrize(("regenerate", "count"), [("missing", 1 + 0 + 1 + 0 + 1 + 1), ("all", 1 + 1 + 1 + 1 + 2 + 2)])
def test_the_answers_that_are_wanted_are_counted_ahead(tmp_path, tiny, monkeypatch, regenerate, count):
    monkeypatch.setattr(tiny.tokenizer, "chat_template", TEMPLATE)
    rows = [
        {"prompt": "a"}, {"prompt": "b", "response": "c"}, {"messages": [ASK]}, {"messages": [ASK, ANSWER]},
        {"messages": [ASK, ANSWER, ASK]}, {"messages": [ASK, {**ANSWER, "content": None}, ASK], "response": "x"},
        {"prompt": "d", "split": "eval"},
    ]  # fmt: skip
    config = checked(tmp_path, data={"regenerate": regenerate})
    assert num_wanted(write_rows(tmp_path / "rows.jsonl", rows), config) == count
    wanted = 0
    for talk in talks_of(tmp_path, tiny, rows, data={"regenerate": regenerate}):
        while talk.prompt is not None and talk.split == "train":
            wanted += 1
            talk.take([65])
    assert wanted == count
