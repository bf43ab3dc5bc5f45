"""Set one value in the text of a specification, and leave everything else as it is written."""

from __future__ import annotations

import yaml

from opinionsim.errors import SpecError


def with_budget(text: str, name: str, value: str) -> str:
    """The text of a specification with a limit of its budget: ``calls``, ``tokens`` or ``money``.

    Raises
    ------
    SpecError
        If the text is no YAML, or the value is no number above 0.
    """
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise SpecError(f"A limit of {name} must be a number above 0; got {value!r:.40}.")
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise SpecError(f"The text is no YAML, so no limit can be set: {error}") from None
    root, missing = node, ["execution", "budget", name]
    while isinstance(node, yaml.MappingNode) and missing:
        below = next((each for key, each in node.value if key.value == missing[0]), None)
        if below is None:
            break
        node = below
        del missing[0]
    if node is None:
        raise SpecError("The text is empty, so no limit can be set.")
    start, end = node.start_mark.index, node.end_mark.index
    if not missing:
        return text[:start] + value + text[end:]
    added = "".join(f"{{{each}: " for each in missing[1:]) + value + "}" * len(missing[1:])
    line = f"{missing[0]}: {added}"
    if isinstance(node, yaml.MappingNode) and node.flow_style:
        return f"{text[: end - 1].rstrip()}{', ' if node.value else ''}{line}{text[end - 1 :]}"
    if node is root:
        return f"{text.rstrip()}\n{line}\n"
    if isinstance(node, yaml.MappingNode):
        return f"{text[:start]}{line}\n{' ' * node.start_mark.column}{text[start:]}"
    # An empty field.
    return f"{text[:start]} {{{line}}}{text[end:]}"
