import sys

with open(sys.argv[1], "w") as out:
    print(*sys.argv[2:], sep="|", file=out)
