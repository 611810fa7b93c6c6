"""Two runs of one flow beside each other, by the visits of its steps: turns, prompts, answers, files and cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.extensions.pages.report.parts import Reader
from codex_multi_role.extensions.pages.serve.listing import shown_status
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.pieces import ReportedTurn
from codex_multi_role.presentation.recorded import changes_of, files_of, open_questions, read_record, status_now
from codex_multi_role.presentation.wording import price
from codex_multi_role.run_folder import RunFolder, TurnFolder
from codex_multi_role.run_folder.cost import Cost

LONGEST_TEXT = 20_000


@dataclass(frozen=True)
class Side:
    """A turn of one of the two runs."""

    turn: ReportedTurn
    prompt: str
    answer: str
    files: list[str]

    @property
    def cost(self) -> str:
        return price(Cost.of(self.turn.cost))


@dataclass(frozen=True)
class Pair:
    """The turns with the same place in the same visit; None where a run has no such turn."""

    step: str
    one: Side | None
    other: Side | None

    @property
    def differs(self) -> list[str]:
        """In what, of what a person can read."""
        if self.one is None or self.other is None:
            return ["only in one"]
        one, other = ({**vars(each), "status": each.turn.status} for each in (self.one, self.other))
        return [name for name in ("status", "prompt", "answer", "files") if one[name] != other[name]]


@dataclass(frozen=True)
class ComparedRun:
    """``files``: their lines added and removed; None if the run recorded no states of them."""

    run_id: str
    status: str
    course: Course
    files: dict[str, tuple[int | None, int | None]] | None

    @classmethod
    def of(cls, folder: RunFolder) -> ComparedRun:
        status = shown_status(status_now(folder, record := read_record(folder)), open_questions(folder, record))
        return cls(folder.run_id, status, Course.of_run(folder), _files(folder))


@dataclass(frozen=True)
class Comparison:
    """``why_not``: why the visits cannot be compared."""

    one: ComparedRun
    other: ComparedRun
    pairs: list[Pair]
    why_not: str

    @classmethod
    def of(cls, one: RunFolder, other: RunFolder) -> Comparison:
        runs = (ComparedRun.of(one), ComparedRun.of(other))
        flows = [run.course.started.flow for run in runs]
        if flows[0] != flows[1]:
            return cls(*runs, [], f"not comparable: one is a run of {flows[0]}, the other of {flows[1]}")
        sides = (_sides(one, runs[0].course), _sides(other, runs[1].course))
        places = dict.fromkeys([*sides[0], *sides[1]])
        return cls(*runs, [Pair(place[0], sides[0].get(place), sides[1].get(place)) for place in places], "")

    @property
    def paths(self) -> list[str]:
        return sorted({*(self.one.files or ()), *(self.other.files or ())})


def _files(folder: RunFolder) -> dict[str, tuple[int | None, int | None]] | None:
    try:
        return {each.path: (each.added, each.removed) for each in changes_of(folder).files}
    except CodexMultiRoleError:
        return None


def _sides(folder: RunFolder, course: Course) -> dict[tuple[str, str, int], Side]:
    """The turns by their piece of the work, role, and number within both."""
    counts, sides = Counter[tuple[str, str]](), dict[tuple[str, str, int], Side]()
    for turn in course.turns.values():
        place = (" ".join(filter(None, (turn.piece, course.pieces[turn.piece].title))), turn.role)
        counts[place] += 1
        sides[*place, counts[place]] = _side(folder, turn)
    return sides


def _side(folder: RunFolder, turn: ReportedTurn) -> Side:
    left, reader = TurnFolder.of(folder, turn.role, turn.number), Reader(folder.path, folder.redact, LONGEST_TEXT)
    prompt, answer = (reader.text(left.path / name, exact=True) for name in ("prompt.txt", "assistant_text.txt"))
    return Side(turn, prompt.text if prompt else "", answer.text if answer else "", sorted(files_of(left)))
