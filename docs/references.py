"""The generated part of docs/references.md: run ``python docs/references.py`` to renew it."""

from __future__ import annotations

from pathlib import Path

from opinionsim.foundation.bibliography import bibliography

_START = "<!-- from the bibliography: run python docs/references.py -->"


def renewed(page: str) -> str:
    """A page with all publications of the package below the mark, by key."""
    lines = []
    for key, work in sorted(bibliography().items()):
        text, _, doi = work.text.partition("doi:")
        link = f"[doi:{doi}](https://doi.org/{doi})" if doi else ""
        lines.append(f'- <a id="{key}"></a>`{key}`: {text}{link} *({work.fields["note"]})*')
    return "\n".join([page.partition(_START)[0].rstrip(), "", _START, "", *lines, ""])


if __name__ == "__main__":
    target = Path(__file__).with_name("references.md")
    target.write_text(renewed(target.read_text(encoding="utf-8")), encoding="utf-8")
