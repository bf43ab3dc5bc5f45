"""What is seen of an experiment, as lines that fit a terminal."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from opinionsim.cli._console import clean
from opinionsim.cli._stores import STATES
from opinionsim.cli._watch_course import Course, Line, shrunk
from opinionsim.cli._watch_state import OpenRun, Seen

__all__ = ["ASCII", "UNICODE", "Glyphs", "duration", "in_one_line", "lines"]

#: Reasons and lines of what is being done that are shown, and lines each may take.
_REASONS, _DOING, _FOLDED = 3, 3, 2
#: Runs and agents shown where nothing limits the height.
_MANY = 20
#: Columns that are taken to be there at least, and those that the bar of all calls takes at most.
_NARROWEST, _WIDEST_BAR = 40, 40
#: From this width on, a run's line says when its last reply came.
_WIDE = 110
_STYLES = {"complete": "green", "incomplete": "red", "under way": "cyan", "cut off": "yellow", "pending": "dim"}
#: Colours of opinions, from the low end of the scale to the high one.
_COLOURS = ("blue", "blue", "cyan", "white", "white", "yellow", "red", "red")


class Glyphs(NamedTuple):
    """Characters that are drawn with."""

    full: str
    """A filled place of a bar."""
    empty: str
    """An empty one."""
    levels: str
    """Opinions, from the low end of the scale to the high one."""
    unknown: str
    """No opinion yet."""
    dot: str
    """Between parts of a line."""


UNICODE = Glyphs("█", "░", "▁▂▃▄▅▆▇█", "·", " · ")
ASCII = Glyphs("#", "-", "12345678", ".", ", ")


def lines(seen: Seen, width: int, height: int | None = None, glyphs: Glyphs = UNICODE) -> list[Text]:
    """An experiment at one moment.

    Parameters
    ----------
    seen : Seen
        The experiment.
    width : int
        Columns there are.
    height : int, optional
        Lines there are: runs and agents for which there is no room are counted. Default: room for twenty of each.
    glyphs : Glyphs
        What to draw with.
    """
    width = max(width, _NARROWEST)
    head = [*_head(seen, width, glyphs), *_reasons(seen, width)]
    agents = 0 if seen.course is None else len(seen.course.lines)
    if height is None:
        n_runs, n_agents = min(len(seen.open), _MANY), min(agents, _MANY)
    else:
        n_runs, n_agents = _shared(height - len(head), len(seen.open), agents)
    found = [*head, *_runs(seen, n_runs, width, glyphs)]
    if seen.course is not None and n_agents:
        found += _course(seen.course, n_agents, width, glyphs)
    elif seen.course is not None and not agents:
        found += [Text(), Text(f"run {seen.course.row}: no opinion is on record")]
    for line in found:
        line.truncate(width)
    return found if height is None else found[:height]


def in_one_line(seen: Seen) -> str:
    """An experiment at one moment, where nothing can be drawn over."""
    waiting = f"{seen.store}: no experiment is on record yet"
    parts = [f"{seen.experiment}: {_counts_text(seen)}" if seen.experiment else waiting]
    if seen.expected:
        parts.append(", ".join([_calls_text(seen), *_rate_texts(seen)]))
    if seen.last_reply_s is not None and seen.is_under_way:
        parts.append(f"last reply {duration(seen.last_reply_s)} ago")
    if seen.away:
        parts.append(_away_text(seen))
    return f"{_clock(seen.at)} {'; '.join(parts)}"


def duration(seconds: float) -> str:
    """A time in its two largest units."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


# -- the experiment ------------------------------------------------------------------------------------------


