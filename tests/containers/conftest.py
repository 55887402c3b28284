# SPDX-License-Identifier: MIT
import contextlib
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
sys.dont_write_bytecode = True

from lib.fixtures import *  # noqa: E402,F401,F403
from engines import LEVEL, Docker, Podman  # noqa: E402
from lib.box import new_session  # noqa: E402


@pytest.fixture(scope="module", params=[Podman, Docker], ids=["podman", "docker"])
def engine(net, request):
    with contextlib.closing(request.param(net)) as engine:
        yield engine


@pytest.fixture
def sessions(net):
    """Makes sessions whose sandboxes begin in a mode. Their names have a dash: to systemd that is a level of the tree."""
    made = []

    def make(mode):
        made.append(new_session("con-tainer"))
        net.api.create(made[-1], LEVEL[mode])
        return made[-1]

    yield make
    for session in made:
        net.api.end(session)
