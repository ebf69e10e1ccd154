"""Axes: limits that hold the data, and labels that an engineer reads at a glance."""

import json
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.charts.format import column, number, short
from dflash_tui.charts.scale import fit_scale


def load(data: Path, name: str) -> Any:
    return json.loads((data / "cases" / name).read_text())


def labels(kind: str, values: list[float], num_max: int) -> list[str]:
    scale = fit_scale(kind, values)
    assert scale is not None
    return [tick.label for tick in scale.ticks(num_max)]


@pytest.mark.parametrize(
    ("values", "num_max", "expected"),
    [
        ([26095, 26155], 3, ["26,100", "26,120", "26,140"]),
        ([0, 22698], 5, ["0", "5k", "10k", "15k", "20k"]),
        ([24000, 26800], 6, ["24.0k", "24.5k", "25.0k", "25.5k", "26.0k", "26.5k"]),
        ([0, 1600], 4, ["0", "500", "1,000", "1,500"]),
        ([0, 5.8e-4], 3, ["0", "2e-04", "4e-04"]),
        ([2.9e-10, 1.16e-9], 3, ["5e-10", "1e-09"]),
        ([0.75, 3.2], 4, ["1", "2", "3"]),
        ([0.75, 3.2], 6, ["1.0", "1.5", "2.0", "2.5", "3.0"]),
        ([0.1, 0.3], 3, ["0.1", "0.2", "0.3"]),
        ([-0.3, 0.3], 3, ["-0.2", "0", "0.2"]),
        ([1.6e9, 1.9e9], 4, ["1.6B", "1.7B", "1.8B", "1.9B"]),
        ([3e18, 9e18], 4, ["4e+18", "6e+18", "8e+18"]),
        ([1, 3], 9, ["1", "2", "3"]),  # no half steps
        ([1.0, 1.0000004], 3, ["1.0000000", "1.0000002", "1.0000004"]),
    ],
)
def test_linear_labels(values: list[float], num_max: int, expected: list[str]) -> None:
    assert labels("linear", values, num_max) == expected


@pytest.mark.parametrize(
    ("kind", "values", "num_max", "expected"),
    [
        ("log", [1e-3, 41.5], 6, ["0.001", "0.01", "0.1", "1", "10"]),
        ("log", [1e-3, 41.5], 3, ["0.01", "1"]),
        ("log", [0.07, 41.5], 2, ["0.1", "10"]),
        ("log", [1e-300, 1e-297], 2, ["1e-300", "1e-298"]),
        ("log", [1e-299, 1e-297], 2, ["1e-299", "1e-297"]),
        ("log", [1e-9, 1e5], 4, ["1e-08", "1e-04", "1", "10k"]),
        ("log", [1, 1e7], 9, ["1", "10", "100", "1k", "10k", "100k", "1M", "10M"]),
        ("log", [0.3, 6], 4, ["0.5", "1", "2", "5"]),
        ("log", [1.0, 1.5], 3, ["1.0", "1.2", "1.4"]),
        ("duration", [0, 90], 4, ["0", "30s", "60s", "90s"]),
        ("duration", [0, 600], 4, ["0", "5m", "10m"]),
        ("duration", [0, 3 * 3600], 4, ["0", "1h", "2h", "3h"]),
        ("duration", [0, 2.5 * 3600], 6, ["0", "0h 30m", "1h 00m", "1h 30m", "2h 00m", "2h 30m"]),
        ("duration", [0, 6 * 86400], 4, ["0", "2d", "4d", "6d"]),
        ("duration", [5 * 86400, 5 * 86400 + 7200], 3, ["5d 00h", "5d 01h", "5d 02h"]),
        ("duration", [432000, 432020], 3, ["5d 00h 00m 00s", "5d 00h 00m 10s", "5d 00h 00m 20s"]),
        ("duration", [0, 0.2], 3, ["0", "0.1s", "0.2s"]),
        ("time", [1_796_000_000, 1_796_006_000], 4, ["01:00", "01:30", "02:00", "02:30"]),
        ("time", [1_796_000_000, 1_796_000_040], 3, ["00:53:30", "00:53:45", "00:54:00"]),
        ("time", [1_795_990_000, 1_796_030_000], 3, ["11-30 00:00", "11-30 06:00"]),
        ("time", [1_796_000_000, 1_796_500_000], 4, ["12-01", "12-03", "12-05"]),
        ("time", [1_798_000_000, 1_799_000_000], 3, ["2026-12-28", "2027-01-02"]),
    ],
)
def test_other_labels(kind: str, values: list[float], num_max: int, expected: list[str]) -> None:
    assert labels(kind, values, num_max) == expected


