"""The parts that a specification or a command can name: built-in parts by name, parts of users by import path.

A part is a class or a function that is marked with :func:`part`, which registers it here, or a declaration, which
states its kind itself. The kind determines what the part is for. Each folder of the package names its parts in
``parts.toml``; they are loaded when they are used.
"""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.registry._own_folder import search_folder as search_folder
    from opinionsim.registry._part_fields import KindModel as KindModel, NamedPart as NamedPart, Options as Options
    from opinionsim.registry._parts import (
        RAISED as RAISED,
        Catalogue as Catalogue,
        Part as Part,
        blamed as blamed,
        built_in as built_in,
        described as described,
        find as find,
        installed as installed,
        is_path as is_path,
        known as known,
        loaded as loaded,
        name_of as name_of,
        ordinary as ordinary,
        part as part,
        part_at as part_at,
        raised as raised,
        summary as summary,
        told_of as told_of,
    )
    from opinionsim.registry._tables import (
        AGENTS as AGENTS,
        KINDS as KINDS,
        Place as Place,
        general as general,
        names as names,
        places as places,
        serving as serving,
    )

__getattr__, __dir__ = on_first_use(__name__)
