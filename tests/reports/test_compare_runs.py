"""Tests comparisons of run directories: single runs, campaigns, virtual time, pages and the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from pages import check_page
from synthetic import run_of, write_campaign, write_run
from synthetic_shape import CLASS, T0, S, Shape

from orchestrator.cli.errors import DONE, REFUSED, SUSPECT, UNMET, UNTOLD, USAGE, CliError
from orchestrator.cli.main import vnet
from reports.cell import Cell
from reports.compare import page
from reports.compare.bootstrap import bootstrapped
from reports.compare.comparison import DIFFERS, OPEN, SAME, Comparison, compare
from reports.compare.difference import holm
from reports.compare.levels import differences, factors, moved
from reports.compare.messages import partners
from reports.compare.reading import read_side
from reports.compare.settings import settings
from reports.compare.side import Sample
from reports.compare.words import sentence
from reports.metrics.metric import Of
from reports.sections import differences as differences_of_levels
from reports.sections.registry import SECTIONS
from reports.sections.section import Page
from reports.study import study_of_campaign

SHAPE = {"hold_s": 60, "ramp_s": 5, "clients": 4, "reference": False, "rate": 40.0}
OF = Of(traffic_class=CLASS)


def one_run(path: Path, qos: int = 0, seed: int = 1, loss: float = 0.0) -> Path:
    return write_run(path, Shape(qos=qos, seed=seed, loss=loss, **SHAPE))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Makes two runs with the same seed and schedule; their latencies are 48 ms at QoS 0 and 56 ms at
    QoS 1.
    """
    made = tmp_path_factory.mktemp("compare")
    return one_run(made / "zero"), one_run(made / "one", qos=1)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shapes = [Shape(qos=qos, seed=seed, **SHAPE) for qos in (0, 1) for seed in (1, 2, 3, 4)]  # type: ignore[arg-type]
    return write_campaign(tmp_path_factory.mktemp("campaign") / "qos", shapes)


def of(*paths: Path) -> Comparison:
    return compare([read_side(letter, path) for letter, path in zip("ABC", paths, strict=False)])


def test_one_pair_of_runs_is_compared_by_a_bootstrap_of_its_messages(runs: tuple[Path, Path]) -> None:
    rows = {row.key[0]: row for row in of(*runs).rows if row.key[1].traffic_class == CLASS}
    p50 = rows["latency_p50"]
    assert p50.finding == DIFFERS and "bootstrap of 300 draws over 30 blocks" in p50.difference.method
    assert 0.13 < (p50.difference.change or 0) < 0.21
    assert p50.key[1].guarantee is None, "the class is the same, whatever it is promised"


def test_what_one_pair_cannot_tell_is_not_told(runs: tuple[Path, Path]) -> None:
    row = next(row for row in of(*runs).rows if row.key[0] == "cpu")
    assert row.finding == OPEN and row.difference.interval() is None


def test_a_file_that_is_no_page_of_a_comparison_is_not_replaced(
    tmp_path: Path, runs: tuple[Path, Path]
) -> None:
    other = tmp_path / "pair.yaml"
    other.write_text("name: pair")
    status, _, error = vnet_of("compare", *runs, "--out", other)
    assert status == REFUSED and error.startswith(f"{other}: is there, and no page of a comparison")
    assert other.read_text() == "name: pair"


def test_the_settings_that_differ_are_listed_and_the_others_are_not(runs: tuple[Path, Path]) -> None:
    found = {one.name: one.values for one in settings(of(*runs).sides)}
    assert found["parameter qos"] == ("0", "1")
    assert found["plan: flows[].deliveries[].guarantee.name (4 places)"] == ("QoS 0", "QoS 1")
    assert not {"seed", "lab", "host", "version of mosquitto"} & set(found)


def test_the_same_run_against_itself_is_equal(runs: tuple[Path, Path]) -> None:
    found = of(runs[0], runs[0])
    assert {row.finding for row in found.rows} == {SAME} and settings(found.sides) == []
    assert "no difference: the values are equal" in {sentence(row) for row in found.rows}


