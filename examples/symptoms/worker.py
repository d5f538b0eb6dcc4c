import asyncio
import re


async def parse(text):
    return re.match(r"(a+)+$", text)


async def main():
    await asyncio.sleep(0.1)
    await parse("a" * 40 + "!")


asyncio.run(main())
