"""Code on the far side: named by its content, sent once, checked each time, and nothing but plain files unpacked."""

import asyncio
import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from dflash_tui.errors import HostError
from dflash_tui.remote.bundle import pack
from dflash_tui.remote.client import AgentClient
from dflash_tui.remote.deploy import deploy

from .far_side import TOYS


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "recipes").mkdir(parents=True)
    (folder / "__init__.py").write_text("VALUE = 'δ'\n")
    (folder / "recipes" / "tiny weights.bin").write_bytes(bytes(range(256)) * 5000)
    return folder


def tree(root: Path) -> dict[str, bytes]:
    return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}


async def test_code_arrives_whole_and_is_sent_once(agent: AgentClient, source: Path) -> None:
    code = await deploy(agent, source)
    assert tree(Path(code.path)) == {f"trainer/{name}": data for name, data in tree(source).items()}
    assert Path(code.path) == Path(agent.workdir, "dflash-code", code.sha256)
    before = Path(code.path).stat()
    assert await deploy(agent, source) == code
    assert Path(code.path).stat() == before
    assert list(Path(code.path).parent.iterdir()) == [Path(code.path)], "no archive and no part is left"


async def test_another_content_is_another_folder(agent: AgentClient, source: Path) -> None:
    first = await deploy(agent, source)
    (source / "__init__.py").write_text("VALUE = 2\n")
    second = await deploy(agent, source)
    assert first.sha256 != second.sha256
    assert Path(first.path, "trainer/__init__.py").read_text() == "VALUE = 'δ'\n"


async def test_code_that_was_changed_there_is_never_run(agent: AgentClient, source: Path) -> None:
    code = await deploy(agent, source)
    Path(code.path, "trainer/__init__.py").write_text("import os\n")
    with pytest.raises(HostError, match="does not hold what its name says: remove it"):
        await deploy(agent, source)
    Path(code.path).chmod(0o777)
    with pytest.raises(HostError, match="is not ours alone to write in"):
        await deploy(agent, source)


async def test_what_python_compiles_there_is_no_change(agent: AgentClient, source: Path) -> None:
    code = await deploy(agent, source)
    Path(code.path, "trainer/__pycache__").mkdir()
    Path(code.path, "trainer/__pycache__/x.pyc").write_bytes(b"compiled")
    assert await deploy(agent, source) == code


async def test_the_checkout_of_the_code_is_named(agent: AgentClient, source: Path) -> None:
    assert (await deploy(agent, source)).commit is None

    def git(*words: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        return subprocess.run(
            ["git", "-C", source, *identity, *words], check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    code = await deploy(agent, source)
    assert (code.commit, code.is_dirty) == (git("rev-parse", "HEAD"), False)
    (source / "new.py").write_text("")
    assert (await deploy(agent, source)).is_dirty


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


BAD_MEMBERS = [
    member("../escaped"),
    member("trainer/../../escaped"),
    member("/tmp/escaped"),
    member("trainer//x"),
    member("./x"),
    member("trainer/link", tarfile.SYMTYPE, "/etc/passwd"),
    member("trainer/hard", tarfile.LNKTYPE, "trainer/a.py"),
    member("trainer/fifo", tarfile.FIFOTYPE),
    member("trainer/device", tarfile.CHRTYPE),
]


async def send(agent: AgentClient, sha256: str, data: bytes) -> None:
    found = await agent.do("find-code", sha256=sha256)
    await agent.host.put(data, found["archive"])
    await agent.do("unpack", sha256=sha256, archive=found["archive"])


@pytest.mark.parametrize("bad", BAD_MEMBERS, ids=lambda m: f"{m.name}-{m.type.decode()}")
async def test_anything_but_plain_files_is_refused(agent: AgentClient, bad: tarfile.TarInfo) -> None:
    data = archive((member("trainer/a.py"), b"good"), (bad, b""))
    with pytest.raises(HostError, match="which is no plain file of it: nothing was kept"):
        await send(agent, "0" * 64, data)
    assert not list(Path(agent.workdir, "dflash-code").iterdir())
    assert not list(Path(agent.workdir).parent.rglob("escaped"))


async def test_a_wrong_hash_a_short_file_and_no_archive_are_refused(agent: AgentClient) -> None:
    bundle = pack(TOYS / "toy", "trainer")
    for data, sentence in (
        (archive((member("trainer/a.py"), b"other")), "not the code that was sent"),
        (bundle.archive[: len(bundle.archive) // 3], "no archive|not the code that was sent"),
        (b"no tar at all" * 100, "no archive"),
    ):
        with pytest.raises(HostError, match=sentence):
            await send(agent, bundle.sha256, data)
        assert not list(Path(agent.workdir, "dflash-code").iterdir())
    with pytest.raises(HostError, match=r"'\.\./x' is no hash of code"):
        await agent.do("unpack", sha256="../x", archive="x")
    with pytest.raises(HostError, match="is no place for an archive of this code"):
        await agent.do("unpack", sha256="0" * 64, archive="/etc/passwd")


async def test_the_same_code_sent_twice_at_once_arrives(agent: AgentClient, source: Path) -> None:
    codes = await asyncio.gather(*(deploy(agent, source) for _ in range(5)))
    assert len(set(codes)) == 1
    assert list(Path(agent.workdir, "dflash-code").iterdir()) == [Path(codes[0].path)]
