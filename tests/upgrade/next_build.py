#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The sources of this tree as the next version of the ABI would have them, for a takeover from this build to one of another version:

    next_build.py FOLDER

copies them there, counts NP_ABI_VERSION up, and gives the copy the layout of this version among those that it takes over from, as whoever
changes the ABI does. Whoever does that for good has nothing to change here: the layout is this tree's own."""
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYOUT = """
static bool previous_rung_read(const void *value, struct np_rung *ret)
{
	memcpy(ret, value, sizeof(*ret));
	return np_rung_is_valid(ret);
}

static void previous_home_read(__u64 key, const void *value, __u64 *ret_cgroup_id, struct np_home *ret)
{
	*ret_cgroup_id = key;
	memcpy(ret, value, sizeof(*ret));
}
_Static_assert(offsetof(struct np_sandbox, rung) == 0, "the rung is first");
"""
ROW = """	{ NP_ABI_VERSION - 1, "np_sandboxes", sizeof(struct np_sandbox), offsetof(struct np_sandbox, session), previous_rung_read,
	  "np_homes", sizeof(struct np_home), previous_home_read },
"""


def change(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1, f"{path}: {old}"
    path.write_text(text.replace(old, new))


def main(folder):
    for name in ("Makefile", "include", "bpf", "user", "vmlinux", "policies", "netpawl-hook.json.in", "netpawld.service.in"):
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    header = folder / "include" / "sandbox.h"
    version = int(re.search(r"^#define NP_ABI_VERSION (\d+)$", header.read_text(), re.M).group(1))
    change(header, f"#define NP_ABI_VERSION {version}\n", f"#define NP_ABI_VERSION {version + 1}\n")
    gates = folder / "user" / "kernel" / "old_gate.c"
    head = "/* -- the table ----"
    change(gates, head, LAYOUT + "\n" + head)
    last = "};\n\nconst struct old_gate *old_gate_at("
    change(gates, last, ROW + last)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