def _head(seen: Seen, width: int, glyphs: Glyphs) -> list[Text]:
    """Name, runs, progress, what was paid, and what is being done."""
    if not seen.experiment:
        waiting = Text("no experiment is on record yet; waiting for one", style="yellow")
        return [_title(seen.store, seen.at, width), *(_away(seen, width) if seen.away else [waiting])]
    design = f", design {seen.design} of {seen.designs}" if seen.designs > 1 else ""
    found = [_title(f"{seen.experiment}{design}{glyphs.dot}{seen.store}", seen.at, width), _counts(seen, glyphs)]
    if seen.expected:
        found.append(_progress(seen, width, glyphs))
    found += _joined("paid ", _paid_texts(seen), width, glyphs)
    if seen.away:
        found += _away(seen, width)
    elif not seen.over:
        found += _doing(seen, width)
    if seen.elsewhere:
        names = ", ".join(seen.elsewhere)
        found += _folded(f"also being run: {names} (see them with --experiment)", width, "dim")
    return found


def _title(name: str, at: float, width: int) -> Text:
    clock = _clock(at)
    return Text.assemble((_fit(clean(name), width - len(clock) - 1), "bold"), " ", (clock, "dim"))


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC).astimezone():%H:%M:%S}"


def _counts(seen: Seen, glyphs: Glyphs) -> Text:
    total = sum(seen.counts.values())
    told = [(f"{seen.counts[name]:,} {name}", _STYLES[name]) for name in STATES if seen.counts.get(name)]
    found = Text(f"{total:,} {'run' if total == 1 else 'runs'}: ")
    for place, (text, style) in enumerate(told):
        found.append(glyphs.dot if place else "").append(text, style)
    return found


def _counts_text(seen: Seen) -> str:
    total = sum(seen.counts.values())
    told = ", ".join(f"{seen.counts[name]:,} {name}" for name in STATES if seen.counts.get(name))
    return f"{total:,} {'run' if total == 1 else 'runs'}: {told}"


def _progress(seen: Seen, width: int, glyphs: Glyphs) -> Text:
    """Calls on record as a bar, their number, their rate, and the time that is left."""
    share = seen.calls / seen.expected
    # Never full before it is done.
    percent = f"{min(math.floor(100 * share), 100):3d} %"
    rest = glyphs.dot.join([_calls_text(seen), *_rate_texts(seen)])
    room = width - len(percent) - cell_len(rest) - 4
    bar = _bar(share, min(room, _WIDEST_BAR), glyphs) if room >= 8 else Text()
    return Text.assemble(bar, " " if bar else "", (percent.strip(), "bold"), "  ", rest)


def _calls_text(seen: Seen) -> str:
    return f"{seen.calls:,} of {seen.expected:,} calls"


def _rate_texts(seen: Seen) -> list[str]:
    """Calls a second, and the time that is left."""
    if not seen.is_under_way:
        return []
    found = [] if seen.rate is None else [f"{seen.rate:,.0f}/s" if seen.rate >= 100 else f"{seen.rate:.3g}/s"]
    return found if seen.left_s is None else [*found, f"{duration(seen.left_s)} left"]


def _bar(share: float, width: int, glyphs: Glyphs) -> Text:
    full = min(width, math.floor(width * share))
    return Text.assemble((glyphs.full * full, "green"), (glyphs.empty * (width - full), "dim"))


def _paid_texts(seen: Seen) -> list[str]:
    """What was paid, of what the budget allows."""
    found = []
    for name, amount in seen.paid.items():
        if not amount.used and amount.limit is None:
            continue
        spell = "{:,.4f}" if name == "money" else "{:,.0f}"
        text = spell.format(amount.used)
        if amount.limit is not None:
            share = f" ({100 * amount.used / amount.limit:.0f} %)" if amount.limit else ""
            text += f" of at most {amount.limit:,g}{share}"
        found.append(f"{name} {text}")
    return found


