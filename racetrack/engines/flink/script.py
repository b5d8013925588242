"""Parser of scripts such as `scripts/demo.flink.sql`: finds the statements of a script, and the
topics to which it writes."""

import re
from collections.abc import Callable, Iterator, Mapping

# A semicolon does not end a statement inside a comment, a string or a quoted name.
_PIECE = re.compile(r"--[^\n]*|'(?:[^']|'')*'|`[^`]*`|;|[^-'`;]+|-")
_OPENS_SET = re.compile(r"EXECUTE\s+STATEMENT\s+SET\s+BEGIN\b", re.IGNORECASE)
_TABLE = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)")
_TOPIC = re.compile(r"'topic'\s*=\s*'([^']+)'")
_WATERMARK = re.compile(r"(WATERMARK FOR \w+ AS \w+ - INTERVAL ')([\d.]+)(' SECOND)")
_INTO = re.compile(r"^INSERT INTO (\w+)", re.MULTILINE)


def statements(sql: str) -> list[str]:
    """Return the statements of a script without comments. A statement set, from BEGIN to END, is
    returned as one statement.

    Raises:
        ValueError: the last statement does not end with a semicolon.
    """
    parts: list[str] = []
    in_set = False
    for part in _parts(sql):
        if in_set:
            parts[-1] += f";\n{part}"
        else:
            parts.append(part)
        in_set = bool(_OPENS_SET.match(parts[-1])) and part.upper() != "END"
    if in_set:
        raise ValueError("The script ends within a statement set: END is missing.")
    return [f"{statement};" if _OPENS_SET.match(statement) else statement for statement in parts]


def own_topics(sql: str) -> list[str]:
    """Return the topics to which the script writes, in the order of the script. Other topics are
    created by the load generator or Debezium."""
    return [topic for topic, _ in _written_tables(sql)]


def appended_topics(sql: str) -> list[str]:
    """Return those of the script's own topics whose rows have no key."""
    return [topic for topic, table in _written_tables(sql) if "'connector' = 'kafka'" in table]


def _written_tables(sql: str) -> Iterator[tuple[str, str]]:
    """Yield the topic of each table that the script writes, and the statement that creates it."""
    written = set(_INTO.findall(sql))
    for statement in statements(sql):
        table, topic = _TABLE.match(statement), _TOPIC.search(statement)
        if table and topic and table[1] in written:
            yield topic[1], statement


def with_watermark_delay(sql: str, delay_ms: int) -> str:
    """Return the script with this further delay of its watermarks."""

    def delayed(watermark: re.Match[str]) -> str:
        return f"{watermark[1]}{float(watermark[2]) + delay_ms / 1000:.3f}{watermark[3]}"

    return _WATERMARK.sub(delayed, sql)


def in_one_job(given: list[str]) -> list[str]:
    """Return the statements with all insertions outside of a statement set in one at the end, so
    that all selected queries are one job, which reads each topic once."""
    inserts = [statement for statement in given if statement.startswith("INSERT ")]
    if not inserts:
        return given
    others = [statement for statement in given if statement not in inserts]
    return [*others, "EXECUTE STATEMENT SET\nBEGIN\n" + ";\n".join(inserts) + ";\nEND;"]


def with_options(sql: str, prefix: str, of_sink: Callable[[str], Mapping[str, str]]) -> str:
    """Return the script with a prefix before the name of each topic. Tables that the script writes
    get further options: `of_sink` returns those of a topic."""
    written = set(own_topics(sql))

    def options(table: re.Match[str]) -> str:
        topic = f"{prefix}{table[1]}"
        return in_sql({"topic": topic, **(of_sink(topic) if table[1] in written else {})})

    return _TOPIC.sub(options, sql)


def in_sql(options: Mapping[str, str]) -> str:
    """Return a table's options as in SQL."""
    return ", ".join(f"'{name}' = '{quoted(value)}'" for name, value in options.items())


def quoted(value: str) -> str:
    """Return a text as it is written between SQL's quotes."""
    return value.replace("'", "''")


def _parts(sql: str) -> Iterator[str]:
    """Split a script at semicolons, without comments and empty lines."""
    part = ""
    for piece in _PIECE.findall(sql):
        if piece == ";":
            yield _tidy(part)
            part = ""
        elif not piece.startswith("--"):
            part += piece
    if part.strip():
        raise ValueError(f"The script's last statement has no end: {part.strip()[:80]}")


def _tidy(part: str) -> str:
    return "\n".join(line.rstrip() for line in part.splitlines() if line.strip())
