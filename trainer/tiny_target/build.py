"""Makes everything in this folder but itself: the tiny target, its tokenizer and its prompts.

    python trainer/tiny_target/build.py [--steps 1000] [--out trainer/tiny_target]

The target is a real causal language model of the Qwen3 architecture, small enough to travel with the trainer. It learns
the running Python's standard library, as bytes, with white space normalised: raw indentation alone would make the text
so easy that a drafter needs to learn nothing. A tenth of the files is held out; the evaluation prompts come from those.

What is here was made by Python 3.11.7, torch 2.13.0 and transformers 5.24.0 out of 450 files (6,429,524 bytes), 50 more
(695,675 bytes) held out, in 466 s on one core: 1.951 bits a byte on the held-out files. Another Python has another
library, and so other prompts.

Owns the recipe of the bundled target. The trainer never imports it, and it imports nothing of the trainer's.
"""

import argparse
import json
import platform
import random
import re
import sysconfig
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

SEED = 20261129
VOCAB = 272
PAD, BOS, EOS, MASK = 256, 257, 258, 259
SEQ_BYTES, BATCH = 320, 8
MUON_LR, ADAM_LR, WEIGHT_DECAY = 0.02, 3e-3, 0.05
NUM_TRAIN_PROMPTS, NUM_EVAL_PROMPTS = 1152, 64
PROMPT_BYTES, NEW_TOKENS = 48, (120, 270)
MAX_FILE_BYTES = 200 * 1024
SKIPPED_FOLDERS = {"test", "tests", "idle_test", "site-packages", "dist-packages", "encodings", "idlelib"}


def normalise(text: str) -> str:
    """Leading blanks become tabs, inner blanks one blank, rulers five characters; blank lines go."""
    lines = []
    for line in text.expandtabs(4).splitlines():
        body = line.strip()
        if body:
            indent = (len(line) - len(line.lstrip())) // 4
            body = re.sub(r"([-=*#~_.])\1{5,}", r"\1\1\1\1\1", re.sub(r"\s+", " ", body))
            lines.append("\t" * indent + body)
    return "\n".join(lines) + "\n"


def read_library() -> list[bytes]:
    """The standard library's ASCII .py files, normalised, in the order of their names."""
    root = Path(sysconfig.get_paths()["stdlib"])
    texts = []
    for path in sorted(root.rglob("*.py")):
        if SKIPPED_FOLDERS & set(path.relative_to(root).parts):
            continue
        data = path.read_bytes()
        if len(data) <= MAX_FILE_BYTES and data.isascii():
            texts.append(normalise(data.decode("ascii")).encode("ascii"))
    return [text for text in texts if len(text) > SEQ_BYTES]


def config() -> Qwen3Config:
    return Qwen3Config(
        vocab_size=VOCAB,
        hidden_size=160,
        intermediate_size=448,
        num_hidden_layers=6,  # four layers would give the two taps of the rule [1, 1]
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=1024,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4},
        # Tied, the rows that never occur (mask, pad) lie together and a drafter's first loss is 40, not 6.
        tie_word_embeddings=False,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        dtype="bfloat16",
    )


def batch_of(data: torch.Tensor, rng: torch.Generator) -> torch.Tensor:
    starts = torch.randint(len(data) - SEQ_BYTES, (BATCH,), generator=rng)
    return torch.stack([data[s : s + SEQ_BYTES] for s in starts.tolist()]).long()


