"""The filter of the list of runs: words that all must be there, `field:word` for one field. Pure; draws nothing."""

from dflash_tui.runs import Run

FIELDS = ("name", "host", "state", "reason", "kind", "id")


def matches(run: Run, words: str) -> bool:
    """Whether every word of `words` stands somewhere in the run, or in the field it names; case does not count."""
    fields = {
        "name": run.name,
        "host": run.host or "",
        "state": run.state,
        "reason": run.reason or "",
        "kind": run.kind,
        "id": run.run_id,
    }
    values = {name: value.lower() for name, value in fields.items()}
    for word in words.lower().split():
        field, colon, wanted = word.partition(":")
        if colon and field in FIELDS:
            if wanted not in values[field]:
                return False
        elif not any(word in value for value in values.values()):
            return False
    return True
