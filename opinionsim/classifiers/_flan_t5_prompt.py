"""The question of the flan-t5 classifier about a statement."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from opinionsim.errors import SpecError
from opinionsim.foundation.documents import read_text
from opinionsim.foundation.streams import digest
from opinionsim.opinions import OpinionScale

#: Content of A9 in Chuang et al. 2023, in our words and for any kind of text.
_WORDING = Path(__file__).with_name("flan_t5.j2")
#: Replaces the middle of an over-long statement.
_GAP = " [...] "
#: Statement and claim with which a wording is tried.
_TRIAL = ("STATEMENT-HERE", "CLAIM-HERE")
_SURROGATE = re.compile("[\ud800-\udfff]")


def _plain(text: str) -> str:
    """The text in a form tokenizers can read: without half characters, and with the minus of T5's vocabulary."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text).replace("\N{MINUS SIGN}", "-")


class ScalePrompt:
    """A classifier prompt for one scale.

    Parameters
    ----------
    scale : OpinionScale
        The scale; its points and labels are the possible answers.
    path : str or Path, optional
        A Jinja2 template that replaces the prompt of the package, with the variables ``statement``, ``claim``,
        ``points`` (numbers) and ``anchors`` (pairs of number and label), lowest first.

    Raises
    ------
    SpecError
        If the file cannot be read, is not a valid template, or omits statement or claim.
    """

    def __init__(self, scale: OpinionScale, path: str | Path | None = None) -> None:
        self._place = "prompt" if path is None else f"prompt: {path}"
        wording = _read(_WORDING if path is None else path)
        environment = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
        )
        # A question is a function of its values.
        del environment.filters["random"], environment.globals["lipsum"]
        self._given: dict[str, Any] = {
            "points": list(scale.points),
            "anchors": list(zip(scale.points, scale.labels, strict=True)),
        }
        self.digest = digest(_plain(wording))
        try:
            self._template = environment.from_string(wording)
            trial = self(_TRIAL[1], _TRIAL[0])
        except TemplateError as error:
            raise SpecError(f"{self._place}: not a valid template: {error}") from None
        except (TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise SpecError(f"{self._place}: cannot be rendered: {error}") from None
        if not all(word in trial for word in _TRIAL):
            raise SpecError(f"{self._place}: the template must contain {{{{ statement }}}} and {{{{ claim }}}}")

    def __call__(self, claim: str, statement: str) -> str:
        """The prompt about a statement."""
        return _plain(self._template.render(claim=claim, statement=statement, **self._given))

    def shortened(self, claim: str, statement: str, kept: int) -> str:
        """The prompt about a statement shortened to its first and last `kept` / 2 characters."""
        head, tail = kept - kept // 2, kept // 2
        return self(claim, statement[:head] + _GAP + statement[len(statement) - tail :])


def _read(path: str | Path) -> str:
    try:
        return read_text(path)
    except SpecError as error:
        raise SpecError(f"prompt: {error}") from None
