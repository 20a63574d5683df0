"""The half page that opens a report: which claims of each paper hold, and how our rows compare."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reproduction.against_craft import CRAFT_ROWS, TABLE, columns_of
from reproduction.headline import Headline, comparable_panels, short_title
from reproduction.judge import NOT_RUN, Cell, cells, judged
from reproduction.methods import LOG_LOSS
from reproduction.spec import Spec, short_paper
from reproduction.store import Results
from reproduction.verdict import FAILS, HOLDS, UNDECIDED

MOSTLY, MIXED = "mostly holds", "mixed"
_COUNTED = {  # of one claim, and of several
    HOLDS: ("holds", "hold"),
    MOSTLY: ("mostly holds", "mostly hold"),
    MIXED: (
        "holds on some data sets and not on others",
        "hold on some data sets and not on others",
    ),
    UNDECIDED: ("is undecided", "are undecided"),
    FAILS: ("fails", "fail"),
}
_GOAL_WORDS = {
    "reached": "are reached",
    "missed": "are missed",
    UNDECIDED: "are undecided",
    NOT_RUN: "were not measured",
}
_LIBLINEAR, _SVM_LOG_LOSS = " + LIBLINEAR", " + log-loss"


@dataclass(frozen=True)
class Topic:
    """What a paper claims in several places, and how often it was found to be so."""

    text: str
    holds: int
    undecided: int
    fails: int

    @property
    def word(self) -> str:
        """One word for all comparisons: it holds if half of them say so and none the contrary."""
        total = self.holds + self.undecided + self.fails
        if self.fails > self.holds:
            return FAILS
        if 4 * self.fails >= total:
            return MIXED
        if 2 * self.holds < total:
            return UNDECIDED
        return MOSTLY if self.fails else HOLDS

    @property
    def sentence(self) -> str:
        """The claim and its numbers."""
        total = self.holds + self.undecided + self.fails
        if self.holds == total:
            return f"{self.text}. This is so in all {total} comparisons."
        close = f"{self.undecided} {'is' if self.undecided == 1 else 'are'} too close to call"
        contrary = f"{self.fails} {'shows' if self.fails == 1 else 'show'} the opposite"
        rest = [part for part, count in ((close, self.undecided), (contrary, self.fails)) if count]
        so = f"{self.holds or 'none'} of {total} comparisons"
        return f"{self.text}. This is so in {so}; {' and '.join(rest)}."


def topics(specs: Sequence[Spec], results: Results) -> dict[str, list[Topic]]:
    """For each paper what it claims, from all of its tables and figures that were measured."""
    found: dict[str, dict[str, Counter[str]]] = {}
    for spec in specs:
        for claim in spec.claims:
            one = judged(claim, spec, results)
            counts = Counter(
                {HOLDS: one.holds, UNDECIDED: one.undecided + one.one_run, FAILS: one.fails}
            )
            if claim.topic and counts.total():
                of_paper = found.setdefault(spec.paper, {})
                of_paper[claim.topic] = of_paper.get(claim.topic, Counter()) + counts
    return {
        paper: [Topic(text, n[HOLDS], n[UNDECIDED], n[FAILS]) for text, n in of_paper.items()]
        for paper, of_paper in found.items()
    }


def how_many_hold(found: Iterable[Topic]) -> str:
    """One sentence that counts the claims of all papers, and what an undecided one is."""
    words = Counter(topic.word for topic in found)
    told = ", ".join(
        f"{words[word]} {one if words[word] == 1 else several}"
        for word, (one, several) in _COUNTED.items()
        if words[word]
    )
    return (
        f"The papers make {words.total()} claims that can be tested here: {told}. A claim is "
        f"undecided if most comparisons are too close to call, because the two methods differ by "
        f"no more than each of them does from seed to seed."
    )


def by_paper(of_papers: Mapping[str, Sequence[Topic]]) -> list[str]:
    """For each paper how many claims hold, and those that do not."""
    told = []
    for paper, found in of_papers.items():
        kept = [topic for topic in found if topic.word in (HOLDS, MOSTLY)]
        text = f"{short_paper(paper)}: {len(kept)} of {len(found)} claims hold, at least mostly."
        for word in (MIXED, UNDECIDED, FAILS):
            those = [topic.text for topic in found if topic.word == word]
            text += f" {word.capitalize()}: {'; '.join(those)}." if those else ""
        told.append(text)
    return told


def goals_in_short(goals: Sequence[Headline]) -> str:
    """How many of our own goals are reached."""
    words = Counter(goal.word for goal in goals)
    counted = [f"{words[word]} {text}" for word, text in _GOAL_WORDS.items() if words[word]]
    return f"Of {len(goals)} goals that we set ourselves, {', '.join(counted)}."


def our_rows_beside_them(specs: Sequence[Spec], results: Results) -> list[str]:
    """Sentences about the learner and the maps that do better now."""
    told = []
    for spec in specs:
        if spec.name == TABLE:
            told += [*_learner_alone(spec, results), *_against_the_paper(spec, results)]
    return [*told, *_instead_of_liblinear(specs, results)]


def _learner_alone(spec: Spec, results: Results) -> list[str]:
    """Same map, same size: log-loss against squared errors."""
    ratios = []
    for panel in comparable_panels(spec):
        means = {(cell.method, cell.x): cell.mean for cell in cells(panel, results) if cell.values}
        for (method, x), mean in means.items():
            same = method.removesuffix(LOG_LOSS)
            if same != method and same not in panel.kept and (same, x) in means:
                ratios.append(mean / means[same, x])
    if not ratios:
        return []
    better = sum(ratio < 1 for ratio in ratios)
    return [
        f"With the log-loss instead of squared errors, the same map of the same size makes fewer "
        f"test errors in {better} of {len(ratios)} cells of {short_title(spec)}. In the median, it "
        f"makes {1 - statistics.median(ratios):.0%} fewer."
    ]


def _against_the_paper(spec: Spec, results: Results) -> list[str]:
    """The default map with the log-loss, and the best of our rows, against the better CRAFT row."""
    told = []
    for what, row in (
        ("The default map with the log-loss", "log_loss"),
        ("The best of our rows, chosen by test error,", "best"),
    ):
        found = [column.relative(row) for column in columns_of(spec, results)]
        ratios = [ratio for ratio in found if not math.isnan(ratio)]
        if ratios:
            better = sum(ratio < 1 for ratio in ratios)
            told.append(
                f"{what} makes fewer test errors than the better of the published "
                f"{' and '.join(CRAFT_ROWS)} in {better} of {len(ratios)} columns of "
                f"{short_title(spec)}. In the median, it makes "
                f"{1 - statistics.median(ratios):.0%} fewer."
            )
    return told


def _instead_of_liblinear(specs: Sequence[Spec], results: Results) -> list[str]:
    """The log-loss against LIBLINEAR, both measured here, on the same features."""
    gains = []
    for spec in specs:
        for panel in comparable_panels(spec):
            if panel.measure == "svm" and panel.value == "accuracy":
                found = {(c.method, c.x): c for c in cells(panel, results) if c.values}
                gains += [
                    cell.mean - found[rival, cell.x].mean
                    for cell, rival in _pairs(found.values())
                    if (rival, cell.x) in found
                ]
    if not gains:
        return []
    better = sum(gain > 0 for gain in gains)
    return [
        f"On the features of KK and PP, the log-loss is more accurate than LIBLINEAR in {better} "
        f"of {len(gains)} cells. In the median, it gains {statistics.median(gains):.2f} percentage "
        f"points."
    ]


def _pairs(found: Iterable[Cell]) -> list[tuple[Cell, str]]:
    return [
        (cell, cell.method.replace(_SVM_LOG_LOSS, _LIBLINEAR))
        for cell in found
        if cell.method.endswith(_SVM_LOG_LOSS)
    ]