def test_a_constant_series_is_readable(data: Path) -> None:
    series = load(data, "case30_constant_series.json")
    for name, values in series.items():
        scale = fit_scale("linear", [float(v) for v in values])
        assert scale is not None
        assert scale.low < values[0] < scale.high, name
        assert len(scale.ticks(4)) == 1
    small = fit_scale("linear", series["const_small"])
    assert small is not None
    assert small.low >= -0.01
    assert small.high <= 0.01
    expected = {"all_zero": "0", "const_small": "0.001", "const_big": "26,146", "const_negative": "-3.5"}
    assert {name: labels("linear", values, 4)[0] for name, values in series.items()} == expected


def test_rounding_noise_is_a_constant() -> None:
    scale = fit_scale("linear", [0.1 + 0.2, 0.3])
    assert scale is not None
    assert scale.only == 0.3
    assert labels("linear", [0.1 + 0.2, 0.3], 4) == ["0.3"]


def test_limits_leave_out_what_is_not_finite(data: Path) -> None:
    values = [float(v) for v in load(data, "case33_nonfinite_axis.json")]
    expected = load(data, "case33_nonfinite_axis.expected.json")
    scale = fit_scale("linear", values)
    assert scale is not None
    assert (scale.low, scale.high) == (expected["y_min_data"], expected["y_max_data"])


def test_tiny_values_keep_their_digits(data: Path) -> None:
    rows = [json.loads(line) for line in (data / "cases" / "case25_tiny_values.jsonl").read_text().splitlines()]
    assert number(rows[-1]["loss"]) == "8e-06"
    assert number(rows[-1]["lr"]) == "1.16e-09"
    forbidden = load(data, "case25_tiny_values.expected.json")["display_forbidden"]
    for key in ("loss", "lr", "noise_std"):
        values = [row[key] for row in rows]
        assert not set(column(values)) & set(forbidden)
        assert not set(labels("linear", [*values, 0.0], 5)) & set(forbidden)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"), (0.0, "0"), (-0.0, "0"), (22698, "22,698"), (0.0668, "0.06680"), (26146.4, "26,146"),
        (1234.56, "1,234.6"), (float("nan"), "NaN"), (float("-inf"), "-Infinity"), (2.5e18, "2.5e+18"),
        (3.0, "3"), (10**40, "1.000e+40"),
    ],
)  # fmt: skip
def test_number(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.31, 0.28, 0.262], ["0.310", "0.280", "0.262"]),
        ([0.31, None, float("nan")], ["0.31", "-", "NaN"]),
        ([0.5, 0.0, 0.25], ["0.50", "0", "0.25"]),
        ([22698.0, 5.0], ["22,698", "5"]),
        ([1.0, 0.3281, 2.731, -2.0], ["1", "0.328", "2.731", "-2"]),  # a step of 1 is no thousand
        ([22698.0, 0.0668], ["22,698", "0.06680"]),  # one number of decimals would cost the small one its digits
        ([8e-06, 3.2e-05], ["8e-06", "3.2e-05"]),
        ([], []),
    ],
)
def test_column(values: list[float | None], texts: list[str]) -> None:
    assert column(values) == texts


def test_short_drops_only_zeros_behind_the_point() -> None:
    assert [short(v) for v in (0.001, 2.5, 100.0, 1.16e-09, 26146.37)] == ["0.001", "2.5", "100", "1.16e-09", "26,146"]
