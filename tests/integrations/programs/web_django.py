"""A Django project in one file, for WSGI and ASGI servers."""

from __future__ import annotations

import time

from blocking import until_sampled
from django.conf import settings
from django.http import HttpResponse
from django.urls import include, path

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="none")

from django.core.asgi import get_asgi_application  # noqa: E402 - settings come first
from django.core.wsgi import get_wsgi_application  # noqa: E402


def order(request, order_id):
    time.sleep(0.8)  # order
    return HttpResponse(str(order_id))


async def item(request, item_id):
    for seconds in until_sampled(0.25):
        time.sleep(seconds)  # noqa: ASYNC251  # item
    return HttpResponse(str(item_id))


def quick(request):
    return HttpResponse("quick")


urlpatterns = [
    path("shop/", include([path("orders/<int:order_id>/", order), path("items/<int:item_id>/", item)])),
    path("quick", quick),
]
asgi = get_asgi_application()
wsgi = get_wsgi_application()
