"""A hub looks every second which pods of its cluster run, with the asyncio client of Kubernetes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter

from kubernetes_asyncio import client

API_SERVER = """
import http.server, json

def pod(number):
    labels = {"app": "jupyterhub", "component": "singleuser-server", "user": f"user-{number}"}
    env = [{"name": f"SETTING_{place}", "value": str(place)} for place in range(8)]
    container = {"name": "notebook", "image": "lab:1", "env": env, "ports": [{"containerPort": 8888}],
                 "volumeMounts": [{"name": "home", "mountPath": "/home"}]}
    return {"metadata": {"name": f"jupyter-{number}", "namespace": "hub", "labels": labels},
            "spec": {"containers": [container], "volumes": [{"name": "home"}], "nodeName": f"node-{number % 9}"},
            "status": {"phase": "Running" if number % 5 else "Pending",
                       "conditions": [{"type": kind, "status": "True"} for kind in ("Ready", "Initialized")]}}

LIST = json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [pod(n) for n in range(800)]}).encode()

class Api(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(LIST)))
        self.end_headers()
        self.wfile.write(LIST)

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Api)
print(server.server_port, flush=True)
server.serve_forever()
"""


async def count_phases(api: client.CoreV1Api) -> Counter[str]:
    pods = await api.list_pod_for_all_namespaces()
    return Counter(pod.status.phase for pod in pods.items)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(port: str) -> None:
    late: list[float] = []
    async with client.ApiClient(client.Configuration(host=f"http://127.0.0.1:{port}")) as connection:
        api = client.CoreV1Api(connection)
        beats = asyncio.create_task(heartbeat(late))
        for _ in range(3):
            await asyncio.sleep(1)
            print(dict(await count_phases(api)))
        beats.cancel()
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    server = subprocess.Popen([sys.executable, "-c", API_SERVER], stdout=subprocess.PIPE, text=True)
    asyncio.run(main(server.stdout.readline().strip()))
    server.kill()
    server.wait()