def _doing(seen: Seen, width: int) -> list[Text]:
    """What those who carry runs out say, and when the last reply came."""
    if not seen.is_under_way:
        if seen.counts.get("pending") == sum(seen.counts.values()):
            return [Text("no run has begun yet", style="yellow")]
        return _folded("nobody is carrying out what is left; run the experiment again to go on", width, "yellow")
    found = []
    if seen.last_reply_s is not None:
        style = "yellow" if seen.last_reply_s > 30 else ""
        found.append(Text(f"last reply {duration(seen.last_reply_s)} ago", style))
    for text in seen.doing[:_DOING]:
        # Its parts each have a line where they do not fit one.
        for part in [text] if cell_len(text) <= width else text.split("; "):
            found += _folded(part, width)
    if len(seen.doing) > _DOING:
        found.append(Text(f"and {len(seen.doing) - _DOING} more workers"))
    return found


def _away(seen: Seen, width: int) -> list[Text]:
    return _folded(_away_text(seen), width, "bold red")


def _away_text(seen: Seen) -> str:
    return f"{clean(' '.join(seen.away.split()))}; trying again"


def _reasons(seen: Seen, width: int) -> list[Text]:
    """Why runs are not complete."""
    found: list[Text] = []
    for reason in seen.reasons[:_REASONS]:
        found += _folded(str(reason), width, "red")
    hidden = sum(reason.runs for reason in seen.reasons[_REASONS:])
    if hidden:
        found.append(Text(f"and {hidden:,} more (see: opinionsim status)", style="red"))
    return found


# -- its runs ------------------------------------------------------------------------------------------------


