"""An nvidia-smi that says what a test wants it to say, to whatever it is asked for."""

import sys
from pathlib import Path

_TOOL = """#!{python} -IS
import csv, os, sys, time
here = os.path.dirname(os.path.abspath(__file__))
if os.path.exists(os.path.join(here, "slow")):
    time.sleep(float(open(os.path.join(here, "slow")).read()))
if os.path.exists(os.path.join(here, "broken")):
    print(open(os.path.join(here, "broken")).read())
    sys.exit(18)
[query, form] = sys.argv[1:]
assert form == "--format=csv,noheader,nounits"
kind, _, fields = query[len("--query-"):].partition("=")
name = {{"gpu": "gpus.csv", "compute-apps": "apps.csv"}}[kind]
with open(os.path.join(here, name), newline="") as f:
    for row in csv.DictReader(f, skipinitialspace=True):
        row = {{key.split(" [")[0]: value for key, value in row.items()}}
        row.setdefault("uuid", "GPU-%s" % row.get("index"))
        row["used_memory"] = row.get("used_gpu_memory")
        print(", ".join(row.get(field) or "[N/A]" for field in fields.split(",")))
"""


class FakeNvidiaSmi:
    """`folder` goes on the PATH. Its tables are those of `nvidia-smi --query-...`, with a head."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        tool = folder / "nvidia-smi"
        tool.write_text(_TOOL.format(python=Path(sys.executable).resolve()))
        tool.chmod(0o755)
        self.say("index, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%]\n")

    def say(self, gpus: str, apps: str = "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n") -> None:
        (self.folder / "gpus.csv").write_text(gpus)
        (self.folder / "apps.csv").write_text(apps)

    def fail(self, words: str) -> None:
        (self.folder / "broken").write_text(words)

    def be_slow(self, seconds: float) -> None:
        (self.folder / "slow").write_text(str(seconds))