def virtual(run: Path, more_ns: int = 0, every: int = 1) -> Path:
    """Changes the run to one in virtual time, and makes each `every`-th message slower."""
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(manifest | {"time": "virtual"}))
    rows = pl.read_parquet(run / "messages.parquet").with_row_index("row")
    slow = pl.when(pl.col("row") % every == every - 1).then(more_ns).otherwise(0)
    rows = rows.with_columns(latency_ns=pl.col("latency_ns") + slow).drop("row")
    rows.write_parquet(run / "messages.parquet")
    return run


def test_messages_in_virtual_time_have_partners(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    a, b = virtual(one_run(tmp_path / "a")), virtual(one_run(tmp_path / "b"), 2_000_000, 10)
    whole = pl.read_parquet(a / "messages.parquet")
    lost = pl.read_parquet(b / "messages.parquet").with_row_index("row")
    hit = pl.col("row") == 5
    lost.with_columns(
        latency_ns=pl.when(hit).then(None).otherwise("latency_ns"),
        received_ns=pl.when(hit).then(None).otherwise("received_ns"),
    ).drop("row").write_parquet(b / "messages.parquet")
    (found,) = partners(of(a, b).matches[0])
    assert found.both == whole.height - 1 and found.only_a == 1 and found.only_b == 0
    assert found.slower == whole.height // 10 and found.faster == 0 and found.median_ms == 2.0
    first = whole.row(5, named=True)["scheduled_ns"] - json.loads((a / "manifest.json").read_text())["t0_ns"]
    assert found.first_s == first / 1e9
    assert f"{found.both:,} messages arrived in both" in found.words
    assert partners(of(*runs).matches[0]) == [], "in real time no message has a partner"


def test_the_page_of_a_comparison(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    text = check_page(page.write(of(*runs), tmp_path / "deep" / "page.html"))
    for anchor in ("answer", "settings", "figures", "differences", "latency-cdf", "all"):
        assert f'id="{anchor}"' in text
    assert "parameter qos" in text and "% slower (95 %: " in text
    assert "A: zero" in text and "B: one" in text, "the curves of the distributions"


def test_the_runs_in_a_directory_are_one_side(tmp_path: Path) -> None:
    for seed in (1, 2):
        one_run(tmp_path / "lab" / f"run{seed}", seed=seed)
    broken = tmp_path / "lab" / "run3"
    broken.mkdir()
    (broken / "manifest.json").write_text(json.dumps({"state": "failed"}))
    side = read_side("A", tmp_path / "lab")
    assert [(one.name, one.seed) for one in side.samples] == [("run1", "1"), ("run2", "2")]
    assert side.notes[-1] == "left out: 1 runs that are not complete"


def test_campaigns_pair_by_condition_and_seed(campaign: Path) -> None:
    found = of(campaign, campaign)
    assert [(one.name, len(one.pairs)) for one in found.matches] == [("qos 0", 4), ("qos 1", 4)]
    assert {row.finding for row in found.rows} == {SAME}


def test_a_campaigns_levels_are_compared_in_pairs(campaign: Path) -> None:
    study = study_of_campaign(campaign)
    assert factors(study) == ["qos"]
    (row,) = (row for row in differences(study) if row.key[0] == "latency_p50")
    assert (row.a, row.b, row.difference.n) == ("qos 0", "qos 1", 4)
    assert row.finding == DIFFERS and 0.13 < (row.difference.change or 0) < 0.21


def test_the_factor_that_moves_a_figure_is_ranked_first(campaign: Path) -> None:
    found = moved(study_of_campaign(campaign))
    (p50,) = (one for one in found if one.key[0] == "latency_p50")
    assert p50.factor == "qos" and p50.share > 0.9 and p50.p < 0.001
    assert (p50.low, p50.high) == ("0", "1") and 0.13 < p50.span < 0.21
    shares = [one.share for one in found]
    assert shares == sorted(shares, reverse=True)


def test_a_campaigns_page_has_a_section_on_the_differences(tmp_path: Path, campaign: Path) -> None:
    made = Page(study_of_campaign(campaign), tmp_path)
    part = differences_of_levels.section(made)
    assert part is not None and part.anchor == "differences" and differences_of_levels.section in SECTIONS
    assert "qos 1 is 1" in part.body and "Effects of the factors on the figures" in part.body
    table = pl.read_csv(tmp_path / "tables" / "differences.csv")
    assert {"metric", "change", "low", "high", "p", "finding", "more_repetitions"} <= set(table.columns)


def vnet_of(*arguments: object) -> tuple[int, str, str]:
    """Returns exit status, output and errors of a `vnet` command line."""
    done = CliRunner().invoke(vnet, [str(one) for one in arguments], standalone_mode=False)
    if isinstance(done.exception, CliError):
        return done.exception.status, done.stdout, done.exception.text
    if done.exception is not None:
        raise done.exception
    return done.return_value or DONE, done.stdout, done.stderr


def test_the_command_says_the_answer_and_writes_the_page(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    status, text, _ = vnet_of("compare", *runs, "--out", tmp_path / "page.html")
    assert status == DONE and (tmp_path / "page.html").exists()
    assert "  the sides differ in: parameter qos (0 -> 1)\n" in text
    assert text.startswith(f"A = {runs[0]} (1 run)\nB = {runs[1]} (1 run)\n")
    assert f"latency p50 of {CLASS}: " in text and "slower (95 %: " in text


@pytest.mark.parametrize(
    ("limit", "status"),
    [
        (f"latency_p50[class={CLASS}] > +10 %", UNMET),
        (f"latency_p50[class={CLASS}] > +50 %", DONE),
        ("cpu[group=broker] > +10 %", UNTOLD),
    ],
)
def test_a_limit_sets_the_exit_status(
    tmp_path: Path, runs: tuple[Path, Path], limit: str, status: int
) -> None:
    found = vnet_of("compare", *runs, "--fail-if", limit, "--json", "--out", tmp_path / "page.html")
    assert found[0] == status
    (judged,) = json.loads(found[1])["conditions"]
    assert judged["fail_if"] == limit
    assert limit.replace(">", "&gt;") in (tmp_path / "page.html").read_text()


def test_strict_refuses_a_suspect_run_before_its_limits_count(
    tmp_path: Path, runs: tuple[Path, Path]
) -> None:
    doubted = one_run(tmp_path / "doubted")
    manifest = json.loads((doubted / "manifest.json").read_text())
    warning = {"check": "clock", "text": "the clock was set", "suspect": True}
    (doubted / "manifest.json").write_text(json.dumps(manifest | {"warnings": [warning]}))
    limit = ("--fail-if", f"latency_p50[class={CLASS}] > +10 %", "--out", tmp_path / "page.html")
    status, _, notes = vnet_of("compare", doubted, runs[1], *limit)
    assert status == UNMET and "A: suspect, so its figures may be wrong: doubted" in notes
    assert vnet_of("compare", doubted, runs[1], *limit, "--strict")[0] == SUSPECT


def test_a_baseline_of_a_campaign_in_a_file(tmp_path: Path, campaign: Path) -> None:
    file = tmp_path / "baseline.json"
    status, text, _ = vnet_of("baseline", "save", campaign, file)
    assert status == DONE and text.startswith(f"{file}: 8 runs, ")
    found = vnet_of("compare", file, campaign, "--out", tmp_path / "page.html", "--json")
    data = json.loads(found[1])
    assert found[0] == DONE and {one["finding"] for one in data["figures"]} == {SAME}
    assert "from a baseline" in check_page(tmp_path / "page.html")


def test_what_cannot_be_compared_is_refused_with_the_reason(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    assert vnet_of("compare", runs[0])[0] == USAGE
    status, _, error = vnet_of("compare", runs[0], tmp_path)
    assert status == REFUSED and error.startswith(f"{tmp_path}: holds no run and no campaign")
    status, _, error = vnet_of("compare", *runs, "--fail-if", "latency_p9 > 1 %")
    assert status == REFUSED and "did you mean 'latency_p99'?" in error
    status, _, error = vnet_of("baseline", "save", tmp_path / "nothing", tmp_path / "file")
    assert status == REFUSED and "is not there" in error


def correlated(rng: np.random.Generator) -> Sample:
    """Returns a run of 3,000 messages in 60 s whose latencies are correlated over a dozen messages (AR(1)
    process).
    """
    noise, values = rng.normal(0, 0.2, 3_000), [0.0]
    for one in noise:
        values.append(0.85 * values[-1] + float(one))
    times = (50e6 * np.exp(values[1:])).astype(np.int64)
    due = T0 + np.arange(3_000) * (S // 50)
    table = pl.DataFrame({"class": CLASS, "scheduled_ns": due, "latency_ns": times})
    run = run_of(manifest={"t0_ns": T0, "phases": {"hold": [T0, T0 + 60 * S]}}, messages=table)
    return Sample("made", {}, "1", "the same", {}, {}, cell=Cell(run, [], "", {}, ""))


@pytest.mark.sweep
def test_of_200_pairs_of_equal_runs_the_bootstrap_alarms_for_at_most_16() -> None:
    rng, alarms = np.random.default_rng(40), 0
    for _ in range(200):
        a, b = correlated(rng), correlated(rng)
        found = [bootstrapped((name, OF), a, b) for name in ("latency_mean", "latency_p99")]
        alarms += min(holm([one.p for one in found if one is not None])) < 0.05
    assert alarms <= 16


def test_a_percentile_beyond_few_messages_is_not_told() -> None:
    rng = np.random.default_rng(2)
    a, b = correlated(rng), correlated(rng)
    assert bootstrapped(("latency_p99.9", OF), a, b) is None, "three messages are beyond"
    assert bootstrapped(("latency_p99", OF), a, b) is not None


def test_times_of_zero_have_no_ratio() -> None:
    """Shows that a median of zero has no ratio: just over half of the messages took some time, so some
    bootstrap draws have the median zero.
    """
    rng, sides = np.random.default_rng(3), []
    for _ in range(2):
        table = correlated(rng).cell.run.table("messages")  # type: ignore[union-attr]  # a cell is there
        assert table is not None
        zero = pl.Series((rng.permutation(table.height) < 0.49 * table.height).tolist())
        table = table.with_columns(latency_ns=pl.when(zero).then(0).otherwise("latency_ns"))
        run = run_of(manifest={"t0_ns": T0, "phases": {"hold": [T0, T0 + 60 * S]}}, messages=table)
        sides.append(Sample("made", {}, "1", "the same", {}, {}, cell=Cell(run, [], "", {}, "")))
    assert bootstrapped(("latency_p50", OF), *sides) is None
    assert bootstrapped(("latency_p99", OF), *sides) is not None


def test_messages_in_few_blocks_show_no_scatter() -> None:
    """Shows that 325 messages in the first 6.5 s have no interval: of a minute's 30 blocks, some bootstrap
    draws have none with messages.
    """
    rng, sides = np.random.default_rng(4), []
    for _ in range(2):
        table = correlated(rng).cell.run.table("messages")  # type: ignore[union-attr]  # a cell is there
        assert table is not None
        late = pl.col("scheduled_ns") >= T0 + 6.5 * S
        table = table.with_columns(latency_ns=pl.when(late).then(None).otherwise("latency_ns"))
        run = run_of(manifest={"t0_ns": T0, "phases": {"hold": [T0, T0 + 60 * S]}}, messages=table)
        sides.append(Sample("made", {}, "1", "the same", {}, {}, cell=Cell(run, [], "", {}, "")))
    assert bootstrapped(("latency_mean", OF), *sides) is None
