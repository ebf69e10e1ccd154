"""What stands under a command's `--help`: how it is used, in words to copy."""

EXAMPLES = {
    "demo": ["dflash-tui demo", "dflash-tui demo --steps 200"],
    "launch": [
        "dflash-tui launch tiny --name first --set total_steps=400",
        "dflash-tui launch paper --host box --set target=/models/Qwen3-4B --set data.path=/data/rows.jsonl --gpus 0,1",
        "dflash-tui launch my.toml --host box --dry-run",
    ],
    "launch-script": [
        "dflash-tui launch-script train.py --host box -- --lr 6e-4",
        "dflash-tui launch-script train.sh --host box --log out/log.jsonl --follow",
    ],
    "stop": ["dflash-tui stop first", "dflash-tui stop first --grace 600 --yes", "dflash-tui stop first --kill --yes"],
    "resume": ["dflash-tui resume first"],
    "clone": ["dflash-tui clone first --set lr=3e-4 --name slower", "dflash-tui clone mine --host box -- --lr 3e-4"],
    "forget": ["dflash-tui forget first", "dflash-tui forget first --yes"],
    "attach": ["dflash-tui attach --host box --log /data/runs/7/train_log.jsonl --name seven"],
    "runs": ["dflash-tui runs", "dflash-tui runs --json"],
    "status": ["dflash-tui status first", "dflash-tui status first --json"],
    "logs": ["dflash-tui logs first -f", "dflash-tui logs first --metrics --since-step 2000"],
    "ingest": [
        "dflash-tui ingest train_log.jsonl",
        "dflash-tui ingest train.jsonl* --run old",
        "dflash-tui ingest out.log --as text",
    ],
    "report": [
        "dflash-tui report first",
        "dflash-tui report first --panel loss --from 1000 --to 2000 --json",
        "dflash-tui report first --html first.html",
    ],
    "panels": ["dflash-tui panels"],
    "check": ["dflash-tui check first", "dflash-tui check first --baseline golden --json"],
    "checks": ["dflash-tui checks"],
    "compare": ["dflash-tui compare first slower", "dflash-tui compare first --reference story"],
    "watch": ["dflash-tui watch"],
    "doctor": ["dflash-tui doctor", "dflash-tui doctor --rebuild"],
    "compact": ["dflash-tui compact"],
    "exec": ["dflash-tui exec box probe.sh --verbose", "dflash-tui exec box - < probe.py"],
    "query": [
        'dflash-tui query "select step, loss from steps order by step desc limit 3"',
        "dflash-tui query - -p name=first --format parquet --output rows.parquet < rows.sql",
        "dflash-tui query --schema",
    ],
    "hosts": ["dflash-tui hosts", "dflash-tui hosts check box"],
    "hosts check": ["dflash-tui hosts check box"],
    "hosts add": ["dflash-tui hosts add box me@box:22", "dflash-tui hosts add trainer root@pve1 --vmid 200"],
    "hosts scan": ["dflash-tui hosts scan", "dflash-tui hosts scan box"],
}


def under(name: str) -> str:
    """The lines under the help of the command `name`, laid out as they are."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in EXAMPLES[name])
