# SPDX-License-Identifier: MIT
"""Numbers for people."""
import statistics


def percentile(values, p):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))]


def summary(values):
    """p10 is what it takes when nothing else wants the CPU: on a machine that others use, the one to compare."""
    return {"p10": percentile(values, 10), "p50": statistics.median(values), "p99": percentile(values, 99), "n": len(values)}


def ratio(values, peers):
    """Ratio of the medians; and, as its spread, the quartiles of the ratios round by round."""
    each = [a / b for a, b in zip(values, peers) if b]
    return {"ratio": statistics.median(values) / statistics.median(peers),
            "low": percentile(each, 25), "high": percentile(each, 75)}


def number(value):
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def spread(r):
    return f"{r['ratio']:.3f} ({r['low']:.2f}-{r['high']:.2f})"


def show(title, head, rows, notes=()):
    rows = [[number(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    print(f"\n{title}")
    for row in [head, ["-" * w for w in widths], *rows]:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(w) for cell, w in zip(row[1:], widths[1:])]
        print("  " + "  ".join(cells))
    for note in notes:
        print(f"  {note}")
    print(flush=True)
