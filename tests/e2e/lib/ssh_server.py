# SPDX-License-Identifier: MIT
"""An SSH server that gives back what it is sent. Arguments: address, host key, the public key that may log in."""
import asyncio
import sys

import asyncssh

PORTS = (22, 2222)


async def give_back(process):
    while data := await process.stdin.read(65536):
        process.stdout.write(data)
    process.exit(0)


async def main():
    address, key, allowed = sys.argv[1:]
    for port in PORTS:
        await asyncssh.listen(address, port, server_host_keys=[key], authorized_client_keys=allowed,
                              process_factory=give_back)
    print("ready", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
