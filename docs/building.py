"""What the site adds to Markdown: navigation from lists, the output of code, notebooks, and formulas.

Marks are comments, so that a page reads well wherever its file is shown:

- `<!-- run -->` above a block of code: the block works as it stands. The build runs it on the pages that conf.py names;
  the tests run it on all others.
- `<!-- pages -->` above a table or list: the pages that its rows link to stand below this one in the navigation.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import textwrap
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from fnmatch import fnmatchcase
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from PIL import Image
from running import run
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.writers.html5 import HTML5Translator

#: Width of the terminal that commands print to.
_COLUMNS = 100
RUN = re.compile(r"^<!-- run -->\n```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_PAGES = re.compile(r"^<!-- pages -->\n(?P<rows>.*?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\((?P<page>[^):#]+\.(?:md|py))\)")
#: A link whose text is the name of the file: the site puts the title of the page or section there.
_NAMED = re.compile(r"\[[\w/.-]+\.md\]\((?=[^):\s]+\.md)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def notebook(text: str) -> str:
    """Markdown of a notebook in the percent format of jupytext: cells of text as they are, and code to be run."""
    parts = []
    for cell in text.split("\n# %%")[1:]:
        kind, _, body = cell.partition("\n")
        if "[markdown]" in kind:
            parts.append(re.sub(r"^# ?", "", body.strip(), flags=re.MULTILINE))
        else:
            parts.append(f"<!-- run -->\n```python\n{body.strip()}\n```")
    return "\n\n".join(parts) + "\n"


def linked(rows: str) -> list[str]:
    """The first page that each row of a table or list links to."""
    return [found["page"] for row in rows.splitlines() if (found := _LINK.search(row))]


def with_navigation(text: str) -> str:
    """The text with a hidden table of contents behind each list of pages, under the heading above it."""

    def contents(found: re.Match[str]) -> str:
        caption = _HEADING.findall(text[: found.start()])[-1]
        pages = "\n".join(page.rpartition(".")[0] for page in linked(found["rows"]))
        return f"{found['rows']}\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n```\n\n"

    return _PAGES.sub(contents, text)


class Outputs:
    """What blocks of pages printed and drew: started together, each page in a process and an empty folder.

    Parameters
    ----------
    app : Sphinx
        The application; pictures are kept beside its doctrees.
    """

    def __init__(self, app: Sphinx) -> None:
        self._app = app
        self._pool = ThreadPoolExecutor(os.cpu_count())
        # What is set here is known to the process that all others are forked from, which begins with the first page.
        os.environ.update(MPLBACKEND="Agg", COLUMNS=str(_COLUMNS), NO_COLOR="1", PYTHONPATH=str(Path(__file__).parent))
        self._forks = get_context("forkserver")
        self._forks.set_forkserver_preload(["__main__", "running"])
        self._running: dict[str, Future[list[dict[str, Any]]]] = {}

    def start(self, page: str) -> None:
        """Begin to run the blocks of a page."""
        self._running[page] = self._pool.submit(self._run, page)

    def _run(self, page: str) -> list[dict[str, Any]]:
        text = read(self._app.env, page)
        kept = Path(self._app.doctreedir, "figures", page)
        blocks = [found.groupdict() for found in RUN.finditer(text)]
        with TemporaryDirectory() as folder, ProcessPoolExecutor(1, self._forks) as process:
            try:
                told = process.submit(run, blocks, folder).result()
            except Exception as error:
                raise ExtensionError(f"{page}: {str(error.__cause__ or error)[-3000:]}") from error
            shutil.rmtree(kept, ignore_errors=True)
            for number, block in enumerate(told):
                (kept / str(number)).mkdir(parents=True)
                block["figures"] = [shutil.copy(Path(folder, name), kept / str(number)) for name in block["figures"]]
        return told

    def put(self, page: str, text: str) -> str:
        """The text of a page with what each of its blocks printed and drew below it."""
        if page not in self._running:
            return text
        told = iter(self._running.pop(page).result())
        return RUN.sub(lambda found: found[0] + self._shown(page, next(told)), text)

    def _shown(self, page: str, block: dict[str, Any]) -> str:
        shown = ""
        if block["text"].strip():
            text = "\n".join(_folded(line) for line in block["text"].rstrip().splitlines())
            shown += f"\n\n`````{{code-block}} text\n:class: output\n\n{text}\n`````\n"
        for figure in block["figures"]:
            with Image.open(figure) as image:
                said = re.sub(r"[\[\]\s]+", " ", str(image.info.get("Description", Path(figure).stem)))
            shown += f"\n\n![{said}]({os.path.relpath(figure, Path(self._app.srcdir, page).parent)})\n"
        return shown


def _folded(line: str) -> str:
    """A line as a terminal shows it: prose broken where it is full, a row of a table as it is."""
    return textwrap.fill(line, _COLUMNS, break_on_hyphens=False) if len(line) > _COLUMNS else line


def read(env: BuildEnvironment, page: str) -> str:
    """The Markdown of a page, a notebook's too."""
    path = env.doc2path(page)
    text = path.read_text(encoding="utf-8")
    return notebook(text) if path.suffix == ".py" else text


def _begin(app: Sphinx, env: BuildEnvironment, pages: list[str]) -> None:
    for page in pages:
        if any(fnmatchcase(page, pattern) for pattern in app.config.run_pages) and RUN.search(read(env, page)):
            app.outputs.start(page)  # type: ignore[attr-defined]


def _source(app: Sphinx, page: str, content: list[str]) -> None:
    text = notebook(content[0]) if app.env.doc2path(page).suffix == ".py" else content[0]
    text = with_navigation(text)

    def program(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), found[1]))
        return found[0] if fnmatchcase(target, "notebooks/*.py") else f"](path:{found[1]})"

    text = re.sub(r"\]\(([^):\s]+\.py)\)", program, text)
    text = _NAMED.sub("[](", text)
    content[0] = app.outputs.put(page, text)  # type: ignore[attr-defined]


def _formula(self: HTML5Translator, node: nodes.Element) -> None:
    """Write a formula as MathML, which browsers draw by themselves."""
    block = isinstance(node, nodes.math_block)
    # Docutils reads these two by other names.
    drawn = tex2mathml(node.astext().replace(r"\cr", r"\\").replace(r"\dots", r"\ldots"), block)
    self.body.append(f"<div class='math'>{drawn}</div>" if block else drawn)
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all of it."""
    app.add_config_value("run_pages", [], "env")
    app.outputs = Outputs(app)  # type: ignore[attr-defined]
    app.connect("env-before-read-docs", _begin)
    app.connect("source-read", _source)
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))
    return {"parallel_read_safe": False}
