"""The engine: runs any schedule out of order with exactly the sequential result.

A turn starts as soon as everything it depends on is there; among turns that wait for a call slot the one
with the longest remaining path goes first. The engine knows actors, turns and messages, and neither chat
models nor opinions.
"""

from opinionsim.engine._contracts import Actor, Publish, Rate, TurnCalls, Witness, calls_per_event
from opinionsim.engine._engine import Engine
from opinionsim.engine._graph import TurnGraph

__all__ = ["Actor", "Engine", "Publish", "Rate", "TurnCalls", "TurnGraph", "Witness", "calls_per_event"]
