"""Compare texts by their word counts: size, variety, and the words they share."""

import csv
import pathlib
import sys


def counts(path: str) -> dict[str, int]:
    """Word -> how often, from a table of two columns."""
    with open(path, newline="") as table:
        return {word: int(number) for word, number in csv.reader(table, delimiter="\t")}


def main(out: str, paths: list[str]) -> None:
    texts = {pathlib.Path(path).name.removesuffix(".words.tsv"): counts(path) for path in paths}
    shared = set.intersection(*(set(words) for words in texts.values()))
    lines = ["# Words in three old texts", ""]
    lines += ["| text | words | different | most frequent |", "|---|---|---|---|"]
    for name, words in texts.items():
        first = next(iter(words))
        lines.append(f"| {name} | {sum(words.values())} | {len(words)} | {first} ({words[first]}) |")
    lines += ["", f"Words in all of them: {', '.join(sorted(shared))}.", ""]
    pathlib.Path(out).write_text("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
