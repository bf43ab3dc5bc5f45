"""What a result rests on, in words."""

from __future__ import annotations

from opinionsim.metrics import played_by


def test_players_and_equations_are_told_apart() -> None:
    assert played_by(["scripted", "scripted"], ["scripted", "scripted"]) == ""
    assert played_by(["openai:a", "scripted"], ["scripted", "scripted"]) == "agents played by openai:a, scripted"
    assert played_by(["deffuant"], ["equation"]) == "equation: deffuant"
    mixed = played_by(["openai:a", "deffuant", "voter"], ["model", "equation", "equation"])
    assert mixed == "agents played by openai:a; equations: deffuant, voter"
