"""What a kind of study declares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from opinionsim.errors import SpecError

if TYPE_CHECKING:
    import pandas as pd

    from opinionsim.registry import Part
    from opinionsim.store import DesignRow, Results, UnitRow


class StudyKind:
    """A kind of study, which a specification names in its field ``study``.

    A class that inherits from this one and is marked with ``@osim.part("study")`` is a kind of its own. Its commands
    read the specification, make units of work from it, and carry these out. They save the design (:func:`design_of`)
    and the units (:meth:`opinionsim.store.Store.save_units`). All that reads a store, from ``status`` to the archive,
    gets what it shows from here. The defaults are those of a study that keeps a row of values for each unit.

    Attributes
    ----------
    name : str
        Name in specifications and stores: that of the part.
    frames : tuple of str
        Names of the frames of an export; the first has the units.
    about : str
        What such a study is, as the end of a sentence.
    tables, figures : tuple of str
        Names of tables and figures that are shown first.
    texts : str
        Package and beginning of the name of two templates, ``_methods.txt`` and ``_odd.md``: its part of the methods
        paragraph and of the ODD document.
    """

    name: ClassVar[str] = ""
    frames: ClassVar[tuple[str, ...]] = ("units",)
    about: ClassVar[str] = "a study of units of work, which stores only their values"
    tables: ClassVar[tuple[str, ...]] = ()
    figures: ClassVar[tuple[str, ...]] = ()
    texts: ClassVar[str] = "opinionsim.report:units"

    @classmethod
    def named(cls, name: str) -> None:
        """Take the name of the part."""
        cls.name = name

    # -- work

    def takes(self, document: Mapping[str, Any]) -> bool:
        """Whether a specification without an interaction and without the field ``study`` is of this kind."""
        return False

    def commands(self) -> Mapping[str, Callable[..., None]]:
        """Functions that carry out ``run``, ``plan`` and ``preview``, by the name of the command.

        Each takes the path of a specification, the changes of ``--set``, and by name those options of the command that
        have an effect.
        """
        return {}

    # -- what its results are

    def units(self, results: Results) -> pd.DataFrame:
        """One row per replicate of a unit, in the order of the design.

        Returns
        -------
        DataFrame
            The values by which units differ (lists and mappings as JSON), ``replicate``, the stored values, ``error``
            and ``evidence``. Its ``attrs`` have what the manifest says that all units share.

        Raises
        ------
        SpecError
            If a stored value has the name of another column.
        """
        import pandas as pd

        from opinionsim.foundation.streams import canonical_json

        # Conditions are compared, which lists and mappings cannot be.
        axes = {
            name: {key: canonical_json(each) if isinstance(each, list | dict) else each for key, each in values.items()}
            for name, values in results.design_row.units
        }
        place = {name: at for at, name in enumerate(axes)}
        stored = sorted(stored_units(results), key=lambda row: (place[row.unit_id], row.replicate))
        rows = []
        for row in stored:
            own = {**axes[row.unit_id], "replicate": row.replicate}
            if both := own.keys() & row.values.keys() | {"error", "evidence"} & row.values.keys():
                raise SpecError(f"a value of a unit cannot be named {min(both)!r}, which is a column of its frame")
            rows.append({**own, **row.values, "error": row.error})
        found = pd.DataFrame(rows) if rows else pd.DataFrame(columns=[*self.axes(results), "replicate", "error"])
        found["evidence"] = results.manifest["evidence"]
        found.attrs.update(results.manifest.get("shared", {}))
        return found

    def states(self, results: Results) -> pd.Series[Any]:
        """The state of each unit, such as ``complete``."""
        return results.units["error"].eq("").map({True: "complete", False: "failed"})

    def axes(self, results: Results) -> Sequence[str]:
        """Columns of the units whose values make the conditions."""
        return list(dict.fromkeys(name for _, values in results.design_row.units for name in values))

    def frame(self, results: Results, name: str) -> pd.DataFrame:
        """One of `frames`."""
        return results.units

    def source(self, results: Results) -> Any:
        """What a figure is drawn from: the units that did not fail."""
        return results.units[results.units["error"] == ""]

    def rows(self, results: Results) -> pd.DataFrame | None:
        """The frame that ``table`` saves as CSV or prints as JSON instead of its tables; None for the tables."""
        return results.units

    # -- what is said of them

    def schema(self) -> Mapping[str, Any]:
        """JSON Schema of specifications, whose descriptions say what their fields mean."""
        return {"$defs": {}}

    def words(self, results: Results) -> dict[str, str]:
        """The design in words, by labels, beside what varies."""
        return {}

    def parts(self, results: Results) -> Iterator[tuple[str, str]]:
        """Kind and name of the parts that the study used, whose documentation says what they come from."""
        yield from ()


def stored_units(results: Results) -> list[UnitRow]:
    """Return the stored replicates of the units of a study.

    Raises
    ------
    DamagedError
        If a row, or what determines a unit, is not as it was written.
    """
    from opinionsim.store import open_store

    names = [name for name, _ in results.design_row.units]
    with open_store(results.url, write=False) as store, store.moment() as moment:
        moment.unit_keys(names)
        return list(moment.units(names))


def design_of(
    study: str,
    spec: Mapping[str, Any],
    units: Iterable[tuple[str, Mapping[str, Any]]],
    evidence: str,
    parts: Iterable[Part] = (),
    shared: Mapping[str, Any] | None = None,
    replicates: int = 1,
    **environment: Any,
) -> DesignRow:
    """Return the design of a study that keeps units.

    Parameters
    ----------
    study : str
        Name of the kind of study.
    spec : mapping of JSON values
        The resolved specification, with ``name``. Its fields ``analysis``, ``measurement`` and ``sweep``, if there are
        any, are mappings, as those of experiments.
    units : iterable of (str, mapping)
        Identity of each unit, and the values by which it differs from others, in the order of rows.
    evidence : str
        Kind of evidence of all units.
    parts : iterable of Part
        Parts of the user's own that are put on record; others are left out.
    shared : mapping of JSON values, optional
        What all units share.
    replicates : int
        How often each unit is repeated.
    **environment
        Further things that numbers depend on.
    """
    import sys

    import opinionsim
    from opinionsim.foundation.streams import canonical_json, digest
    from opinionsim.registry import told_of
    from opinionsim.specification import versions
    from opinionsim.store import DesignRow

    for field in ("analysis", "measurement", "sweep"):
        if not isinstance(spec.get(field, {}), Mapping):
            raise SpecError(f"must be a mapping, as in experiments; got {spec[field]!r:.60}", field)
    listed = [[name, dict(values)] for name, values in units]
    made = {
        "opinionsim": opinionsim.__version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "packages": versions(),
        **environment,
        "parts": told_of(parts),
    }
    manifest = {
        "study": study,
        "evidence": evidence,
        "units": listed,
        "replicates": replicates,
        "shared": shared or {},
        "environment": made,
    }
    identity = digest(canonical_json(sorted(name for name, _ in listed)))
    return DesignRow(digest(f"experiment:{spec['name']}"), str(spec["name"]), identity, dict(spec), manifest)
