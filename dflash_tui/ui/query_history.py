"""The queries that were run here, oldest first: kept in a file of ours from one session to the next."""

import os

import msgspec

from dflash_tui import paths

MOST = 500
# A longer file is written anew, with the newest alone.
_MOST_BYTES = 1 << 20


class QueryHistory:
    """Walked back and forth from what is being written now, which is kept at its end."""

    def __init__(self) -> None:
        self.queries = _read()
        self._place = len(self.queries)
        self._draft = ""

    def add(self, query: str) -> None:
        """What was run: the newest now. Raises OSError when it cannot be kept for the next session."""
        is_new = not self.queries or self.queries[-1] != query
        if is_new:
            self.queries.append(query)
        self._place, self._draft = len(self.queries), ""
        if is_new:
            _keep(self.queries)

    def step(self, by: int, now: str) -> str | None:
        """The query before (-1) or after (1) the one shown; `now` is what is shown. None where there is no other."""
        place = self._place + by
        if not 0 <= place <= len(self.queries):
            return None
        if self._place == len(self.queries):
            self._draft = now
        self._place = place
        return self._draft if place == len(self.queries) else self.queries[place]


def _file() -> str:
    return str(paths.data_dir() / "query_history.jsonl")


def _read() -> list[str]:
    """As far as it can be read: lines that are no JSON text are left out."""
    try:
        with open(_file(), "rb") as file:
            lines = file.readlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            found.append(msgspec.json.decode(line, type=str))
        except msgspec.MsgspecError:
            continue
    return found[-MOST:]


def _keep(queries: list[str]) -> None:
    """One line more; the file anew when it has become long. Nobody else may read it: a query can hold anything."""
    paths.private_dir(paths.data_dir())
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    descriptor = os.open(_file(), flags, 0o600)
    try:
        if os.fstat(descriptor).st_size > _MOST_BYTES:
            del queries[:-MOST]
            os.ftruncate(descriptor, 0)
            os.write(descriptor, b"".join(msgspec.json.encode(query) + b"\n" for query in queries))
        else:
            os.write(descriptor, msgspec.json.encode(queries[-1]) + b"\n")
    finally:
        os.close(descriptor)
