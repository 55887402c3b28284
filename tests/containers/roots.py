# SPDX-License-Identifier: MIT
"""Root file systems that keep what their programs trust where the systems of the field keep it. All of Debian's packages: what differs
is where the files are, and where OpenSSL, which Debian has look into /usr/lib/ssl, is led to by a link, as those systems' own is
built to look."""
import os
import pathlib
import shutil

from lib import base

CACHE = pathlib.Path(os.environ.get("NETPAWL_CACHE", "/var/cache/netpawl-test"))  # made once, and kept outside of the repository

JRE = "/usr/lib/jvm/java-17-openjdk-amd64"
BUNDLE = "etc/ssl/certs/ca-certificates.crt"


def debootstrap(name, packages, *options):
    """A root file system with these packages of Debian's and what they need."""
    root, done, packages = CACHE / name, CACHE / f"{name}.done", " ".join(sorted(packages))
    if not done.exists() or done.read_text() != packages:
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        more = [f"--include={packages.replace(' ', ',')}"] if packages else []  # an empty list is an error
        base.sh("debootstrap", "--variant=minbase", *more, *options, "bookworm", root, timeout=1800)
        done.write_text(packages)
    return root


def debian_root():
    return debootstrap("debian-root", ["ca-certificates", "curl", "wget", "python3", "openssl"])


def java_root():
    return debootstrap("java-root", ["ca-certificates", "curl", "openjdk-17-jre-headless"])


def libraries(programs):
    """What the loader opens for them, in Debian's root."""
    out = base.sh("chroot", debian_root(), "ldd", *programs).stdout.split()
    return sorted({w for w in out if w.startswith("/") and not w.endswith(":")})


def programs_copy(where, *programs):
    source = debian_root()
    python = "/usr/bin/python3" in programs
    extensions = [f"/{p.relative_to(source)}" for p in (source / "usr/lib/python3.11/lib-dynload").glob("*.so")] if python else []
    for path in [*programs, *libraries([*programs, *extensions])]:
        to = where / path.lstrip("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2((source / path.lstrip("/")).resolve(), to)
    if python:
        shutil.copytree(source / "usr/lib/python3.11", where / "usr/lib/python3.11", symlinks=True,
                        ignore=shutil.ignore_patterns("__pycache__", "test", "config-*", "ensurepip", "idlelib", "sitecustomize.py"))


def file_put(where, path, source=BUNDLE):
    to = where / path.lstrip("/")
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(debian_root() / source, to)


def link_put(where, path, target):
    link = where / path.lstrip("/")
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)


def small(where, *programs):
    for name in ("proc", "sys", "dev", "tmp", "run", "etc"):
        (where / name).mkdir(parents=True)
    (where / "etc/passwd").write_text("root:x:0:0:root:/:/bin/sh\n")
    (where / "etc/group").write_text("root:x:0:\n")
    programs_copy(where, *programs)


def pack(root, to):
    """As a tar. Its files are links that other tests make and remove meanwhile: to tar they change (1)."""
    p = base.sh("tar", "-C", root, "-cf", to, ".", check=False, timeout=300)
    assert p.returncode in (0, 1), p.stderr


# -- what they are ------------------------------------------------------------------------------------------

def debian(where):
    base.sh("cp", "-al", debian_root(), where, timeout=120)


def busybox(where):
    """Its own wget leaves TLS to openssl, which it finds beside itself. There is no bundle at all."""
    small(where, "/usr/bin/openssl")
    (where / "bin").mkdir(exist_ok=True)
    shutil.copy2(shutil.which("busybox"), where / "bin/busybox")
    for applet in ("sh", "wget", "cat", "ls"):
        link_put(where, f"/bin/{applet}", "busybox")


def alpine(where):
    small(where, "/usr/bin/curl", "/usr/bin/python3")
    file_put(where, BUNDLE)
    link_put(where, "/etc/ssl/cert.pem", "certs/ca-certificates.crt")
    link_put(where, "/usr/lib/ssl", "../../etc/ssl")


def rhel(where):
    """The first path of each is a link to the second there."""
    small(where, "/usr/bin/python3", "/usr/bin/wget")
    file_put(where, "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem")
    link_put(where, "/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem")
    link_put(where, "/etc/pki/tls/cert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem")
    link_put(where, "/etc/ssl/certs", "../pki/tls/certs")
    link_put(where, "/usr/lib/ssl", "../../etc/pki/tls")


def distroless(where):
    """One program and one bundle, and no shell."""
    small(where, "/usr/bin/curl")
    file_put(where, BUNDLE)
    assert not [p for p in where.rglob("*sh") if p.name in ("sh", "bash", "dash")]


def java(where):
    """Debian's: the runtime's cacerts is a link to the system's."""
    base.sh("cp", "-al", java_root(), where, timeout=120)
    assert (where / JRE.lstrip("/") / "lib/security/cacerts").is_symlink() and (where / "etc/ssl/certs/java/cacerts").exists()


def java_rhel(where):
    java(where)
    store = where / "etc/pki/ca-trust/extracted/java/cacerts"
    store.parent.mkdir(parents=True)
    shutil.copy2(where / "etc/ssl/certs/java/cacerts", store)
    shutil.rmtree(where / "etc/ssl/certs/java")
    cacerts = where / JRE.lstrip("/") / "lib/security/cacerts"
    cacerts.unlink()
    cacerts.symlink_to("/etc/pki/ca-trust/extracted/java/cacerts")


def java_own(where):
    """A runtime that was unpacked somewhere, with a store of its own in it: nothing but the variable leads it elsewhere."""
    java(where)
    cacerts = where / JRE.lstrip("/") / "lib/security/cacerts"
    cacerts.unlink()
    shutil.copy2(where / "etc/ssl/certs/java/cacerts", cacerts)
