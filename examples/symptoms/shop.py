import time

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route


async def price(request):
    time.sleep(0.25)  # a client library that blocks
    return JSONResponse({"price": 7})


app = Starlette(routes=[Route("/price/{item}", price)])
