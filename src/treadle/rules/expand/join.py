"""Tables of values put together: those that share a wildcard are joined on it, the others multiply."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.rules.pattern.pattern import Row
from treadle.rules.schema import Source

MOST_ROWS = 5_000_000  # of one rule: beyond it something was multiplied that was not meant to be
_SHOWN = 5


class TooManyRowsError(Exception):
    """Tables multiply to more than `MOST_ROWS` rows; `count` of them."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(f"{count:,} rows")


class Dropped(Struct, frozen=True):
    """Values that a join dropped: they stand in `present` and not in `absent`.

    `count` of them; `examples` are the first few, each as `sample=S1`.
    """

    present: str
    absent: str
    count: int
    examples: tuple[str, ...]


class Table(Struct, frozen=True):
    """Rows under column names (wildcards), and how many were dropped on the way.

    `valueless` counts rows that have no value for a wildcard that is named; `lacking` tells of the first
    few, each as `pair_id=P2 has no control`.
    """

    columns: tuple[str, ...]
    rows: list[Row]
    label: str = ""
    dropped: tuple[Dropped, ...] = ()
    valueless: int = 0
    lacking: tuple[str, ...] = ()


NO_TABLE = Table((), [()])


def join_sources(sources: Sequence[Source], names: Sequence[str], asked: Collection[str] = ()) -> Table:
    """All rows of these sources, under the columns that are `names` and in their order, each row once.

    The first source varies slowest. Rows without a value for one of `names` are left out and counted, but
    for those in `asked`: there they get an empty text. Raises TooManyRowsError.
    """
    sources = [_with_empty_texts(source, asked) for source in sources] if asked else sources
    wanted, held = set(names), [set(source.columns) for source in sources]
    shared = {name for at, names in enumerate(held) for name in names if any(name in x for x in held[:at])}
    tables = [_table(source, wanted, shared) for source in sources]
    valueless = sum(table.valueless for table in tables)
    lacking = tuple(one for table in tables for one in table.lacking)
    joined = _fold(tables)
    columns = tuple(name for name in names if name in joined.columns)
    return Table(columns, distinct(joined, columns), joined.label, joined.dropped, valueless, lacking)


def _with_empty_texts(source: Source, asked: Collection[str]) -> Source:
    """The source with an empty text where it has no value in a column that is in `asked`."""
    places = [at for at, name in enumerate(source.columns) if name in asked]
    if not any(row[at] is None for row in source.rows for at in places):
        return source
    rows = [
        tuple("" if cell is None and at in places else cell for at, cell in enumerate(row))
        for row in source.rows
    ]
    return replace(source, rows=tuple(rows))


def distinct(table: Table, columns: Sequence[str]) -> list[Row]:
    """The rows of a table cut down to these columns, each once, in order."""
    if tuple(columns) == table.columns:
        return list(dict.fromkeys(table.rows))
    pick = picker(table.columns, columns)
    return list(dict.fromkeys(map(pick, table.rows)))


def picker(columns: Sequence[str], wanted: Sequence[str]) -> Any:
    """A function from a row to the tuple of its values in the `wanted` columns."""
    places = [columns.index(name) for name in wanted]
    match places:
        case []:
            return _nothing
        case [place]:
            return lambda row: (row[place],)
        case _:
            return itemgetter(*places)


def _nothing(row: Row) -> Row:
    return ()


def join(left: Table, right: Table) -> Table:
    """Join on the shared columns; without any, every row with every row. Raises TooManyRowsError."""
    shared = [name for name in left.columns if name in right.columns]
    if not shared:
        return _product(left, right)
    more = [name for name in right.columns if name not in left.columns]
    of_left, of_right = picker(left.columns, shared), picker(right.columns, shared)
    fresh = picker(right.columns, more)
    partners: dict[Row, list[Row]] = {}
    for row in right.rows:
        partners.setdefault(of_right(row), []).append(fresh(row))
    rows: list[Row] = []
    for row in left.rows:
        rows += [row + other for other in partners.get(of_left(row), ())]
        if len(rows) > MOST_ROWS:
            raise TooManyRowsError(len(rows))
    keys = dict.fromkeys(map(of_left, left.rows))
    dropped = [
        *_dropped(shared, (key for key in keys if key not in partners), left.label, right.label),
        *_dropped(shared, (key for key in partners if key not in keys), right.label, left.label),
    ]
    return Table(
        (*left.columns, *more), rows, _labels(left, right), (*left.dropped, *right.dropped, *dropped)
    )


def _product(left: Table, right: Table) -> Table:
    count = len(left.rows) * len(right.rows)
    if count > MOST_ROWS:
        raise TooManyRowsError(count)
    rows = [one + other for one in left.rows for other in right.rows]
    columns = left.columns + right.columns
    return Table(columns, rows, _labels(left, right), left.dropped + right.dropped)


def _labels(left: Table, right: Table) -> str:
    return " and ".join(label for label in (left.label, right.label) if label)


def _dropped(names: Sequence[str], keys: Iterable[Row], present: str, absent: str) -> list[Dropped]:
    lost = list(keys)
    if not lost:
        return []
    examples = tuple(",".join(f"{name}={value}" for name, value in zip(names, key)) for key in lost[:_SHOWN])
    return [Dropped(present, absent, len(lost), examples)]


def _table(source: Source, wanted: set[str], shared: set[str]) -> Table:
    """The columns of a source that count, without rows that lack a value which is named."""
    columns = tuple(name for name in source.columns if name in wanted or name in shared)
    pick = picker(source.columns, columns)
    rows: list[Any] = list(dict.fromkeys(map(pick, source.rows)))
    named = [at for at, name in enumerate(columns) if name in wanted]
    whole = [row for row in rows if None not in row or all(row[at] is not None for at in named)]
    if len(whole) == len(rows):
        return Table(columns, whole, source.label)
    kept = set(whole)
    lost = [_lack(columns, row, named) for row in islice((r for r in rows if r not in kept), _SHOWN)]
    return Table(columns, whole, source.label, valueless=len(rows) - len(whole), lacking=tuple(lost))


def _lack(columns: Sequence[str], row: Sequence[str | None], named: Sequence[int]) -> str:
    """What a row lacks, and by which of its values one finds it."""
    known = next((f"{name}={value}" for name, value in zip(columns, row) if value is not None), "a row")
    return f"{known} has no {' and no '.join(columns[at] for at in named if row[at] is None)}"


def _fold(tables: Sequence[Table]) -> Table:
    """Join all tables. Those that share a column go first, so that nothing multiplies without need; the
    rows come in the order as if the tables had been joined one after the other.
    """
    if not tables:
        return NO_TABLE
    if len(tables) < 3:
        return tables[0] if len(tables) == 1 else join(tables[0], tables[1])
    numbered = [_numbered(table, at) for at, table in enumerate(tables)]
    joined, left = numbered[0], numbered[1:]
    while left:
        at = next((n for n, table in enumerate(left) if set(table.columns) & set(joined.columns)), 0)
        joined = join(joined, left.pop(at))
    order = picker(joined.columns, [f"#{at}" for at in range(len(tables))])
    joined.rows.sort(key=order)
    return joined


def _numbered(table: Table, number: int) -> Table:
    rows: list[Any] = [(*row, at) for at, row in enumerate(table.rows)]
    return Table((*table.columns, f"#{number}"), rows, table.label)
