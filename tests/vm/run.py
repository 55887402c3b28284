#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the gate on other kernels: boots each in an emulated machine without a network and reads what tests/vm/init says.

    run.py [SERIES[-nolsm]...]  default: 6.1 6.12 6.12-nolsm, which has no BPF among its security modules. Needs netpawld, netpawl, netpawl-run, netpawl-inspect, netpawl-init and tests/vm/check in $NETPAWL_BUILD
"""
import gzip
import lzma
import os
import pathlib
import re
import select
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("NETPAWL_BUILD", HERE.parent.parent / "build")).resolve()
OLD = pathlib.Path(os.environ.get("NETPAWL_OLD_BUILD", "/nonexistent"))  # without it there is no upgrade to look at
CACHE = HERE.parent.parent / "build" / "vm"
SERIES = ["6.1", "6.12", "6.12-nolsm"]
MODULES = ["veth", "dummy", "sch_ingress", "cls_bpf", "tcp_diag", "udp_diag", "loop", "quota_v2",
           "nft_masq", "nft_chain_nat", "nft_fib_inet", "nft_ct", "nft_connlimit"]  # of ways out
TOOLS = {"ip": "/bin/ip", "tc": "/sbin/tc", "bpftool": "/usr/sbin/bpftool"}
TIMEOUT = int(os.environ.get("NETPAWL_VM_TIMEOUT", 900))  # seconds for one machine; on an idle host it takes about 60


def sh(*argv, **more):
    return subprocess.run([str(a) for a in argv], check=True, **more)


def output(*argv):
    return sh(*argv, stdout=subprocess.PIPE, text=True).stdout


def newest_package(series):
    """The newest signed cloud kernel of a series that apt knows."""
    pattern = re.compile(rf"linux-image-({re.escape(series)}\.[0-9][^ ]*)-cloud-amd64")
    found = [n for n in output("apt-cache", "pkgnames", f"linux-image-{series}.").split() if pattern.fullmatch(n)]
    if not found:
        sys.exit(f"vm: apt knows no linux-image-{series}.*-cloud-amd64; run apt-get update")
    return max(found, key=lambda name: [int(n) for n in re.findall(r"\d+", name)])


def kernel_tree(series):
    """Downloads and unpacks a kernel, once. Returns its tree and its release."""
    package = newest_package(series)
    tree, release = CACHE / package, package[len("linux-image-"):]
    if not tree.exists():
        partial = CACHE / f"{package}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        sh("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package, cwd=partial, stdout=subprocess.DEVNULL)
        deb = next(partial.glob("*.deb"))
        sh("dpkg", "-x", deb, partial)
        deb.unlink()
        sh("depmod", "-b", partial, release)
        partial.rename(tree)
    return tree, release


def copy_modules(tree, release, root):
    """The modules, unpacked, and `modules/order`: the order to load them in."""
    source = tree / "lib" / "modules" / release
    depends = dict(line.split(":") for line in (source / "modules.dep").read_text().splitlines())
    order = []
    for path in sorted(depends):
        if pathlib.Path(path).name.split(".")[0] in MODULES:
            order += [p for p in reversed([path, *depends[path].split()]) if p not in order]
    (root / "modules").mkdir()
    names = []
    for path in order:
        data = (source / path).read_bytes()
        names.append(pathlib.Path(path).name.split(".")[0] + ".ko")
        (root / "modules" / names[-1]).write_bytes(lzma.decompress(data) if path.endswith(".xz") else data)
    (root / "modules" / "order").write_text("\n".join(names) + "\n")


def copy_program(source, root, to):
    """A program and the libraries that it names."""
    to = root / to.lstrip("/")
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, to)
    linked = subprocess.run(["ldd", str(source)], capture_output=True, text=True)
    for library in re.findall(r"(/\S+) \(0x", linked.stdout):
        target = root / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copy(library, target)


def make_initramfs(tree, release, root):
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("bin", "sbin", "dev", "proc", "sys", "run", "tmp", "etc", "var/lib", "vm", "usr/bin", "usr/sbin"):
        (root / folder).mkdir(parents=True)
    (root / "etc" / "passwd").write_text("root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")
    (root / "etc" / "resolv.conf").write_text("nameserver 10.9.0.2\n")
    # the inspector asks for some certificate to trust; it dials nobody here
    sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=vm",
       "-keyout", "/dev/null", "-out", root / "etc" / "roots.pem", stderr=subprocess.DEVNULL)
    copy_program("/bin/busybox", root, "/bin/busybox")
    for name, path in TOOLS.items():
        copy_program(shutil.which(name, path=os.defpath + ":/sbin:/usr/sbin"), root, path)
    for name in ("netpawld", "netpawl", "netpawl-run", "netpawl-inspect", "netpawl-decide", "netpawl-init"):
        copy_program(BUILD / name, root, f"/usr/sbin/{name}")
        if (OLD / name).exists():
            copy_program(OLD / name, root, f"/old/{name}")
    (root / "etc" / "policy.yaml").write_text("version: 1\nsandbox:\n  binds: [/vm, /tmp]\n")
    copy_program(BUILD / "tests" / "vm" / "check", root, "/vm/check")
    # workspaces on a file system with project quotas, which the kernel that tests usually run on may not know
    sh("mkfs.ext4", "-q", "-O", "quota,project", "-E", "quotatype=prjquota", root / "data.img", "16M")
    shutil.copy(HERE / "init", root / "init")
    os.chmod(root / "init", 0o755)
    copy_modules(tree, release, root)
    names = "\n".join(str(p.relative_to(root)) for p in sorted(root.rglob("*")))
    packed = sh("cpio", "-o", "-H", "newc", "-R", "0:0", "--quiet", cwd=root, input=names.encode(),
                stdout=subprocess.PIPE).stdout
    image = root.with_name(f"{root.name}.cpio.gz")
    image.write_bytes(gzip.compress(packed, 1))
    return image


def boot(kernel, image, words):
    """Lines of the machine's console, as they come; ends with the machine or after TIMEOUT."""
    p = subprocess.Popen(
        ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", "768", "-nographic", "-no-reboot", "-net", "none",
         "-kernel", str(kernel), "-initrd", str(image), "-append", f"console=ttyS0 panic=-1 quiet no_timer_check{words}"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    deadline, rest = time.monotonic() + TIMEOUT, b""
    try:
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([p.stdout], [], [], left)[0]:
                break
            chunk = os.read(p.stdout.fileno(), 65536)
            if not chunk:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line.decode(errors="replace").rstrip("\r")
        yield f"vm: no end after {TIMEOUT} s"
    finally:
        p.kill()
        p.wait()


def run(series):
    """True when every check passed, and the machine came to its own end."""
    series, _, without = series.partition("-")
    words = " lsm=landlock,lockdown,yama" if without == "nolsm" else ""
    tree, release = kernel_tree(series)
    image = make_initramfs(tree, release, CACHE / f"root-{series}")
    print(f"# {release}{words}", flush=True)
    passed = failed = 0
    summary = None
    with open(CACHE / f"console-{series}.log", "w") as log:
        for line in boot(tree / "boot" / f"vmlinuz-{release}", image, words):
            print(line, file=log, flush=True)
            passed += line.startswith("ok ")
            failed += line.startswith("not ok ")
            if re.match(r"(ok|not ok) \d+ - |# ", line):
                print(line, flush=True)
            summary = re.fullmatch(r"(\d+) passed, (\d+) failed", line) or summary
    if summary:
        print(summary[0])
    good = bool(summary) and [int(n) for n in summary.groups()] == [passed, 0] and passed > 0 and not failed
    if not good:
        log = CACHE / f"console-{series}.log"
        print(f"# {series} failed. The end of {log}:", *log.read_text().splitlines()[-60:], sep="\n")
    return good


def main():
    CACHE.mkdir(parents=True, exist_ok=True)
    bad = [series for series in sys.argv[1:] or SERIES if not run(series)]
    if bad:
        sys.exit(f"vm: failed on {', '.join(bad)}")


if __name__ == "__main__":
    main()
