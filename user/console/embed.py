# SPDX-License-Identifier: MIT
"""Writes the table of user/console/assets.h: the files that are named, as C."""
import pathlib
import sys

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".svg": "image/svg+xml"}

print('#include "console/assets.h"\n')
names = []
for number, path in enumerate(map(pathlib.Path, sys.argv[1:])):
    data = path.read_bytes()
    print(f"static const unsigned char file_{number}[] = {{")
    for at in range(0, len(data), 24):
        print("\t" + "".join(f"{byte}," for byte in data[at : at + 24]))
    print("};")
    names.append(f'\t{{ "/{path.name}", "{TYPES[path.suffix]}", file_{number}, sizeof(file_{number}) }},')
print("\nconst struct asset assets[] = {", *names, "};", sep="\n")
print("const size_t n_assets = sizeof(assets) / sizeof(assets[0]);")
