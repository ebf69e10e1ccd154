"""The mirrors of one host's runs: what a sweep brought goes into them, and how far each run was read.

Nobody else writes there while we own the store, so how far is remembered; after an error it is looked for again.
"""

from collections.abc import Iterable, Mapping

from dflash_tui.errors import DflashError
from dflash_tui.remote.follow import Chunk, Heard
from dflash_tui.runs import Cursor
from dflash_tui.store.mirror import TRAIN_LOG, Mirror


class Copies:
    def __init__(self) -> None:
        self._mirrors: dict[str, Mirror] = {}
        self._cursors: dict[str, dict[str, Cursor]] = {}

    def mirror(self, run_id: str) -> Mirror:
        """Kept, since naming a place takes longer than writing there."""
        if run_id not in self._mirrors:
            self._mirrors[run_id] = Mirror(run_id)
        return self._mirrors[run_id]

    def know(self, run_ids: Iterable[str]) -> bool:
        """Whether `cursors` of these needs no look at the disk."""
        return self._cursors.keys() >= set(run_ids)

    def cursors(self, run_ids: Iterable[str]) -> dict[str, dict[str, Cursor]]:
        """How far each of these runs was read, stream by stream."""
        for run_id in run_ids:
            if run_id not in self._cursors:
                self._cursors[run_id] = read_cursors(run_id)
        return {run_id: dict(self._cursors[run_id]) for run_id in run_ids}

    def limit_to(self, run_ids: Iterable[str]) -> None:
        """Nobody asks for others any more."""
        wanted = set(run_ids)
        # One by one: a thread may be keeping what came of another run in this moment.
        for run_id in set(self._cursors) - wanted:
            self._cursors.pop(run_id, None)
        for run_id in set(self._mirrors) - wanted:
            self._mirrors.pop(run_id, None)

    def keep(self, run_id: str, what: Heard) -> bool:
        """Whether the run's mirror grew. DflashError when it cannot be written."""
        if not what.is_news:
            return False
        # Whatever comes in between, the disk knows best.
        remembered = self._cursors.pop(run_id, None)
        mirror = self.mirror(run_id)
        if any(chunk.data and not chunk.reset and not _continues(mirror, chunk) for chunk in what.chunks):
            return False
        try:
            for chunk in what.chunks:
                if chunk.reset:
                    mirror.start_generation(chunk.stream, chunk.reset)
                if chunk.data:
                    mirror.append(chunk.stream, chunk.data, chunk.cursor)
        except OSError as e:
            raise DflashError(f"{mirror.folder}: cannot be written ({e.strerror}): make room, nothing is lost") from e
        if remembered is not None and not any(chunk.reset for chunk in what.chunks):
            self._cursors[run_id] = remembered | {chunk.stream: chunk.cursor for chunk in what.chunks if chunk.data}
        return any(chunk.data for chunk in what.chunks)

    def hold(self, run_id: str, what: Heard, asked: Mapping[str, Cursor]) -> bool:
        """Whether all that was read of a run, up to this answer to those cursors, is here.

        Not so where it was forgotten, and came again, while its host was asked: then all is asked for anew.
        """
        mirror = self.mirror(run_id)
        cursors = {**asked, **{chunk.stream: chunk.cursor for chunk in what.chunks}}
        if all(mirror.size(stream) >= cursor.offset for stream, cursor in cursors.items()):
            return True
        self._cursors.pop(run_id, None)
        return False


def _continues(mirror: Mirror, chunk: Chunk) -> bool:
    """Not so where a run was forgotten, and came again, while its host was asked."""
    return mirror.size(chunk.stream) + len(chunk.data) == chunk.cursor.offset


def read_cursors(run_id: str) -> dict[str, Cursor]:
    mirror = Mirror(run_id)
    outputs = [
        str(path.relative_to(mirror.folder))
        for path in mirror.folder.glob("attempts/*/output.log")
        if path.parent.name.isdecimal()
    ]
    return {stream: mirror.cursor(stream) for stream in (TRAIN_LOG, *outputs)}
