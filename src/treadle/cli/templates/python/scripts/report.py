"""Say how many rows each part has, and the mean of its second column."""

import argparse
import csv
import statistics


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--degree", type=int, default=1)
    parser.add_argument("out")
    parser.add_argument("parts", nargs="+")
    args = parser.parse_args()
    with open(args.out, "w") as out:
        out.write(f"degree {args.degree}\n")
        for path in args.parts:
            with open(path, newline="") as rows:
                values = [float(row["y"]) ** args.degree for row in csv.DictReader(rows)]
            out.write(f"{path}: {len(values)} rows, mean {statistics.fmean(values):.3f}\n")


if __name__ == "__main__":
    main()
