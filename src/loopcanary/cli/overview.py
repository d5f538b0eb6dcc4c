"""What `loopcanary --help` shows: the commands by what they are for, and examples of each."""

from __future__ import annotations

SECTIONS = {
    "Watch": ("run", "attach"),
    "Look": ("report", "show", "ui", "top", "dump", "methods", "tracers", "health"),
    "Compare": ("diff", "ci"),
    "Send": ("notify", "export", "bundle", "import", "upload"),
    "Care": ("keep", "doctor", "clean"),
}

EXAMPLES = {
    "run": (
        "loopcanary run app.py --port 8080",
        "loopcanary run --threshold 50ms -m uvicorn shop:app --workers 2",
    ),
    "attach": ("loopcanary attach 4711", "loopcanary attach --stop 4711"),
    "report": (
        "loopcanary report",
        "loopcanary report /srv/shop/.loopcanary --since 2h --cause lock",
        "loopcanary report --format html -o stalls.html",
    ),
    "show": ("loopcanary show 1", "loopcanary show 3:4a5385ab0398 --format markdown"),
    "ui": ("loopcanary ui", "loopcanary ui web/.loopcanary worker/.loopcanary --no-browser"),
    "top": ("loopcanary top", "loopcanary top --once --filter shop"),
    "dump": ("loopcanary dump 4711", "loopcanary dump --all 4711"),
    "methods": (
        "loopcanary methods 4711 --for 10s",
        "loopcanary methods 4711 shop --format speedscope -o calls.json",
    ),
    "tracers": ("loopcanary tracers 4711", "loopcanary tracers 4711 --stop locks"),
    "health": ("loopcanary health", "loopcanary health --name worker --limit 30s"),
    "diff": (
        "loopcanary diff before/.loopcanary after/.loopcanary",
        "loopcanary diff --version-a 1.1 --version-b 1.2 --fail-on-worse",
    ),
    "ci": ("loopcanary ci -- python -m pytest", "loopcanary ci --store stalls -- ./load-test.sh"),
    "notify": ("loopcanary notify --desktop", "loopcanary notify --webhook --from anr /srv/shop/.loopcanary"),
    "export": (
        "loopcanary export --format perfetto -o stalls.pftrace",
        "loopcanary export --format csv --since 2h --cause lock",
    ),
    "bundle": ("loopcanary bundle -o stalls.zip", "loopcanary bundle --redact paths,hosts -o stalls.zip"),
    "import": ("loopcanary import stalls.zip --store collected",),
    "upload": ("loopcanary upload https://stalls.example.org/in --since 1d",),
    "keep": (
        "loopcanary keep",
        "loopcanary keep /srv/shop/stalls /srv/jobs/stalls",
        "loopcanary keep --status",
    ),
    "doctor": ("loopcanary doctor",),
    "clean": ("loopcanary clean --older-than 7d", "loopcanary clean --bug 3:4a5385ab0398"),
}


def epilog(command: str) -> str:
    """Its examples, each on a line of its own."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in EXAMPLES[command])])
