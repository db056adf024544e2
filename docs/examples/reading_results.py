"""Keeps the results of the readings of ambiguous sentences, verdicts on claims, in readings/NAME.json.

`readings.py --publish NAME` writes such a file from the campaign in results/readings/NAME. It has the
verdicts on the claims that the campaign measured; an unfinished campaign gives those of its runs so far.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import rejudged

from contract import verdict
from orchestrator.campaign import journal
from reports.claims.claim import Claim
from reports.claims.verdict import Judgement
from reports.papers import PAPERS
from reports.study import study_of_campaign

PLACE = Path(__file__).resolve().parent / "readings"


@dataclass(frozen=True)
class Given:
    """The verdict that a reading gives on a claim, and the rule that it was judged by."""

    rule: str
    verdict: str
    reason: str


@dataclass(frozen=True)
class Result:
    """The runs of a reading, and what they gave, by the keys of the claims."""

    command: str
    commit: str
    runs: int
    failed: int
    seeds: tuple[int, ...]
    minutes: float  # of the machine's clock, all runs together; longer on a busy machine
    suspect: tuple[str, ...]  # for each run the reason why it is suspect, or ""
    claims: dict[str, Given]

    @property
    def words(self) -> str:
        """How many runs there are, of which seeds, and what is wrong with them."""
        doubted = [why for why in self.suspect if why]
        text = f"{self.runs} runs of seeds {', '.join(map(str, self.seeds))}, made at {self.commit}"
        text += f"; {self.failed} failed" if self.failed else ""
        return text + (f"; {len(doubted)} are suspect: {doubted[0].split(', but')[0]}" if doubted else "")

    def of(self, claim: Claim) -> Judgement | None:
        """The verdict on the claim, if the reading measured it and was judged by the present rule."""
        found = self.claims.get(claim.key)
        if found is None or found.rule != claim.rule_hash:
            return None
        return Judgement(verdict.word(found.verdict), found.reason)


def read(name: str) -> Result | None:
    """The result of the reading; None if it has none yet."""
    file = PLACE / f"{name}.json"
    if not file.exists():
        return None
    data = json.loads(file.read_text(encoding="utf-8"))
    claims = {key: Given(**of) for key, of in data.pop("claims").items()}
    seeds, suspect = tuple(data.pop("seeds")), tuple(data.pop("suspect"))
    return Result(**data, seeds=seeds, suspect=suspect, claims=claims)


def result(paper: str, command: str, commit: str, directory: Path) -> Result:
    """Judges the campaign in the directory; SystemExit if no run of it has ended."""
    lines = journal.latest(directory).values()
    ended = [line for line in lines if line["state"] == "complete"]
    if not ended:
        raise SystemExit(f"readings: {directory}: no run has ended; `make readings` goes on where it was")
    judged = PAPERS[paper].judged(study_of_campaign(directory))
    claims = {
        key: Given(claim.rule_hash, one.verdict, one.reason)
        for key, (claim, one) in judged.items()
        if claim.quantities and not rejudged.unmeasured(one)
    }
    return Result(
        command, commit, len(ended), len(lines) - len(ended), tuple(sorted({line["seed"] for line in ended})),
        round(sum(line.get("wall_s") or 0 for line in ended) / 60, 1),
        tuple(line.get("suspect") or "" for line in ended), claims,
    )  # fmt: skip


def write(name: str, found: Result) -> Path:
    PLACE.mkdir(exist_ok=True)
    file = PLACE / f"{name}.json"
    file.write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
    return file
