"""A summary of the cohort's variants: how many, of which kind, how many shared; how well reads mapped."""

import pathlib
import re
import sys


def main(out: str, sites: str, flagstats: list[str]) -> None:
    rows = [line.split("\t") for line in pathlib.Path(sites).read_text().splitlines()]
    called = [[genotype not in (".", "./.", "0") for genotype in row[3:]] for row in rows]
    snvs = sum(len(row[1]) == 1 and all(len(alt) == 1 for alt in row[2].split(",")) for row in rows)
    shared = sum(all(calls) for calls in called)
    lines = [
        "# Variants of the lambda phage samples",
        "",
        f"{len(rows)} sites: {snvs} SNVs, {len(rows) - snvs} indels; {shared} called in every sample.",
        "",
        "| sample | reads mapped | sites called |",
        "|---|---|---|",
    ]
    for index, path in enumerate(flagstats):
        mapped = re.search(r"mapped \((\d+\.\d+)%", pathlib.Path(path).read_text())
        name = pathlib.Path(path).name.removesuffix(".flagstat.txt")
        found = sum(calls[index] for calls in called)
        lines.append(f"| {name} | {mapped[1] if mapped else '?'} % | {found} |")
    pathlib.Path(out).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
