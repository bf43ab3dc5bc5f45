"""Writes the page of every classic model from the registry, and draws its figure.

Run: python docs/classic/generate.py [--check] [NAME ...]

Without names all pages and figures are made; with `--check` nothing is written or drawn, and what differs from the
registry is named.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opinionsim.classic import MODELS, ClassicModel, Trajectories, simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HERE = Path(__file__).resolve().parent
#: What is simulated where a model gives no example of its own.
_EXAMPLE: Mapping[str, Any] = {"n": 200, "network": "complete", "initial": "uniform", "steps": 50}
_SEED = 1
#: Simulations of a discrete model, whose course is chance.
_REPLICATES = 20
#: Points of the scale that specifications show: five, or the two that some models know.
_POINTS, _TWO_POINTS = (-2, -1, 0, 1, 2), (-1, 1)

#: Agents of a continuous model up to which each has a line; of more, parts of the range that they are counted in, the
#: share of the darkest, and the colour of single agents.
_FEW, _PARTS, _DARKEST, _AGENT = 12, 40, 0.1, "#D55E00"

#: Characters of a line of code.
_LINE = 120

#: Families of influence after Flache et al. 2017, and what makes one.
FAMILIES = {
    "assimilative": "every opinion that an agent hears attracts it, at any distance",
    "similarity-biased": "similar opinions attract, and distant ones have less influence or none",
    "repulsive": "distant opinions, or those across a negative edge, repel",
    "reinforcing": "opinions can become more extreme than any that an agent hears",
}
_SCHEMES = {
    "order": (
        "who updates when",
        {
            "random": "agents are drawn one by one, with replacement",
            "permutation": "every agent once per step, in a new random order",
            "sequential": "every agent once per step, starting with agent 0",
            "synchronous": "all agents at once, from the opinions before the step",
        },
    ),
    "pick": (
        "who is drawn first",
        {
            "listener": "an agent, then one of those it hears",
            "speaker": "an agent, then one of those that hear it",
            "edge": "a pair",
        },
    ),
    "sides": ("who of a pair updates", {"one": "the listener", "two": "both"}),
    "meets_itself": (
        "whether an agent may be drawn as its own partner on the complete graph",
        {"true": "yes", "false": "no"},
    ),
}
_CONSERVED = {
    "mean": "the mean opinion",
    "order": "the order of opinions (on the complete graph)",
}
#: Markdown that knows of no formulas takes a backslash away before punctuation; these mean the same without any.
_SPELLED = {r"\{": r"\lbrace ", r"\}": r"\rbrace ", r"\\": r"\cr ", r"\,": r"\thinspace ", r"\;": r"\thickspace "}


_LAST_NETWORKS = (
    "`found.networks` contains the final network of each run, which `found.metrics` and sweeps measure. "
    "You cannot use this model in a specification, because runs do not record which ties it moves."
)


def example_of(model: ClassicModel) -> dict[str, Any]:
    """What a model's page simulates: `n`, `network`, `initial`, `steps` and settings of the model."""
    return {**_EXAMPLE, **model.example}


def settings_of(model: ClassicModel) -> dict[str, Any]:
    """Parameters and scheme options that a model's example sets."""
    return {name: value for name, value in example_of(model).items() if name not in _EXAMPLE}


def page(model: ClassicModel) -> str:
    """The page of a model, as Markdown with formulas."""
    return "\n".join(
        [
            f"# {model.title}",
            "",
            "<!-- Written by docs/classic/generate.py from the registry. To change it, change the model's module. -->",
            "",
            _text(model.summary),
            "",
            "$$",
            _spelled(model.equation),
            "$$",
            "",
            f"![{model.title}: {_shown(model)}](images/{model.name}.png)",
            "",
            f"*{caption(model)}*",
            "",
            *_facts(model),
            *_parameters(model),
            *_scheduling(model),
            "## Limiting behaviour",
            "",
            _text(model.behaviour),
            "",
            *_rest(model),
            *_examples(model),
            "## Sources",
            "",
            *(f"- {_reference(source)}" for source in model.source),
            "",
        ]
    )


def _rest(model: ClassicModel) -> Iterator[str]:
    """When a run that lasts until it is frozen ends."""
    if model.frozen is not None:
        yield from (
            "## At rest",
            "",
            _text(f"`until: frozen` ends a run when {model.at_rest[0].lower()}{model.at_rest[1:]}"),
            "",
        )
    if model.shrinks:
        yield from (
            "Agents in a cluster keep moving closer without end, so measures must separate clusters before each is a "
            "single point. In runs until frozen on the complete graph with one epsilon for all, `clusters`, "
            "`effective_clusters` and `largest_cluster` separate them by gaps beyond epsilon, which no meeting can "
            "bridge. Otherwise, they separate them by gaps above 0.01, and `frozen` also requires that no cluster is "
            "wider than 0.01; `until: {frozen: WIDTH}` sets another width.",
            "",
        )


