"""What a table or figure of a paper consists of, and the runs that it asks for.

A file of `specs/` describes one of them: its panels, what was printed, and what the paper claims. A
panel is a grid of methods and values of x; a run is one cell of it for one seed, a plain dict that
says all there is to know to repeat it. Equal runs of several panels are made once.
"""

import json
import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

Run = dict[str, Any]


@dataclass(frozen=True)
class Panel:
    """One grid of a table, or one plot of a figure.

    Attributes
    ----------
    name, title : str
    measure : str
        The module of this package that measures a run.
    value, unit : str
        Which of the measured values is shown.
    axis : str
        What x is in a run: "size", "data", "degree", ...
    x : list
    x_label : str
    methods : list of str
    kept : list of str
        Methods whose results are shown and not made again, because the library has changed since.
    printed : dict
        For each method the printed values, nan where there is none.
    settings : dict
        What all runs of the panel share.
    sizes : dict
        For each method the size at every x, where the size is not x itself; a single number is the
        size at all of them.
    quick : list
        The x of a quick run; [] leaves the panel out.
    quick_settings : dict
        What a quick run does otherwise.
    seeds : int
    seeds_at : dict
        Other numbers of seeds, at some x.
    not_run : dict
        The reason for which some x are left out of a full run, or those of single methods there.
    up_to : dict
        For some methods the last x of a full run: what comes after it takes too long.
    lower_is_better : bool
    same_settings : bool
        Whether printed values were measured as ours are. Seconds of another machine, for other
        numbers of rows, are shown and not judged.
    digits : int
        Of printed values, after the point.
    kind : {"table", "plot"}
    log : {"", "x", "y", "xy"}
        Logarithmic axes of a plot.
    curve : str
        Where a single run gives a whole curve, the value that is its x.
    curve_measure : str
        Where x is measured by runs of its own, what they measure; else settings are the same.
    relative_to : str
        Shown is the value of this method over that of the cell's method, seed by seed: a speed-up,
        where the value is a time. "" shows the value itself.
    """

    name: str
    title: str
    measure: str
    value: str
    unit: str
    axis: str
    x: list[Any]
    x_label: str
    methods: list[str]
    kept: list[str] = field(default_factory=list)
    printed: dict[str, list[float]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, list[int]] = field(default_factory=dict)
    quick: list[Any] = field(default_factory=list)
    quick_settings: dict[str, Any] = field(default_factory=dict)
    seeds: int = 3
    seeds_at: dict[str, int] = field(default_factory=dict)
    not_run: dict[str, str | dict[str, str]] = field(default_factory=dict)
    up_to: dict[str, Any] = field(default_factory=dict)
    lower_is_better: bool = True
    same_settings: bool = True
    digits: int = 2
    kind: str = "table"
    log: str = ""
    curve: str = ""
    curve_measure: str = ""
    relative_to: str = ""

    def run(self, method: str, x: Any, quick: bool = False) -> Run:
        """A cell of the panel, but for the seed."""
        settings = self.settings | (self.quick_settings if quick else {})
        if method in self.sizes:
            settings = {"size": self.sizes[method][self.x.index(x)]} | settings
        return {"measure": self.measure, **settings, self.axis: x, "method": method}

    def printed_at(self, method: str, x: Any) -> float:
        """What the paper prints there; nan if nothing."""
        found = method in self.printed and x in self.x
        return self.printed[method][self.x.index(x)] if found else math.nan

    def why_not_run(self, method: str, x: Any) -> str:
        """The reason for which a full run leaves out this cell; "" if it does not."""
        last = self.up_to.get(method)
        if last in self.x and self.x.index(x) > self.x.index(last):
            return "left out, because it takes too long"
        reasons = self.not_run.get(str(x), "")
        return reasons if isinstance(reasons, str) else reasons.get(method, "")

    def runs(self, quick: bool, seeds: int | None) -> Iterator[Run]:
        """All runs, the first seed of all cells before the second of any."""
        shown = self.quick if quick else self.x
        wanted = {x: seeds or self.seeds_at.get(str(x), 1 if quick else self.seeds) for x in shown}
        asked = [method for method in self.methods if method not in self.kept]
        methods = dict.fromkeys([*filter(None, [self.relative_to]), *asked])
        for seed in range(max(wanted.values(), default=0)):
            for method in methods:
                for x in shown:
                    if seed < wanted[x] and (quick or not self.why_not_run(method, x)):
                        run = self.run(method, x, quick) | {"seed": seed}
                        yield run
                        if self.curve_measure:
                            yield run | {"measure": self.curve_measure}


