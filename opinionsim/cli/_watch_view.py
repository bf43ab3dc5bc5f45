"""The state of an experiment, as lines that fit a terminal."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from opinionsim.cli._console import clean
from opinionsim.cli._reasons import reason_lines
from opinionsim.cli._stores import STATES
from opinionsim.cli._watch_state import Line, OpenRun, Seen, Trajectory

#: Most reasons and reports of workers that are shown, and most lines of each.
_REASONS, _DOING, _FOLDED = 3, 3, 2
#: Runs and agents shown where nothing limits the height.
_MANY = 20
#: Columns assumed at least, and columns of the bar of all calls at most.
_NARROWEST, _WIDEST_BAR = 40, 40
#: Least width at which the line of a run has the time since its last reply.
_WIDE = 110
_STYLES = {"complete": "green", "incomplete": "red", "under way": "cyan", "cut off": "yellow", "pending": "dim"}
#: Colours of opinions, from the low end of the scale to the high one.
_COLOURS = ("blue", "blue", "cyan", "white", "white", "yellow", "red", "red")


class Glyphs(NamedTuple):
    """Characters of a drawing."""

    full: str  # places of a bar
    empty: str
    levels: str  # opinions, from the low end of the scale to the high one
    unknown: str  # no opinion yet
    dot: str  # between parts of a line


UNICODE = Glyphs("█", "░", "▁▂▃▄▅▆▇█", "·", " · ")
ASCII = Glyphs("#", "-", "12345678", ".", ", ")


def lines(seen: Seen, width: int, height: int | None = None, glyphs: Glyphs = UNICODE) -> list[Text]:
    """An experiment at one moment, as lines that fit a terminal of `width` columns and `height` lines.

    Runs and agents for which there is no room are counted; by default there is room for twenty of each.
    """
    width = max(width, _NARROWEST)
    found = _head(seen, width, glyphs)
    shown = seen.trajectory
    agents = 0 if shown is None else len(shown.lines)
    if height is None:
        n_runs, n_agents = min(len(seen.open), _MANY), min(agents, _MANY)
    else:
        n_runs, n_agents = _shared(height - len(found), len(seen.open), agents)
    if seen.open:
        found += _runs(seen.open, n_runs, width, glyphs)
    if shown is not None and n_agents:
        found += _trajectory(shown, n_agents, width, glyphs)
    elif shown is not None and not agents:
        found += [Text(), Text(f"run {shown.row}: no opinion is on record")]
    for line in found:
        line.truncate(width)
    return found if height is None else found[:height]


def in_one_line(seen: Seen) -> str:
    """An experiment at one moment, in one line."""
    waiting = f"{seen.store}: no experiment is on record yet"
    parts = [f"{seen.experiment}: {_counts(seen, ', ').plain}" if seen.experiment else waiting]
    if seen.expected:
        parts.append(", ".join(_calls(seen)))
    if seen.last_reply_s is not None and seen.is_under_way:
        parts.append(f"last reply {duration(seen.last_reply_s)} ago")
    if seen.away:
        parts.append(_away(seen))
    return f"{_clock(seen.at)} {'; '.join(parts)}"


def duration(seconds: float) -> str:
    """A time in its two largest units."""
    if seconds < 99.5:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def _head(seen: Seen, width: int, glyphs: Glyphs) -> list[Text]:
    """Name, runs, progress, usage, reports of workers, and why runs are not complete."""
    design = f", design {seen.design} of {seen.designs}" if seen.designs > 1 else ""
    name = f"{seen.experiment}{design}{glyphs.dot}{seen.store}" if seen.experiment else seen.store
    clock = _clock(seen.at)
    found = [Text.assemble((_fit(clean(name), width - len(clock) - 1), "bold"), " ", (clock, "dim"))]
    if seen.experiment:
        found.append(_counts(seen, glyphs.dot))
        if seen.expected:
            found.append(_progress(seen, width, glyphs))
        paid = _paid(seen)
        together = cell_len(f"paid {glyphs.dot.join(paid)}") <= width
        for place, part in enumerate([glyphs.dot.join(paid)] if paid and together else paid):
            found.append(Text(("     " if place else "paid ") + part))
    if seen.away:
        found += _folded(_away(seen), width, "bold red")
    elif not seen.experiment:
        found.append(Text("no experiment is on record yet; waiting for one", style="yellow"))
    elif not seen.over:
        found += _doing(seen, width)
    if seen.elsewhere:
        names = ", ".join(seen.elsewhere)
        found += _folded(f"also being run: {names} (see them with --experiment)", width, "dim")
    for line in reason_lines(seen.reasons, _REASONS, "see: opinionsim status"):
        found += _folded(line, width, "red")
    return found


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC).astimezone():%H:%M:%S}"


def _counts(seen: Seen, dot: str) -> Text:
    """Number of runs, in all and by state."""
    total = sum(seen.counts.values())
    told = [Text(f"{seen.counts[name]:,} {name}", _STYLES[name]) for name in STATES if seen.counts.get(name)]
    return Text(f"{total:,} {'run' if total == 1 else 'runs'}: ") + Text(dot).join(told)


def _calls(seen: Seen) -> list[str]:
    """Calls on record; while runs are under way also their rate, and the time left."""
    found = [f"{seen.calls:,} of {seen.expected:,} calls"]
    if seen.is_under_way and seen.rate is not None:
        found.append(f"{seen.rate:,.0f}/s" if seen.rate >= 100 else f"{seen.rate:.3g}/s")
    if seen.is_under_way and seen.left_s is not None:
        found.append(f"{duration(seen.left_s)} left")
    return found


def _progress(seen: Seen, width: int, glyphs: Glyphs) -> Text:
    """Calls on record as a bar and as numbers."""
    share = seen.calls / seen.expected
    # Rounded down: 100 % only when all calls are on record.
    percent = f"{min(math.floor(100 * share), 100)} %"
    rest = glyphs.dot.join(_calls(seen))
    room = width - 5 - cell_len(rest) - 4
    bar = _bar(share, min(room, _WIDEST_BAR), glyphs) if room >= 8 else Text()
    return Text.assemble(bar, " " if bar else "", (percent, "bold"), "  ", rest)


def _bar(share: float, width: int, glyphs: Glyphs) -> Text:
    full = min(width, math.floor(width * share))
    return Text.assemble((glyphs.full * full, "green"), (glyphs.empty * (width - full), "dim"))


def _paid(seen: Seen) -> list[str]:
    """Usage, with the limits of the budget."""
    found = []
    for name, (used, limit) in seen.paid.items():
        text = f"{name} {used:,.4f}" if name == "money" else f"{name} {used:,.0f}"
        if limit is not None:
            text += f" of at most {limit:,g}" + (f" ({100 * used / limit:.0f} %)" if limit else "")
        if used or limit is not None:
            found.append(text)
    return found


def _doing(seen: Seen, width: int) -> list[Text]:
    """Time since the last reply, and the reports of workers; or that nothing is under way."""
    if not seen.is_under_way:
        if seen.counts.get("pending") == sum(seen.counts.values()):
            return [Text("no run has begun yet", style="yellow")]
        return _folded("nobody is carrying out what is left; run the experiment again to go on", width, "yellow")
    found = []
    if seen.last_reply_s is not None:
        found.append(Text(f"last reply {duration(seen.last_reply_s)} ago", "yellow" if seen.last_reply_s > 30 else ""))
    for text in seen.doing[:_DOING]:
        # A report that does not fit a line has a line for each part.
        for part in [text] if cell_len(text) <= width else text.split("; "):
            found += _folded(part, width)
    if len(seen.doing) > _DOING:
        found.append(Text(f"and {len(seen.doing) - _DOING} more workers"))
    return found


def _away(seen: Seen) -> str:
    return f"{clean(' '.join(seen.away.split()))}; trying again"


def _shared(room: int, runs: int, agents: int) -> tuple[int, int]:
    """Numbers of runs and agents that fit `room` lines, with headings and a line that counts the rest of each."""
    wanted_runs, wanted_agents = (runs + 2 if runs else 0), (agents + 4 if agents else 0)
    if wanted_runs + wanted_agents <= room:
        return runs, agents
    lines_of_runs = min(wanted_runs, max(room - wanted_agents, room // 2))
    shown = runs if lines_of_runs == wanted_runs else lines_of_runs - 3
    left = room - lines_of_runs
    told = agents if left >= wanted_agents else left - 5
    return max(shown, min(runs, 1)), max(told, 0)


def _runs(runs: Sequence[OpenRun], n: int, width: int, glyphs: Glyphs) -> list[Text]:
    """Runs that have begun and have not ended: the first n, and a line that counts the others."""
    digits = max(3, *(len(str(run.row)) for run in runs[:n]))
    wide = width >= _WIDE
    bar = 20 if wide else 10
    calls = [f"{run.calls:,}" + (f"/{max(run.expected, run.calls):,}" if run.expected else "") for run in runs[:n]]
    widest = max(map(len, calls))
    heading = f"{'run':>{digits}}  {'calls':<{bar + 1 + widest}}  {'last reply  ' if wide else ''}conditions"
    found = [Text(), Text(heading, style="dim")]
    for run, told in zip(runs, calls, strict=False):
        waited = "" if run.last_reply_s is None else f"{duration(run.last_reply_s)} ago"
        line = Text.assemble(
            (f"{run.row:>{digits}}", "bold"),
            "  ",
            _bar(run.calls / max(run.expected, run.calls), bar, glyphs) if run.expected else " " * bar,
            f" {told:<{widest}}  ",
            f"{waited:<12}" if wide else "",
            ("cut off: ", _STYLES["cut off"]) if run.state == "cut off" else "",
            "being coded: " if run.state == "complete" else "",
        )
        found.append(line.append(_fit(clean(run.cell), max(0, width - line.cell_len)).rstrip()))
    rest = Counter("being coded" if run.state == "complete" else run.state for run in runs[n:])
    if rest:
        found.append(Text("and " + ", ".join(f"{count:,} more {state}" for state, count in rest.items()), style="dim"))
    return found


def _trajectory(shown: Trajectory, n: int, width: int, glyphs: Glyphs) -> list[Text]:
    """Opinions of one run: a line for each agent, with its opinion at each step and at last, and a line of means."""
    steps = f"steps {shown.first} to {shown.last}" if shown.last >= shown.first else "nothing is on record yet"
    ends = f"{glyphs.levels[0]} {_signed(shown.low)} to {glyphs.levels[-1]} {_signed(shown.high)}"
    title = clean(f"run {shown.row}: {shown.what}, {ends}, {steps}")
    names = max(5, *(min(cell_len(line.name), 16 if width < _WIDE else 30) for line in shown.lines[:n]))
    room = min(width - names - len("  assigned     now"), max(len("by step"), shown.last - shown.first + 1))
    heading = f"{'agent':<{names}}  assigned  {'by step':<{room}}  now"
    found = [Text(), Text(_fit(title, width).rstrip(), style="bold"), Text(heading, style="dim")]
    found += [_line(shown, line, names, room, glyphs) for line in shown.lines[:n]]
    if hidden := len(shown.lines[n:]):
        found.append(Text(f"and {hidden:,} {'agent' if hidden == 1 else 'agents'} more", style="dim"))
    steps_of_all = zip(*(line.values for line in shown.lines), strict=True)
    known = ([value for value in step if not math.isnan(value)] for step in steps_of_all)
    means = tuple(statistics.fmean(step) if step else math.nan for step in known)
    return [*found, _line(shown, Line("mean", None, means), names, room, glyphs)]


def _line(shown: Trajectory, line: Line, names: int, room: int, glyphs: Glyphs) -> Text:
    """Name, assigned opinion, trajectory and last opinion of an agent."""
    assigned = "" if line.assigned is None else _signed(line.assigned)
    found = Text(f"{_fit(clean(line.name), names)}  {assigned:>8}  ")
    # If the steps do not fit, each place shows the last step of its portion.
    count = len(line.values)
    values = [line.values[(place + 1) * count // room - 1] for place in range(room)] if count > room else line.values
    for value in values:
        if math.isnan(value):
            found.append(glyphs.unknown, "dim")
        else:
            level = min(7, max(0, round(7 * (value - shown.low) / (shown.high - shown.low or 1.0))))
            found.append(glyphs.levels[level], _COLOURS[level])
    last = values[-1] if values else math.nan
    found.append(f"{' ' * (room - len(values))}  {'-' if math.isnan(last) else _signed(last)}", "bold")
    return found


def _signed(value: float) -> str:
    return f"{value:+.3g}" if value else "0"


def _fit(text: str, width: int) -> str:
    """A text cut or padded to `width` columns."""
    if cell_len(text) <= width or width < 3:
        return set_cell_size(text, width)
    return f"{set_cell_size(text, width - 3).rstrip()}..."


def _folded(text: str, width: int, style: str = "") -> list[Text]:
    """A text folded into at most :data:`_FOLDED` lines."""
    parts = textwrap.wrap(
        clean(" ".join(text.split())), width, subsequent_indent="  ", max_lines=_FOLDED, placeholder=" ..."
    )
    return [Text(part, style=style) for part in parts]
