"""Carry out, resume and replay runs, on one machine or many."""

from opinionsim.running._carry_out import run as run, under_way as under_way
from opinionsim.running._cluster import Cluster as Cluster
from opinionsim.running._context import Advance as Advance, Shared as Shared, Summary as Summary
from opinionsim.running._executors import LocalExecutor as LocalExecutor
from opinionsim.running._invocation import Invocation as Invocation, default_store as default_store
from opinionsim.running._replay import replay as replay
from opinionsim.running._runner import Runner as Runner
from opinionsim.running._taken_over import SOURCE as SOURCE