@dataclass(frozen=True)
class Claim:
    """A statement of the paper that can fail: one method is better than another at every x.

    Claims of a paper with the same `topic` are counted together at the top of a report.
    """

    text: str
    panel: str
    better: str
    than: str
    topic: str = ""


@dataclass(frozen=True)
class Spec:
    """A table or a figure: its panels, its claims, and the choices that the paper leaves open.

    `rows` says what methods are that the paper does not have.
    """

    name: str
    title: str
    paper: str
    protocol: str
    choices: list[str]
    panels: list[Panel]
    claims: list[Claim]
    rows: list[str] = field(default_factory=list)

    @property
    def page(self) -> str:
        """The file of the report that has this table, and all others of the paper."""
        return f"{self.name.partition('-')[0].lower()}.md"

    def runs(self, quick: bool = False, seeds: int | None = None) -> list[Run]:
        """All runs of all panels, equal ones once."""
        found = {key_of(run): run for panel in self.panels for run in panel.runs(quick, seeds)}
        return list(found.values())


def short_paper(paper: str) -> str:
    """The title of a paper, and where or when it was published.

    Examples
    --------
    >>> short_paper("P. Kar and H. Karnick, Random Feature Maps, AISTATS 2012")
    'Random Feature Maps, AISTATS 2012'
    """
    return ", ".join(paper.split(", ")[-2:])


def names() -> list[str]:
    """The specifications that there are."""
    specs = files(__package__) / "specs"
    return sorted(
        Path(one.name).stem for one in specs.iterdir() if Path(one.name).suffix == ".toml"
    )


def load(name: str) -> Spec:
    """The specification of that name, or of a file whose name ends in .toml."""
    if name.endswith(".toml"):
        return parse(Path(name).stem, Path(name).read_text())
    if name not in names():
        raise ValueError(f"there is no table or figure {name!r}; there are {', '.join(names())}.")
    return parse(name, (files(__package__) / "specs" / f"{name}.toml").read_text())


def parse(name: str, text: str) -> Spec:
    """A specification from TOML; keys that mean nothing are refused."""
    try:
        given = tomllib.loads(text)
        panels = given.pop("panels")
        claims = [Claim(**claim) for claim in given.pop("claims", [])]
        shared = {key: given.pop(key) for key in _PANEL_KEYS & set(given) - {"title"}}
        made = [_panel(name, shared | panel) for panel in panels]
        return Spec(name=name, panels=made, claims=claims, **given)
    except KeyError as missing:
        raise ValueError(f"{name} is no specification: it has no {missing}.") from None
    except (TypeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{name} is no specification: {error}.") from error


def key_of(run: Run) -> str:
    """Runs of equal keys are the same run."""
    return json.dumps(run, sort_keys=True)


_PANEL_KEYS = {one.name for one in fields(Panel)}


def _panel(name: str, given: dict[str, Any]) -> Panel:
    printed = given.get("printed", {})
    methods = given.pop("methods", [])
    more = [*methods, *given.get("kept", [])]
    sizes = given.pop("sizes", {})
    given["sizes"] = {
        m: [n] * len(given["x"]) if isinstance(n, int) else n for m, n in sizes.items()
    }
    panel = Panel(methods=[*printed, *(m for m in more if m not in printed)], **given)
    for what, of_methods in (("printed values", panel.printed), ("sizes", panel.sizes)):
        for method, values in of_methods.items():
            if len(values) != len(panel.x):
                raise ValueError(
                    f"{name}, panel {panel.name}: {method} has {len(values)} {what} "
                    f"for {len(panel.x)} of x."
                )
    return panel
