"""An assistant answers from a law library; its retriever knows only how to ask synchronously."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
import time
import urllib.parse
import urllib.request

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough


class Library(http.server.BaseHTTPRequestHandler):
    """Stands for the library's search, which takes its time."""

    def do_GET(self) -> None:
        threading.Event().wait(0.7)
        asked = urllib.parse.unquote(self.path.rpartition("=")[2])
        body = json.dumps([f"Article {n} on {asked}" for n in (4, 17)]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        pass


class LibraryRetriever(BaseRetriever):
    address: str

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        url = self.address + "/search?q=" + urllib.parse.quote(query)
        with urllib.request.urlopen(url, timeout=10) as answer:
            return [Document(page_content=text) for text in json.load(answer)]


def make_chain(address: str) -> object:
    prompt = ChatPromptTemplate.from_template("Answer from {context}: {question}")
    model = FakeListChatModel(responses=["You may."], sleep=0.5)
    return (
        {"context": LibraryRetriever(address=address), "question": RunnablePassthrough()}
        | prompt
        | model
    )


def start_library() -> str:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Library)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    chain = make_chain(start_library())
    print((await chain.ainvoke("good morning")).content)
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    await asyncio.sleep(0.2)
    for question in ("dogs in the park", "music at night"):
        print((await chain.ainvoke(question)).content)
        await asyncio.sleep(0.2)
    beats.cancel()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
