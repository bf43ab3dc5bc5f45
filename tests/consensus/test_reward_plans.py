"""What `plan` says of a reward model that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support.command import invoked
from tests.support.running import SMALL


@pytest.mark.parametrize(
    ("model", "code", "said"), [("", 2, "model must be text"), ("gone", 0, "there is no such folder")]
)
def test_a_plan_says_what_is_wrong_with_a_reward_model(tmp_path: Path, model: str, code: int, said: str) -> None:
    spec = {**SMALL, "measurement": {"classifier": {"name": "reward", "options": {"model": model}}}}
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    done = invoked("plan", tmp_path / "spec.yaml")
    assert done.exit_code == code
    assert said in " ".join(done.output.split())
