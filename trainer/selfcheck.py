"""python -m trainer.selfcheck config.json: does training mean what decoding does? Seconds, before days are spent.

    taps     the drafter hears the layers that the config names
    leak     a block sees nothing from its anchor on but the anchor
    labels   a drafter that learns one text by heart drafts that text, and not its neighbour by one
    export   a checkpoint that is read back decodes the same
    gap      decoding accepts what the teacher-forced figures promise

On the config's target, prompts and sizes, with a drafter of its own; writes nothing into the run's folder. Exit code 0
if all holds, 1 if not, 2 for a bad config.
"""

import sys
import time
from pathlib import Path

from trainer import config
from trainer.errors import RunError
from trainer.waiting import choose_waiting


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m trainer.selfcheck config.json", file=sys.stderr)
        return 2
    try:
        told = config.load(Path(arguments[0]))
        choose_waiting()
        try:
            from trainer.promises import SelfCheck
        except (ImportError, OSError) as e:
            raise RunError(f"{sys.executable} cannot import what training needs ({e})") from e
        checks = SelfCheck(told).verdicts()
    except RunError as e:
        print(f"trainer.selfcheck: {e}", file=sys.stderr)
        return e.exit_code
    failed = False
    for check in checks:
        began = time.monotonic()
        verdict = check()
        failed = failed or not verdict.holds
        word, seconds = "ok  " if verdict.holds else "FAIL", time.monotonic() - began
        print(f"{word} {verdict.name:<7} {verdict.sentence} ({seconds:.1f} s)", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
