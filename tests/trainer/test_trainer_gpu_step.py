"""The script for a GPU runs up to where it needs one."""

from tests.bench.programs.gpu_step import main


def test_it_measures_both_ways_to_attend(capsys):
    flex, dense = main(["--device", "cpu", "--tiny", "--seconds", "0"])
    assert (flex["attention"], dense["attention"]) == ("flex", "dense")
    for row in (flex, dense):
        assert row["steps"] == 1 and row["tok_per_sec"] > 0 and 0 < row["loss"] < 10
        assert row["mfu"] is None and row["peak_gib"] is None
    # On a CPU it has no backward, and the step that would have failed is said to have been taken by another.
    assert "flex failed" in flex["notes"][0] and dense["notes"] == []
    assert capsys.readouterr().out.count("step_ms") == 2