def _spelled(equation: str) -> str:
    for mark, word in _SPELLED.items():
        equation = equation.replace(mark, word)
    return "\n".join(line.rstrip() for line in equation.splitlines())


def _facts(model: ClassicModel) -> Iterator[str]:
    low, high = model.range
    ends = "any number" if not np.isfinite(model.range).all() else f"from {low:g} to {high:g} by default"
    opinions = f"{model.kind}, {ends}"
    opinions += {
        "two": "; only the two ends",
        "copied": "; only those present at the start",
        "any": "",
        "traits": "; `features` whole numbers, each below `traits`",
    }[model.states]
    yield from ("| | |", "|---|---|", f"| name | `{model.name}` |")
    yield f"| family | {model.family}: {FAMILIES[model.family]} |"
    yield f"| opinions | {opinions} |"
    yield f"| several dimensions | {'yes' if model.vector is not None else 'no'} |"
    if model.ties is not None:
        yield "| network | changes; must be undirected, unweighted and not complete |"
    yield f"| negative edges | {'yes' if 'signs' in model.needs else 'not allowed'} |"
    pairs = "in pairs: the model also runs on recorded pairs, and on any schedule of language-model agents"
    yield f"| agents meet | {pairs if model.update is not None else 'not in pairs, so not on recorded pairs'} |"
    if model.conserves:
        yield f"| conserved by the default scheme | {', '.join(_CONSERVED[each] for each in sorted(model.conserves))} |"
    stays = "a fixed point" if model.keeps_consensus else "not a fixed point in general"
    yield f"| consensus is | {stays} |"
    yield ""


def _parameters(model: ClassicModel) -> Iterator[str]:
    yield from ("## Parameters", "")
    if not model.declared:
        yield from ("None.", "")
        return
    yield from ("| Parameter | Symbol | Default | Valid | Meaning |", "|---|---|---|---|---|")
    scaled, star = False, " \\*"
    for name, each in model.declared.items():
        scaled |= each.scaled
        symbol = f"${each.symbol}$" if each.symbol else ""
        default = f"`{each.default if each.choices else _yaml(each.default)}`{star if each.scaled else ''}"
        valid = f"one of {', '.join(f'`{value}`' for value in each.choices)}" if each.choices else each.valid
        yield f"| `{name}` | {symbol} | {default} | {_cell(valid)} | {_cell(each.meaning)} |"
    yield ""
    if scaled:
        width = model.range[1] - model.range[0]
        yield f"\\* in units of opinion: the default is for a range of width {width:g} and scales with the range."
        yield ""


def _scheduling(model: ClassicModel) -> Iterator[str]:
    yield from ("## Scheduling", "")
    if model.schemes:
        yield from ("| Option | Value | What happens |", "|---|---|---|")
    for name, values in model.schemes.items():
        what, meanings = _SCHEMES[name]
        for place, value in enumerate(values):
            spelled = _yaml(value)
            default = " (default)" if place == 0 and len(values) > 1 else ""
            yield f"| {f'`{name}`: {what}' if place == 0 else ''} | `{spelled}`{default} | {meanings[spelled]} |"
    if model.schemes:
        yield ""
    yield "[Scheduling](index.md#scheduling) explains what a step is and why it matters who is drawn first."
    yield ""


