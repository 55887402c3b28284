# SPDX-License-Identifier: MIT
"""A database by its name: PostgreSQL's own client and server, with and without TLS. The rule's port, and no other."""
import os
import pathlib
import pwd
import signal
import subprocess

import pytest

from lib import base
from lib.inspected import inspected
from lib.world import FAR

POLICY = """version: 1
rules:
  - allow: warehouse.corp.test:5432
"""
PORT, OTHER = 5432, 5433


class Server:
    """A cluster in the far world."""

    def __init__(self, net):
        programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
        if not programs:
            pytest.skip("postgresql is not installed")
        self.dir, self.process = base.tempdir("postgres"), None
        cert, key = net.origins.authority.leaf("warehouse.corp.test")
        data, user = self.dir / "data", pwd.getpwnam("nobody")
        for source, name in ((cert, "server.crt"), (key, "server.key")):
            (self.dir / name).write_bytes(source.read_bytes())
            (self.dir / name).chmod(0o600)
        for path in (self.dir, *self.dir.iterdir()):
            os.chown(path, user.pw_uid, user.pw_gid)
        run = ["setpriv", "--reuid", "nobody", "--regid", str(user.pw_gid), "--clear-groups", "--"]
        base.sh(*run, programs[-1] / "initdb", "-D", data, "-U", "agent", "--auth=trust", "--no-sync", "-E", "UTF8",
                "--locale=C", timeout=60, cwd=self.dir)
        with open(data / "pg_hba.conf", "a") as f:
            f.write("host all all 0.0.0.0/0 trust\n")
        settings = {"listen_addresses": FAR[4], "port": PORT, "unix_socket_directories": self.dir, "fsync": "off", "ssl": "on",
                    "ssl_cert_file": self.dir / "server.crt", "ssl_key_file": self.dir / "server.key"}
        words = [w for k, v in settings.items() for w in ("-c", f"{k}={v}")]
        argv = [*net.world.enter(net.world.far), *run, programs[-1] / "postgres", "-D", data, *words]
        self.process = base.popen([str(a) for a in argv], cwd=self.dir, stdin=subprocess.DEVNULL, stdout=open(self.dir / "log", "ab"),
                                  stderr=subprocess.STDOUT)
        ready = lambda: net.control("psql", f"host={FAR[4]} user=agent dbname=postgres", "-c", "select 1").returncode == 0
        assert base.eventually(ready, 30), (self.dir / "log").read_text()[-2000:]

    def close(self):
        if self.process:
            base.reap(self.process, signal.SIGINT)
        base.drop_tempdir(self.dir)


@pytest.fixture(scope="module")
def net():
    with inspected(policy=POLICY) as i:
        yield i


@pytest.fixture(scope="module")
def server(net):
    s = Server(net)
    yield s
    s.close()


def psql(net, where, *words, run=None):
    return (run or net.run)("psql", "-X", "-At", f"user=agent dbname=postgres connect_timeout=10 {where}", *words)


@pytest.mark.parametrize("mode", ["disable", "require", "verify-full"])
def test_by_name(net, server, mode):
    """The certificate that the client sees is the server's own: nobody looks at what is sent."""
    where = f"host=warehouse.corp.test sslmode={mode} sslrootcert={net.origins.authority.pem}"
    p = psql(net, where, "-c", "select ssl from pg_stat_ssl where pid = pg_backend_pid()")
    assert p.returncode == 0 and p.stdout == ("f\n" if mode == "disable" else "t\n"), p
    p = psql(net, where, "-c", "select count(*), sum(length(repeat('x', 1000))) from generate_series(1, 20000)", "-c",
             "copy (select repeat('y', 1000) from generate_series(1, 5000)) to stdout")
    assert p.returncode == 0 and p.stdout == "20000|20000000\n" + ("y" * 1000 + "\n") * 5000, (p.returncode, p.stderr, len(p.stdout))


def test_no_other_port_and_no_other_name(net, server):
    net.world.world.call("listen", keep="other", family=4, addr=FAR[4], port=OTHER)
    try:
        assert net.world.outside.try_("dial", family=4, addr=FAR[4], port=OTHER, data="x", recv=1) == "ok"  # the control
        net.world.settle()
        with net.world.watch() as watch:
            p = psql(net, f"host=warehouse.corp.test port={OTHER}")
            assert p.returncode == 2 and "server closed the connection" in p.stderr or "reset" in p.stderr, p
            p = psql(net, "host=backup.corp.test")
            assert p.returncode == 2 and "could not translate host name" in p.stderr, p
            p = psql(net, f"host={FAR[4]}")
            assert p.returncode == 2 and "Connection refused" in p.stderr, p
        watch.nothing()
        assert psql(net, f"host={FAR[4]}", "-c", "select 1", run=net.control).stdout == "1\n"  # the control
    finally:
        net.world.world.call("close", keep="other")
