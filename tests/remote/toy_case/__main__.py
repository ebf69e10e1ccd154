"""Hands over to the script; "{run}" in an argument stands for the run's folder."""

import json
import runpy
import sys
from pathlib import Path

config = json.loads(Path(sys.argv[1]).read_text())
sys.argv = [config["script"], *(word.replace("{run}", config["run_dir"]) for word in config["argv"])]
runpy.run_path(config["script"], run_name="__main__")