def _examples(model: ClassicModel) -> Iterator[str]:
    example, settings = example_of(model), settings_of(model)
    yield from ("## Run it", "", "<!-- run -->", "```python", "import opinionsim as osim", "")
    yield "found = osim.classic.simulate("
    yield f'    "{model.name}",'
    for name, value in {**example, "seed": _SEED}.items():
        yield from _argument(name, value)
    yield ")"
    if model.states == "traits":
        yield f"names = {_python(list(model.measures))}"
        yield "print(found.metrics(names, 0), found.metrics(names))  # at the start, and at the end"
    else:
        yield "ends = {moment: found.opinions[0, moment] for moment in (0, -1)}"
        yield "print({moment: (float(x.mean()), float(x.std())) for moment, x in ends.items()})  # bias and diversity"
        yield 'osim.plots.save(osim.plots.trajectories(found), "trajectories.png")'
    yield from ("```", "", "At the command line:", "", "<!-- run -->", "```bash")
    words = ["opinionsim", "abm", model.name, "--agents", str(example["n"])]
    words += ["--network", _yaml(example["network"]), "--initial", _yaml(example["initial"])]
    words += ["--steps", str(example["steps"]), "--seed", str(_SEED)]
    for name, value in settings.items():
        words += ["--set", f"{name}={_yaml(value)}"]
    yield shlex.join(words)
    if model.states == "traits":
        yield from (
            "```",
            "",
            "Specifications do not support this model: traits are not opinions on a scale.",
            "",
        )
        return
    if model.ties is not None:
        yield from ("```", "", _LAST_NETWORKS, "")
        return
    drawn = "" if isinstance(example["initial"], str) else " and initial opinions are drawn"
    yield from ("```", "", f"In a specification, where opinions are in units of the scale{drawn}:", "", "```yaml")
    points = _TWO_POINTS if model.kind == "discrete" else _POINTS
    initial = example["initial"]
    if initial == "uniform" or not isinstance(initial, str):
        # Specifications name a distribution; numbers for each agent come from a persona file.
        initial = "uniform" if model.kind == "discrete" else "continuous"
    yield f"population: {{size: {example['n']}, initial_opinions: {initial}}}"
    yield f"interaction: {{kind: native, network: {_yaml(example['network'])}, steps: {example['steps']}}}"
    converted = {name: _in_units(model, name, value, points) for name, value in settings.items()}
    shown = f", parameters: {_yaml(converted)}" if converted else ""
    yield f"model: {{classic: {model.name}{shown}}}"
    yield f"scale: {{points: {list(points)}}}"
    yield from ("```", "")
    if model.update is not None:
        yield (
            "With `kind: dyadic`, or another kind of interaction, the agents meet as language-model agents do; see "
            "[classic models together with language-model agents](index.md#together-with-language-model-agents)."
        )
        yield ""


def _in_units(model: ClassicModel, name: str, value: Any, points: Sequence[int]) -> Any:
    """A setting of an example on another scale."""
    if name not in model.declared or not model.declared[name].scaled:
        return value
    width = (points[-1] - points[0]) / (model.range[1] - model.range[0])
    return round(value * width, 6)


def _reference(source: str) -> str:
    """A publication, its identifier as a link."""
    text, found, doi = source.partition("doi:")
    return f"{text}[doi:{doi}](https://doi.org/{doi})" if found else f"{text.rstrip('.')}."


def _text(text: str) -> str:
    """A text in which nothing is taken for a mark: angle brackets around a word would be a tag."""
    return re.sub(r"<(?=\w)", r"\\<", text)


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|")


def _yaml(value: Any) -> str:
    """A value as YAML writes it on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_yaml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_yaml(each) for each in value) + "]"
    if isinstance(value, str):
        # Operators and the like must not be taken for marks of the language.
        return value if value.replace("-", "").replace("_", "").isalnum() else json.dumps(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _argument(name: str, value: Any) -> Iterator[str]:
    """An argument of a call, as formatters lay it out."""
    line = f"    {name}={_python(value)},"
    if len(line) <= _LINE or not isinstance(value, Mapping):
        yield line
        return
    yield f"    {name}={{"
    for key, each in value.items():
        yield f'        "{key}": {_python(each)},'
    yield "    },"


def _python(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value).replace("'", '"')


def _shown(model: ClassicModel) -> str:
    if model.states == "traits":
        return "the largest region over time"
    return "opinions over time" if model.kind == "continuous" else "mean opinion over time"


def caption(model: ClassicModel) -> str:
    """What the figure of a model shows: also what its file states, by which a stale figure is known."""
    example = example_of(model)
    set_ = ", ".join(f"{name} = {_plain(value)}" for name, value in settings_of(model).items())
    start = f"{example['initial']} start" if isinstance(example["initial"], str) else "given start"
    network = f"network {_plain(example['network'])}"
    runs = f"{_REPLICATES} simulations" if model.kind == "discrete" else "one simulation"
    what = f"{runs.capitalize()} of {example['n']} agents, {network}, {start}, seed {_SEED}"
    return f"Evidence: equation. {what}; {set_ or 'default parameters'}."


def _plain(value: Any) -> str:
    if isinstance(value, Mapping) and "edges" in value:
        negative = sum(weight < 0 for weight in value.get("weights", ()))
        return f"of {len(value['edges'])} edges" + (f", {negative} of them negative" if negative else "")
    if isinstance(value, Mapping):
        kind = value.get("kind", "")
        rest = ", ".join(f"{name} = {_plain(each)}" for name, each in value.items() if name != "kind")
        return f"{kind} ({rest})" if rest else str(kind)
    return _yaml(value).strip('"')


def table() -> str:
    """The models by family, for the overview."""
    rows = ["| Family | Model | Name | Opinions | In pairs |", "|---|---|---|---|---|"]
    for family, what in FAMILIES.items():
        first = True
        for model in MODELS.values():
            if model.family == family:
                said = f"**{family}**: {what}" if first else ""
                first = False
                pairs = "yes" if model.update is not None else "no"
                rows.append(f"| {said} | [{model.title}]({model.name}.md) | `{model.name}` | {model.kind} | {pairs} |")
    return "\n".join(rows)


_BEGIN, _END = "<!-- models: written by generate.py -->", "<!-- end of models -->"


def overview(text: str) -> str:
    """The overview page with its table as the registry has it."""
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise SystemExit(f"index.md must hold {_BEGIN} and {_END}")
    return f"{before}{begin}\n\n<!-- pages -->\n{table()}\n\n{end}{after}"


def figure_of(model: ClassicModel) -> bytes:
    """The figure of a model as a PNG of few colours, which states what it shows."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure
    from PIL import Image, PngImagePlugin

    example = example_of(model)
    discrete = model.kind == "discrete"
    found = simulate(model, seed=_SEED, replicates=_REPLICATES if discrete else 1, **example)
    figure = Figure(figsize=(7.0, 2.7), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2.4, 1))
    draw = _draw_regions if model.states == "traits" else _draw_means if discrete else _draw_opinions
    draw(found, left)
    _draw_end(found, right, example["network"])
    buffer = BytesIO()
    figure.savefig(buffer, dpi=110)
    stated = PngImagePlugin.PngInfo()
    stated.add_text("Description", caption(model))
    small = BytesIO()
    with Image.open(buffer) as image:
        image.convert("RGB").quantize(48).save(small, "PNG", optimize=True, pnginfo=stated)
    return small.getvalue()


