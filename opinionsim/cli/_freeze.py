"""The command freeze: what a study will do, fixed before its confirmatory runs."""

from __future__ import annotations

import json
from pathlib import Path

from opinionsim.cli._console import note, say
from opinionsim.cli._options import Changes, Prompts, Spec, read_spec
from opinionsim.cli._run import StoreOption, store_of
from opinionsim.errors import SpecError


def freeze(
    spec: Spec, out: Path | None = None, store: StoreOption = None, changes: Changes = None, prompts: Prompts = None
) -> None:
    """Fix design, analysis, prompts and models before the runs; write what to run and a preregistration form.

    Parameters
    ----------
    out : FILE
        Where to write what is frozen, as STUDY.frozen.json; the form goes beside it. Default: NAME.frozen.json.
    """
    from opinionsim.report import freeze, preregistration

    experiment = read_spec(spec, changes, prompts)
    name = experiment.spec.name
    file = out or Path(f"{name}.frozen.json")
    form = file.with_name(f"{file.name.removesuffix('.json').removesuffix('.frozen')}-preregistration.md")
    for path in (file, form):
        if path.exists():
            raise SpecError(f"{path} is there already, and what is frozen is never replaced; name another with --out")
    frozen = freeze(experiment)
    text = preregistration(frozen, store_of(experiment, store))
    file.write_text(json.dumps(frozen, indent=1, ensure_ascii=False), encoding="utf-8")
    form.write_text(text, encoding="utf-8")
    say(f"{file}\n{form}")
    note(f"Fill in what only you can say in {form}, deposit both files, and then: opinionsim run {file}")
