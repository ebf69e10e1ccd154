"""python -m trainer.export FOLDER OUT [--to zlab|speculators] [--target FOLDER] [--dtype bfloat16|float32]

Writes the drafter in FOLDER (a checkpoint, or one that somebody else trained, in either format) for a server.
speculators' format holds the target's embedding and head as well, so it needs the target's folder.
"""

import argparse
import json
import sys
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from trainer.drafts import as_speculators, in_dtype, read
from trainer.errors import ConfigError, RunError

_EMBEDDING, _HEAD = "model.embed_tokens.weight", "lm_head.weight"


def export(folder: Path, out: Path, form: str, target: Path | None, dtype: str) -> int:
    """Writes `out`, which must not be there yet; returns how many tensors it holds."""
    draft = read(folder)
    draft.drafter()
    weights, told = draft.weights, draft.told
    if form == "speculators":
        if target is None:
            raise ConfigError("--target: speculators' format holds the target's embedding and head; say where it lies")
        try:
            of_target = json.loads((target / "config.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as e:
            raise ConfigError(f"--target: {target} is no folder of a Hugging Face model ({e})") from e
        embedding, head = embedding_and_head(target)
        if embedding.shape[0] != told["vocab_size"] or embedding.shape[1] != told["hidden_size"]:
            raise ConfigError(
                f"--target: the embedding in {target} is {list(embedding.shape)} and the drafter wants "
                f"{[told['vocab_size'], told['hidden_size']]}"
            )
        weights = {**weights, "embed_tokens.weight": embedding, "lm_head.weight": head}
        told = as_speculators(draft, target, of_target.get("architectures", []))
    try:
        out.mkdir(parents=True)
    except FileExistsError as e:
        raise ConfigError(f"{out}: is there already; give a folder that is not") from e
    save_file(in_dtype(weights, dtype), out / "model.safetensors", metadata={"format": "pt"})
    (out / "config.json").write_text(json.dumps({**told, "dtype": dtype}, indent=2) + "\n", encoding="utf-8")
    return len(weights)


def embedding_and_head(target: Path) -> tuple[Tensor, Tensor]:
    """Of the model in `target`, without loading the rest of it; tied ones are one and the same."""
    found: dict[str, Tensor] = {}
    for file in sorted(target.glob("*.safetensors")):
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118  (no mapping)
                if name.endswith((_EMBEDDING.removeprefix("model."), _HEAD)):
                    found[name.removeprefix("model.").removeprefix("language_model.")] = tensors.get_tensor(name)
    embedding = found.get("embed_tokens.weight")
    if embedding is None:
        raise ConfigError(f"--target: no file in {target} holds {_EMBEDDING}")
    return embedding, found.get(_HEAD, embedding)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m trainer.export", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--to", choices=("zlab", "speculators"), default="zlab")
    parser.add_argument("--target", type=Path)
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    asked = parser.parse_args(arguments)
    try:
        count = export(asked.folder, asked.out, asked.to, asked.target, asked.dtype)
    except (RunError, OSError) as e:
        print(f"trainer.export: {e}", file=sys.stderr)
        return e.exit_code if isinstance(e, RunError) else 1
    print(f"{asked.out}: {count} tensors, {asked.dtype}, in {asked.to}'s format")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
