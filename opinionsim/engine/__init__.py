"""The engine: runs any schedule out of order with exactly the sequential result.

A turn starts as soon as everything it depends on is there; among turns that wait for a call slot the one
with the longest remaining path goes first. The engine knows actors, turns and messages, and neither chat
models nor opinions.
"""

from opinionsim.engine._contracts import (
    Actor as Actor,
    Publish as Publish,
    Rate as Rate,
    TurnCalls as TurnCalls,
    Witness as Witness,
    calls_per_event as calls_per_event,
)
from opinionsim.engine._critical_path import CriticalPath as CriticalPath, critical_path as critical_path
from opinionsim.engine._engine import Engine as Engine, relayed as relayed
from opinionsim.engine._graph import TurnGraph as TurnGraph
