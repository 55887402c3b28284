# SPDX-License-Identifier: MIT
"""No sandbox reaches the console, in no mode and by no name of the host: not its port and not its unix socket. The control is the same
dial from outside of a sandbox, which is answered."""
import pytest

from lib import base
from lib.console import Browser, Console
from lib.world import HOST4, HOST6

MODES = ["FULL", "PROXIED", "NONE"]
WAYS = [(4, "127.0.0.1"), (4, "127.1.2.3"), (4, "0.0.0.0"), (4, HOST4), (6, "::ffff:127.0.0.1"), (6, "::ffff:" + HOST4), (6, "::1"), (6, HOST6)]


@pytest.fixture(scope="module")
def console(daemon):
    """At an address and a port that a sandbox may well guess."""
    with Console(daemon, "--listen", "127.0.0.1:8080") as c:
        yield c


def ask(agent, family, addr, port, host):
    """What came back of a request for the page: bytes, or None when there was no way."""
    request = f"GET / HTTP/1.0\r\nHost: {host}\r\n\r\n"
    return agent.try_("dial", family=family, addr=addr, port=port, data=request, recv=200, timeout=5)


def test_the_control_gets_the_page(world, console):
    assert ask(world.outside, 4, "127.0.0.1", console.port, console.host) == "ok"
    assert ask(world.outside, 6, "::ffff:127.0.0.1", console.port, console.host) == "ok"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("family, addr", WAYS)
def test_a_sandbox_does_not(pool, console, mode, family, addr):
    box = pool(mode)
    assert ask(box.agent, family, addr, console.port, console.host) != "ok"
    assert ask(box.agent, family, addr, console.port, "evil.example") != "ok"


@pytest.mark.parametrize("mode", MODES)
def test_not_with_a_token_either(pool, console, mode):
    """A token that leaked into a sandbox is worth nothing there; outside it still is."""
    box = pool(mode)
    console.another()
    body = '{"token":"%s"}' % console.token()
    request = (f"POST /console/login HTTP/1.0\r\nHost: {console.host}\r\nOrigin: {console.origin}\r\nContent-Type: application/json\r\n"
               f"Content-Length: {len(body)}\r\n\r\n{body}")
    assert box.agent.try_("dial", family=4, addr="127.0.0.1", port=console.port, data=request, recv=200, timeout=5) != "ok"
    assert Browser(console).login()[0] == 200


def test_a_name_that_leads_to_loopback_is_no_way_in(world, console):
    """DNS rebinding: a browser outside of a sandbox, on a page of evil.example whose name has become 127.0.0.1. It gets there, and
    is refused for the name that it calls."""
    url = f"http://evil.example:{console.port}/"
    answer = base.sh(*world.enter(), "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--resolve", f"evil.example:{console.port}:127.0.0.1", url,
                     env=base.env(no_proxy="*")).stdout
    own = base.sh(*world.enter(), "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", console.origin + "/", env=base.env(no_proxy="*")).stdout
    assert (answer if isinstance(answer, str) else answer.decode()).strip() == "403"
    assert (own if isinstance(own, str) else own.decode()).strip() == "200"


@pytest.mark.parametrize("mode", MODES)
def test_nor_is_its_unix_socket(pool, daemon, world, mode):
    box = pool(mode)
    where = world.dir / "console.sock"
    with Console(daemon, "--listen", f"unix:{where}", "--url", "https://console.example"):
        where.chmod(0o666)
        assert world.outside.try_("dial", family="unix", addr=str(where), data="GET / HTTP/1.0\r\nHost: console.example\r\n\r\n", recv=100) == "ok"
        assert box.agent.try_("dial", family="unix", addr=str(where), data="GET / HTTP/1.0\r\nHost: console.example\r\n\r\n", recv=100) != "ok"
