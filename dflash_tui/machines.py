"""What a person does to machines. The one place where config and remote are put together for it, without a store.

The commands and the screens both come here. Prints nothing; what only a person can decide, a host asks itself.
"""

from collections.abc import Sequence

from dflash_tui.config import HostSpec
from dflash_tui.hosts import open_host
from dflash_tui.remote import execute as remote
from dflash_tui.remote import scripts
from dflash_tui.remote.client import AgentClient
from dflash_tui.remote.execute import Ended, Order, Streams
from dflash_tui.remote.scripts import Script


async def execute(
    spec: HostSpec, script: Script, args: Sequence[str], streams: Streams, *, timeout_s: float | None = None
) -> Ended:
    """Push a script and run it in the host's workdir, to its end. What ends this ends the script as well."""
    host = open_host(spec)
    try:
        async with AgentClient.open(host, spec) as agent:
            path = await scripts.push(agent, script)
            order = Order(script.argv(path, args, agent.python), agent.workdir, spec.env, agent.python)
            command = agent.command
        return await remote.execute(host, command, order, streams, timeout_s=timeout_s)
    finally:
        await host.close()