def _draw_opinions(found: Trajectories, ax: Axes) -> None:
    """How many agents of one simulation have which opinion, and the lines of three of them; of few agents all lines."""
    from opinionsim.plots import SHARES

    opinions, ends = found.opinions[0], _ends(found)
    number = opinions.shape[1]
    shown, title = np.arange(number), "opinion of each agent"
    if number > _FEW:
        moments = np.unique(np.linspace(0, len(found.times) - 1, 200).astype(int))
        shares = [np.histogram(opinions[moment], _PARTS, ends)[0] / number for moment in moments[:-1]]
        edges = np.linspace(*ends, _PARTS + 1)
        ax.pcolormesh(found.times[moments], edges, np.transpose(shares), cmap=SHARES, vmin=0, vmax=_DARKEST)
        shown = np.argsort(opinions[0], kind="stable")[[number // 8, number // 2, -number // 8]]
        title = f"share of agents (darkest: {100 * _DARKEST:g}% or more), and three agents"
    ax.plot(found.times, opinions[:, shown], color=_AGENT, linewidth=1.1)
    ax.set_ylim(*ends)
    _finish(ax, title)


def _ends(found: Trajectories) -> tuple[float, float]:
    """The range of opinions; of a model without one, the range in which they stay."""
    if np.isfinite(found.range).all():
        return found.range
    return float(found.opinions.min()), float(found.opinions.max()) + 1e-9


def _draw_regions(found: Trajectories, ax: Axes) -> None:
    """The share of agents in the largest region of every simulation."""
    moments = np.unique(np.geomspace(1, len(found.times), 40).astype(int)) - 1
    shares = np.array([found.metrics(["largest_region"], moment)["largest_region"] for moment in moments])
    ax.plot(found.times[moments], shares, color="#34789B", linewidth=0.9, alpha=0.75)
    ax.set_ylim(-0.02, 1.02)
    _finish(ax, "share of agents in the largest region, a line a simulation")


def _draw_means(found: Trajectories, ax: Axes) -> None:
    """The mean opinion of every simulation."""
    for run in found.opinions:
        ax.plot(found.times, run.mean(axis=1), color="#34789B", linewidth=0.9, alpha=0.75)
    ax.set_ylim(found.range[0] - 0.02, found.range[1] + 0.02)
    _finish(ax, "mean opinion, a line a simulation")


def _draw_end(found: Trajectories, ax: Axes, network: Any) -> None:
    """Where simulations end, as a histogram; of agents on a lattice a map of one that is still undecided."""
    from matplotlib.ticker import PercentFormatter

    discrete = MODELS[found.model].kind == "discrete"
    kind = network if isinstance(network, str) else network.get("kind")
    side = round(found.network.n**0.5)
    # Of a lattice without stated sides, rows and columns are as equal as they can be.
    if kind == "lattice" and side * side == found.network.n:
        from opinionsim.plots import opinion_map

        # Discrete models come to rest; what leads there is seen before.
        place = len(found.times) // 4 if discrete else -1
        title = f"{'one simulation, ' if discrete else ''}step {found.times[place]}"
        if MODELS[found.model].states == "traits":
            _draw_borders(found.opinions[0, place].reshape(side, side, -1), ax)
            title = f"traits that differ, step {found.times[place]}"
        else:
            low, high = found.range
            means = found.opinions[:, place].mean(axis=1)
            shown = found.opinions[np.abs(means - (low + high) / 2).argmin(), place]
            ax.imshow(shown.reshape(side, side), cmap=opinion_map(), vmin=low, vmax=high)
        ax.set(xticks=[], yticks=[])
        ax.set_title(title, loc="left", fontsize=9)
        return
    finals = found.final.mean(axis=1) if discrete else found.final
    ends = _ends(found)
    heights, edges = np.histogram(finals, bins=30, range=ends)
    ax.barh(edges[:-1], heights / heights.sum(), np.diff(edges), align="edge", color="#7FB0C8")
    beyond = 0.02 * (ends[1] - ends[0]) if discrete else 0
    ax.set_ylim(ends[0] - beyond, ends[1] + beyond)
    _finish(ax, "at the end", "simulations" if discrete else "agents")
    ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))


