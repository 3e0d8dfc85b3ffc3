"""Drop rows with an empty cell."""

import csv
import sys


def main(source: str, target: str) -> None:
    with open(source, newline="") as rows, open(target, "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerows(row for row in csv.reader(rows) if all(row))


if __name__ == "__main__":
    main(*sys.argv[1:])