def _shared(room: int, runs: int, agents: int) -> tuple[int, int]:
    """How many runs and agents are shown in so many lines, with a heading and a line that counts the rest of each."""
    wanted_runs, wanted_agents = (runs + 2 if runs else 0), (agents + 4 if agents else 0)
    if wanted_runs + wanted_agents <= room:
        return runs, agents
    lines_of_runs = min(wanted_runs, max(room - wanted_agents, room // 2))
    shown = runs if lines_of_runs == wanted_runs else lines_of_runs - 3
    left = room - lines_of_runs
    told = agents if left >= wanted_agents else left - 5
    return max(shown, min(runs, 1)), max(told, 0)


def _runs(seen: Seen, n: int, width: int, glyphs: Glyphs) -> list[Text]:
    """Runs that have begun and have not ended."""
    if not seen.open:
        return []
    shown = seen.open[:n]
    digits = max(3, *(len(str(run.row)) for run in shown))
    bar = 10 if width < _WIDE else 20
    calls = [_calls_of_run(run) for run in shown]
    widest = max(map(len, calls))
    heading = f"{'run':>{digits}}  {'calls':<{bar + 1 + widest}}  "
    late = width >= _WIDE
    found = [Text(), Text(f"{heading}{'last reply  ' if late else ''}conditions", style="dim")]
    for run, told in zip(shown, calls, strict=True):
        share = run.calls / max(run.expected, run.calls) if run.expected else 0.0
        waited = "" if run.last_reply_s is None else f"{duration(run.last_reply_s)} ago"
        line = Text.assemble(
            (f"{run.row:>{digits}}", "bold"),
            "  ",
            _bar(share, bar, glyphs) if run.expected else " " * bar,
            f" {told:<{widest}}  ",
            f"{waited:<12}" if late else "",
            (f"{run.state}: " if run.state == "cut off" else "", _STYLES["cut off"]),
            "being coded: " if run.state == "complete" else "",
        )
        line.append(_fit(clean(run.cell), max(0, width - line.cell_len)).rstrip())
        found.append(line)
    if len(seen.open) > n:
        found.append(Text(_count_rest(seen.open[n:]), style="dim"))
    return found


def _calls_of_run(run: OpenRun) -> str:
    return f"{run.calls:,}" if not run.expected else f"{run.calls:,}/{max(run.expected, run.calls):,}"


def _count_rest(runs: Iterable[OpenRun]) -> str:
    counts: dict[str, int] = {}
    for run in runs:
        state = "being coded" if run.state == "complete" else run.state
        counts[state] = counts.get(state, 0) + 1
    return "and " + ", ".join(f"{count:,} more {state}" for state, count in counts.items())


# -- opinions ------------------------------------------------------------------------------------------------


def _course(course: Course, n: int, width: int, glyphs: Glyphs) -> list[Text]:
    """Opinions of one run: a line an agent, its opinion step by step, and the last one."""
    steps = f"steps {course.first} to {course.last}" if course.last >= course.first else "nothing is on record yet"
    ends = f"{glyphs.levels[0]} {_signed(course.low)} to {glyphs.levels[-1]} {_signed(course.high)}"
    title = f"run {course.row}: {course.what}, {ends}, {steps}"
    shown = course.lines[:n]
    names = max(5, *(min(cell_len(line.name), 16 if width < _WIDE else 30) for line in shown))
    room = width - names - len("  assigned     now")
    steps_drawn = min(room, max(len("by step"), course.last - course.first + 1))
    heading = f"{'agent':<{names}}  assigned  {'by step':<{steps_drawn}}  now"
    found = [Text(), Text(_fit(clean(title), width).rstrip(), style="bold"), Text(heading, style="dim")]
    found += [_line(course, line, names, steps_drawn, glyphs) for line in shown]
    if len(course.lines) > n:
        hidden = len(course.lines) - n
        found.append(Text(f"and {hidden:,} {'agent' if hidden == 1 else 'agents'} more", style="dim"))
    found.append(_line(course, _mean(course.lines), names, steps_drawn, glyphs))
    return found


def _line(course: Course, line: Line, names: int, room: int, glyphs: Glyphs) -> Text:
    """Name, assigned opinion, course and last opinion of an agent."""
    found = Text(f"{_fit(clean(line.name), names)}  {_signed(line.assigned):>8}  ")
    values = shrunk(line.values, room)
    for value in values:
        level = _level(value, course)
        found.append(*((glyphs.unknown, "dim") if level is None else (glyphs.levels[level], _COLOURS[level])))
    last = values[-1] if values else math.nan
    found.append(f"{' ' * (room - len(values))}  {'-' if math.isnan(last) else _signed(last)}", "bold")
    return found


def _level(value: float, course: Course) -> int | None:
    """Place of an opinion on the scale, from 0 to 7; None for none."""
    if math.isnan(value):
        return None
    span = course.high - course.low or 1.0
    return min(7, max(0, round(7 * (value - course.low) / span)))


def _mean(agents: Sequence[Line]) -> Line:
    """Mean opinion of those who have one, step by step."""
    values = []
    for step in zip(*(line.values for line in agents), strict=True):
        known = [value for value in step if not math.isnan(value)]
        values.append(statistics.fmean(known) if known else math.nan)
    return Line("mean", None, tuple(values))


def _signed(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:+.3g}" if value else "0"


# -- lines ---------------------------------------------------------------------------------------------------


def _fit(text: str, width: int) -> str:
    """A text cut or filled to so many columns."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return f"{set_cell_size(text, max(0, width - 3)).rstrip()}..."[:width] if width >= 3 else set_cell_size(text, width)


def _folded(text: str, width: int, style: str = "") -> list[Text]:
    """A text over as many lines as it may take."""
    parts = textwrap.wrap(
        clean(" ".join(text.split())), width, subsequent_indent="  ", max_lines=_FOLDED, placeholder=" ..."
    )
    return [Text(part, style=style) for part in parts]


def _joined(start: str, parts: Sequence[str], width: int, glyphs: Glyphs) -> list[Text]:
    """Parts in one line, or in several where there is no room; nothing without any."""
    if not parts:
        return []
    whole = start + glyphs.dot.join(parts)
    if cell_len(whole) <= width:
        return [Text(whole)]
    return [Text((start if place == 0 else " " * len(start)) + part) for place, part in enumerate(parts)]