def _draw_borders(traits: np.ndarray, ax: Axes) -> None:
    """Borders of the agents of a lattice, darker where more traits (rows, columns, F) differ."""
    from matplotlib.collections import LineCollection

    across, down = ((np.diff(traits, axis=axis) != 0).mean(axis=2) for axis in (1, 0))
    upright = [((x + 1, y), (x + 1, y + 1)) for y, x in np.ndindex(across.shape)]
    level = [((x, y + 1), (x + 1, y + 1)) for y, x in np.ndindex(down.shape)]
    differ = np.concatenate([across.ravel(), down.ravel()])
    ax.add_collection(LineCollection([*upright, *level], array=differ, cmap="Greys", clim=(0, 1), linewidths=2.5))
    ax.set(xlim=(0, traits.shape[1]), ylim=(traits.shape[0], 0), aspect="equal")


def _finish(ax: Axes, title: str, x: str = "step") -> None:
    """Name and tidy axes."""
    from matplotlib.ticker import MaxNLocator

    ax.set_title(title, loc="left", fontsize=9)
    ax.set_xlabel(x, fontsize=9)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6 if x == "step" else 3, integer=x == "step"))
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8.5)


def stale(names: Sequence[str] | None = None) -> list[str]:
    """What differs from the registry, in words; figures are judged by what they state, not drawn."""
    found = [f"{path.name} belongs to no model" for path in sorted(_leftover())]
    for name, model in MODELS.items():
        if names and name not in names:
            continue
        path, image = HERE / f"{name}.md", HERE / "images" / f"{name}.png"
        if not path.exists() or path.read_text(encoding="utf-8") != page(model):
            found.append(f"{name}.md is {'stale' if path.exists() else 'missing'}")
        if not image.exists() or caption(model).encode() not in image.read_bytes():
            found.append(f"images/{name}.png is {'stale' if image.exists() else 'missing'}")
    text = (HERE / "index.md").read_text(encoding="utf-8")
    if overview(text) != text:
        found.append("the table of index.md is stale")
    return found


def _leftover() -> set[Path]:
    """Pages and figures of models there are not."""
    pages = {path for path in HERE.glob("*.md") if path.stem not in MODELS and path.name != "index.md"}
    return pages | {path for path in (HERE / "images").glob("*.png") if path.stem not in MODELS}


def main() -> None:
    """Write pages and figures, or check pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help="models; default all")
    parser.add_argument("--check", action="store_true", help="write nothing; name what differs")
    parser.add_argument("--pages", action="store_true", help="write pages, draw nothing")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(MODELS))
    if unknown:
        parser.error(f"unknown model {unknown[0]!r}; valid: {', '.join(MODELS)}")
    if given.check:
        sys.exit("\n".join(stale(given.names)) or None)
    (HERE / "images").mkdir(exist_ok=True)
    for name in given.names or MODELS:
        (HERE / f"{name}.md").write_text(page(MODELS[name]), encoding="utf-8")
        if not given.pages:
            (HERE / "images" / f"{name}.png").write_bytes(figure_of(MODELS[name]))
    index = HERE / "index.md"
    index.write_text(overview(index.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
