"""Logs a step every 20 ms, `steps` of them (0: for ever), or until there is a file `finish` in the run's folder.

Other keys of its config: `on_term` (save | ignore | die), `step_s`, `pad` (more bytes in each line), `say`, `fill` (a
file that takes all of its disk), `end` (the log's last record), `raise` (a last line on stderr), `kill` (a signal to
itself), `exit` (its code).
"""

import json
import os
import signal
import sys
import time
from pathlib import Path


def main() -> int:
    config = json.loads(Path(sys.argv[1]).read_text())
    run = Path(config["run_dir"])
    log = (run / "train_log.jsonl").open("a", buffering=1)

    asked = []
    if config.get("on_term") == "save":
        signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    elif config.get("on_term") == "ignore":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(config.get("say", "ready"))
    step = 0
    log.write(json.dumps({"event": "start", "seen": config, "cwd": str(Path.cwd()), "stdin": sys.stdin.read()}) + "\n")
    while (config["steps"] == 0 or step < config["steps"]) and not (run / "finish").exists():
        if asked:
            (run / "checkpoints" / f"step-{step:06d}").mkdir(parents=True, exist_ok=True)
            print(f"saved at {step}")
            return 75
        step += 1
        log.write(json.dumps({"step": step, **({"pad": "x" * config["pad"]} if "pad" in config else {})}) + "\n")
        time.sleep(config.get("step_s", 0.02))
    if "fill" in config:
        fill(Path(config["fill"]))
    if "end" in config:
        log.write(json.dumps({"event": "end", **config["end"]}) + "\n")
    if "raise" in config:
        print("Traceback (most recent call last):\n  ...", file=sys.stderr)
        print(config["raise"], file=sys.stderr)
    if "kill" in config:
        os.kill(os.getpid(), config["kill"])
    return int(config.get("exit", 0))


def fill(path: Path) -> None:
    """Leave no byte on the disk that `path` is on."""
    try:
        with path.open("wb", buffering=0) as f:
            while True:
                f.write(b"x" * 4096)
    except OSError:
        pass


sys.exit(main())
