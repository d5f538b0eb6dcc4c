"""Tasks on a local Dask cluster pack their data with a function of a C library, called through ctypes."""

from __future__ import annotations

import asyncio
import ctypes
import random
import time

from dask.distributed import Client, LocalCluster


def make_survey(number: int) -> bytes:
    return random.Random(number).randbytes(2_500_000).hex().encode()


def pack(survey: bytes) -> int:
    library = ctypes.PyDLL("libz.so.1")
    packed = ctypes.create_string_buffer(len(survey))
    size = ctypes.c_ulong(len(packed))
    if library.compress2(packed, ctypes.byref(size), survey, ctypes.c_ulong(len(survey)), 9) != 0:
        raise RuntimeError("cannot be packed")
    return size.value


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    late: list[float] = []
    async with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, asynchronous=True
    ) as cluster:
        async with Client(cluster, asynchronous=True) as client:
            surveys = client.map(make_survey, range(3))
            await client.gather(client.map(len, surveys))
            await asyncio.sleep(0.5)
            beats = asyncio.create_task(heartbeat(late))
            for survey in surveys:
                await asyncio.sleep(0.5)
                print(f"packed to {await client.submit(pack, survey)} bytes")
            beats.cancel()
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
