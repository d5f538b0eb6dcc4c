"""A home automation asks three printers for their uptime over SNMP now and then, beside all else that it does."""

from __future__ import annotations

import asyncio
import threading
import time

from pyasn1.codec.ber import decoder, encoder
from pysnmp.hlapi.v3arch.asyncio import (
    CommunityData,
    ContextData,
    ObjectIdentity,
    ObjectType,
    SnmpEngine,
    UdpTransportTarget,
    get_cmd,
)
from pysnmp.proto import api

UPTIME = "1.3.6.1.2.1.1.3.0"


class Printer(asyncio.DatagramProtocol):
    """The device in the network: answers each question with its uptime."""

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        module = api.PROTOCOL_MODULES[api.SNMP_VERSION_1]
        question, _rest = decoder.decode(data, asn1Spec=module.Message())
        answer = module.apiMessage.get_response(question)
        pdu = module.apiMessage.get_pdu(answer)
        module.apiPDU.set_varbinds(pdu, [(UPTIME, module.TimeTicks(423100))])
        self.transport.sendto(encoder.encode(answer), address)


def run_printer(ports: list[int], is_up: threading.Event) -> None:
    async def answer() -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(Printer, local_addr=("127.0.0.1", 0))
        ports.append(transport.get_extra_info("sockname")[1])
        is_up.set()
        await asyncio.sleep(3600)

    asyncio.run(answer())


class PrinterSensor:
    def __init__(self, name: str, port: int) -> None:
        self.name = name
        self.port = port
        self.engine = SnmpEngine()
        self.uptime: str | None = None

    async def update(self) -> None:
        target = await UdpTransportTarget.create(("127.0.0.1", self.port), timeout=2, retries=0)
        wanted = ObjectType(ObjectIdentity(UPTIME))
        community = CommunityData("public", mpModel=0)
        error, status, _index, found = await get_cmd(self.engine, community, target, ContextData(), wanted)
        self.uptime = str(error or status or found[0])


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    ports: list[int] = []
    is_up = threading.Event()
    threading.Thread(target=run_printer, args=(ports, is_up), daemon=True).start()
    await asyncio.to_thread(is_up.wait)
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    await asyncio.sleep(0.5)
    sensors = [PrinterSensor(name, ports[0]) for name in ("office", "hall", "cellar")]
    for _ in range(2):
        for sensor in sensors:
            await asyncio.sleep(0.7)
            await sensor.update()
            print(sensor.name, sensor.uptime)
    beats.cancel()
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
