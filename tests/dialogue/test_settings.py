"""The form of settings of a room."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import opinionsim as osim
from tests.support.rooms import Browser, room


def test_settings_are_those_of_a_room_and_of_its_roles(spec: Callable[..., Path], tmp_path: Path) -> None:
    with room(spec(), tmp_path) as server:
        owner = Browser(server)
        owner.come_in(server.link)
        page = owner.ask("/settings").text
        inputs = re.findall(r'<input id="s\d+" name="interaction\.(\w+)"', page)
        assert inputs == ["steps", "every", "unheard", "words", "analyze_every"]
        texts = re.findall(r'<textarea id="s\d+" name="roles\.([\w.]+)"', page)
        assert sorted(texts) == ["analyzer.system", "analyzer.task", "moderator.system", "moderator.task"]
        assert owner.ask("/settings", {"do": "forecast", "interaction.every": "many"}).status == 400
        given = {"roles.moderator.model.name": "openai:gpt-4o", "roles.moderator.system": "Lead."}
        told = owner.ask("/settings", {"do": "save", "name": "led", "interaction.every": "2", **given}).text
    path = re.search(r"Saved as (\S+\.yaml)", told)
    assert path is not None, told
    saved = osim.load_experiment(path[1]).spec
    assert saved.interaction.every == 2  # type: ignore[attr-defined]
    assert (saved.roles["moderator"].system, saved.roles["moderator"].model.name) == ("Lead.", "openai:gpt-4o")  # type: ignore[union-attr]