def bits_per_byte(model: Qwen3ForCausalLM, data: torch.Tensor) -> float:
    """The mean over the whole of `data`, in windows that do not overlap."""
    rows = data[: len(data) // SEQ_BYTES * SEQ_BYTES].view(-1, SEQ_BYTES).long()
    total = 0.0
    with torch.no_grad():
        for chunk in torch.split(rows, 32):
            logits = model(chunk).logits[:, :-1].float()
            total += F.cross_entropy(logits.flatten(0, 1), chunk[:, 1:].flatten(), reduction="sum").item()
    return total / (rows.numel() - len(rows)) / 0.6931471805599453


def train(texts: list[bytes], held_out: list[bytes], steps: int) -> Qwen3ForCausalLM:
    """Muon on the matrices of the layers, AdamW on the rest, both with a linear decay to zero."""
    torch.manual_seed(SEED)
    rng = torch.Generator().manual_seed(SEED)
    model = Qwen3ForCausalLM(config()).float()
    data = torch.frombuffer(bytearray(b"".join(texts)), dtype=torch.uint8)
    matrices = [p for p in model.model.layers.parameters() if p.ndim == 2]
    rest = [p for name, p in model.named_parameters() if p.ndim != 2 or ".layers." not in name]
    optimizers = [
        torch.optim.Muon(matrices, lr=MUON_LR, weight_decay=WEIGHT_DECAY),
        torch.optim.AdamW(rest, lr=ADAM_LR, betas=(0.9, 0.95), weight_decay=0.0),
    ]
    peaks = [MUON_LR, ADAM_LR]
    began = time.monotonic()
    for step in range(steps):
        tokens = batch_of(data, rng)
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(tokens).logits
        loss = F.cross_entropy(logits[:, :-1].float().flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()  # type: ignore[no-untyped-call]
        for optimizer, peak in zip(optimizers, peaks, strict=True):
            optimizer.param_groups[0]["lr"] = peak * min((step + 1) / 50, 1 - step / steps)
            optimizer.step()
            optimizer.zero_grad()
        if step % 100 == 99:
            print(f"step {step + 1}/{steps}  loss {loss.item():.3f}  {time.monotonic() - began:.0f} s", flush=True)
    model = model.bfloat16().float().eval()
    held = torch.frombuffer(bytearray(b"".join(held_out)), dtype=torch.uint8)
    print(f"held out: {bits_per_byte(model, held):.3f} bits/byte over {len(held)} bytes")
    return model


def tokenizer() -> PreTrainedTokenizerFast:
    """Bytes are their own ids; four special tokens follow them."""
    letters = pre_tokenizers.ByteLevel.alphabet()
    # The alphabet maps printable bytes to themselves and the others, in order, to 256 and up.
    printable = {ord(c) for c in letters if ord(c) < 256}
    others = [b for b in range(256) if b not in printable]
    vocab = {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}
    core = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(["<|pad|>", "<|bos|>", "<|eos|>", "<|mask|>"])
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="<|pad|>",
        bos_token="<|bos|>",
        eos_token="<|eos|>",
        mask_token="<|mask|>",
        clean_up_tokenization_spaces=False,
    )


def save_tokenizer(out: Path) -> None:
    tokenizer().save_pretrained(out)
    path = out / "tokenizer_config.json"
    told = json.loads(path.read_text())
    # The name that transformers 4 knows as well.
    told["tokenizer_class"] = "PreTrainedTokenizerFast"
    path.write_text(json.dumps(told, indent=2) + "\n")


def save_licence(out: Path) -> None:
    text = (Path(sysconfig.get_paths()["stdlib"]) / "LICENSE.txt").read_text()
    (out / "LICENSE").write_text(
        f"prompts.jsonl quotes the standard library of Python {platform.python_version()}, and model.safetensors was "
        f"trained on it. That library comes under the following licence.\n\n{text}"
    )


def draw_prompts(texts: list[bytes], split: str, count: int, rng: random.Random) -> list[dict[str, object]]:
    """`count` different prompts that begin at a line's start, each with its own budget of new tokens."""
    text = b"".join(texts)
    starts = [m.end() for m in re.finditer(b"\n", text) if m.end() + PROMPT_BYTES <= len(text)]
    rows: dict[str, dict[str, object]] = {}
    while len(rows) < count:
        start = rng.choice(starts)
        prompt = text[start : start + PROMPT_BYTES].decode("ascii")
        rows.setdefault(prompt, {"split": split, "prompt": prompt, "max_new_tokens": rng.randint(*NEW_TOKENS)})
    return list(rows.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    # One thread adds in one order, whatever the machine.
    torch.set_num_threads(1)
    texts = read_library()
    rng = random.Random(SEED)
    rng.shuffle(texts)
    cut = len(texts) // 10
    held_out, kept = texts[:cut], texts[cut:]
    print(f"{len(kept)} files, {sum(map(len, kept))} bytes; held out {cut} files, {sum(map(len, held_out))} bytes")
    rows = draw_prompts(kept, "train", NUM_TRAIN_PROMPTS, rng) + draw_prompts(held_out, "eval", NUM_EVAL_PROMPTS, rng)
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    (out / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    save_tokenizer(out)
    save_licence(out)
    train(kept, held_out, arguments.steps).bfloat16().save_pretrained(out)


if __name__ == "__main__":
    main()
