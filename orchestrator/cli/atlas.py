"""Implements `vnet atlas`: ranks interaction models for requirements, and maintains the data set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.errors import DONE, FAILED, INTERRUPTED, REFUSED, UNKNOWN, USAGE, CliError
from orchestrator.cli.output import console, json_option, note, print_json, say, table
from orchestrator.cli.quantities import DURATION, RATE, SHARE, SIZE

if TYPE_CHECKING:
    from reports.atlas.answer import Answer, Candidate
    from reports.atlas.dataset import Atlas

SECOND_NS = 1e9
SHIPPED_CAMPAIGNS = Path("topologies/atlas")
data_option = click.option(
    "--data", type=click.Path(path_type=Path), help="Data set; by default the one that comes with vnet."
)


@click.group("atlas")
def atlas_command() -> None:
    """Given requirements and a network: which interaction model? Answered from measured runs."""


@atlas_command.command("query")
@click.option("--loss", type=SHARE, required=True, help="Packet loss in each direction.")
@click.option("--rate", type=RATE, required=True, help="Rate of the link.")
@click.option("--delay", type=DURATION, required=True, help="One-way delay.")
@click.option(
    "--receivers", type=click.IntRange(1), required=True, help="Number of receivers of each update."
)
@click.option("--deadline", type=DURATION, required=True, help="Time within which an update must arrive.")
@click.option("--size", type=SIZE, default="1 kB", show_default=True, help="Size of an update.")
@click.option("--duplex", type=click.Choice(["full", "half"]), default="full", show_default=True)
@click.option(
    "--tolerated-loss",
    type=SHARE,
    default="1 %",
    show_default=True,
    help="Share of updates that may be late or lost.",
)
@click.option(
    "--budget", type=SIZE, help="Maximum bytes on the wire for one update to one receiver, including repairs."
)
@click.option("--confirmed", is_flag=True, help="The deadline includes the receiver's confirmation.")
@click.option("--model", "models", multiple=True, help="Only this model; may be given several times.")
@data_option
@json_option
def query_command(
    loss: float,
    rate: int,
    delay: int,
    receivers: int,
    deadline: int,
    size: int,
    duplex: str,
    tolerated_loss: float,
    budget: int | None,
    confirmed: bool,
    models: tuple[str, ...],
    data: Path | None,
    as_json: bool,
) -> int:
    """Rank the models for requirements on a network; status 6 if no measurement is near enough.

    \b
    Example:  vnet atlas query --loss "5 %" --rate "1 Mbit/s" --delay "50 ms" --deadline "2 s" --receivers 9
    """
    from reports.atlas.answer import Question, ask
    from reports.atlas.axes import Place

    atlas = _read(data)
    _known(atlas, models)
    place = Place(loss, float(rate), delay / SECOND_NS, receivers, float(size), duplex)
    needed = 1 - tolerated_loss
    answer = ask(atlas, Question(place, deadline / SECOND_NS, needed, budget, confirmed), models)
    if as_json:
        print_json(_as_data(atlas, answer))
    else:
        _show(atlas, answer)
    return UNKNOWN if answer.unknown else DONE


@atlas_command.command("show")
@data_option
@json_option
def show_command(data: Path | None, as_json: bool) -> None:
    """Describe the data set: points, seeds, ranges, code, and the errors at held-out points.

    \b
    Example:  vnet atlas show
    """
    from reports.atlas.contents import contents
    from reports.atlas.score import scores

    atlas = _read(data)
    held, told = contents(atlas), scores(atlas)
    if as_json:
        print_json({**held, "held_out": [score.data() for score in told]})
        return
    for name, value in held.items():
        console().print(f"{name}: {value}", markup=False, soft_wrap=True)
    rows = [score.words() for score in told]
    heads = [
        "model",
        "points",
        "deadline",
        "mean error",
        "90 % within",
        "error of the mean",
        "interval holds",
    ]
    console().print(
        table(
            heads, rows, right=heads[1:], title="Share in time at held-out points: estimate and measurement"
        )
    )


@atlas_command.command("page")
@data_option
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("atlas.html"), show_default=True, help="The file."
)
def page_command(data: Path | None, out: Path) -> None:
    """Write the atlas as one page: the winner over loss x rate, and the runs behind it.

    \b
    Example:  vnet atlas page --out atlas.html
    """
    from reports.atlas.page import write_page

    write_page(_read(data), out)
    say(str(out))


@atlas_command.command("collect")
@click.argument("directories", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), required=True, help="Data set to write or add to.")
def collect_command(directories: tuple[Path, ...], data: Path) -> None:
    """Add the complete runs of campaign DIRECTORIES to a data set; a repeated point replaces the old one.

    \b
    Example:  vnet atlas collect results/atlas results/atlas-broker --data atlas.parquet
    """
    _collected(directories, data)


@atlas_command.command("run")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=Path("results/atlas"), show_default=True)
@click.option("--data", type=click.Path(path_type=Path), help="Data set to add to; OUT/atlas.parquet.")
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Parallel runs.")
def run_command(files: tuple[Path, ...], out: Path, data: Path | None, jobs: int) -> int:
    """Run or resume the campaigns FILES in virtual time, and add the complete runs to a data set.

    Without FILES, run those in topologies/atlas of the current directory. Ctrl-C keeps complete runs.

    \b
    Example:  vnet atlas run --jobs 2
    """
    from orchestrator.campaign.campaign import run_campaign
    from orchestrator.campaign.settings import Settings
    from orchestrator.cli.campaign import engine_for, refused
    from orchestrator.cli.jobs import CellView, JobsView

    campaigns = files or tuple(sorted(SHIPPED_CAMPAIGNS.glob("atlas*.yaml")))
    if not campaigns:
        raise CliError(
            f"{SHIPPED_CAMPAIGNS}: not in the current directory; name the files of the campaigns", REFUSED
        )
    made: list[Path] = []
    status = DONE
    for file in campaigns:
        settings, directory = Settings(file, {}, time="virtual"), out / file.stem
        with refused():
            engine = engine_for(jobs, None, settings)
            view = JobsView() if engine else CellView()
            summary = run_campaign(settings, directory, view, engine, page=False)
        made.append(directory)
        status = status or (FAILED if summary.failed else DONE)
        if summary.interrupted:
            note("`vnet atlas run` resumes it")
            status = INTERRUPTED
            break
    _collected(tuple(made), data or out / "atlas.parquet")
    return status


def _collected(directories: tuple[Path, ...], data: Path) -> None:
    from reports.atlas.dataset import collect, merged, read, write

    with _refused():
        old = read(data).rows if data.exists() else None
        rows, skipped = [], []
        for directory in directories:
            found, left_out = collect(directory)
            rows += found
            skipped += left_out
    for sentence in skipped:
        note(f"left out: {sentence}")
    if not rows and old is None:
        raise CliError(f"{', '.join(map(str, directories))}: no run is complete; nothing was written")
    frame = merged(old, rows)
    write(frame, data, "vnet atlas run")
    points, models = frame["point"].n_unique(), frame["model"].n_unique()
    note(f"{data}: {frame.height} runs of {models} models at {points} points, {len(rows)} of them new")


@contextmanager
def _refused() -> Iterator[None]:
    from reports.atlas.dataset import AtlasError

    try:
        yield
    except AtlasError as error:
        raise CliError(str(error), REFUSED) from error


def _read(data: Path | None) -> Atlas:
    from reports.atlas.dataset import SHIPPED, read

    with _refused():
        return read(data or SHIPPED)


def _known(atlas: Atlas, models: tuple[str, ...]) -> None:
    from orchestrator.language.problem import closest

    for model in models:
        if model not in atlas.models:
            remedy = closest(model, atlas.models, what="models")
            raise CliError(f'--model: "{model}" is not in {atlas.path}; {remedy}', USAGE)


def _show(atlas: Atlas, answer: Answer) -> None:
    from reports.atlas.axes import size_words

    if answer.unknown:
        say("The atlas has no answer:")
        for sentence in answer.unknown:
            say(f"  {sentence}")
        return
    best, needed = answer.best, answer.question.needed
    said = f"{best.model} ({best.verdict})" if best else "no measured model"
    say(f"{100 * needed:.4g} % in time: {said}")
    heads = [
        "model",
        "verdict",
        "in time",
        "interval",
        "bytes per update",
        "nearest",
        "in time there",
        "reason",
    ]
    rows = [_row(candidate, size_words) for candidate in answer.candidates]
    console().print(table(heads, rows, right=heads[2:7]))
    shown = best or answer.candidates[0]
    rows = [
        [str(n.point), f"{n.away:.2f}", *n.place.words().values(), f"{100 * n.in_time:.3g} %",
         size_words(n.bytes_per_update), str(n.seed)]
        for n in shown.neighbours
    ]  # fmt: skip
    heads = ["point", "distance", *answer.question.place.words(), "in time", "bytes per update", "seed"]
    console().print(table(heads, rows, right=heads, title=f"Nearest measurements: {shown.model}"))
    note(f"data: {atlas.path}, sha256 {atlas.digest[:16]}; distance: 1 is the whole range of one axis")


def _row(candidate: Candidate, size_words: Any) -> list[str]:
    share, price = candidate.in_time, candidate.bytes_per_update
    near = candidate.neighbours[0] if candidate.neighbours else None
    return [
        candidate.model,
        candidate.verdict,
        f"{100 * share.value:.3g} %" if share else "-",
        f"{100 * share.low:.3g} to {100 * share.high:.3g} %" if share else "-",
        f"{size_words(price.value)} ({size_words(price.low)} to {size_words(price.high)})" if price else "-",
        f"{near.away:.2f}" if near else "-",
        f"{100 * near.in_time:.3g} %" if near else "-",
        candidate.why,
    ]


def _as_data(atlas: Atlas, answer: Answer) -> dict[str, Any]:
    from dataclasses import asdict

    best = answer.best
    return {
        "data": {"path": str(atlas.path), "sha256": atlas.digest},
        **asdict(answer),
        "best": best.model if best else None,
    }
