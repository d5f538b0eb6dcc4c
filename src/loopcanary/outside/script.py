"""The script that another process is given to run: it finds loopcanary, there or here, and calls it."""

from __future__ import annotations

_SCRIPT = """\
def run(folder, package, only_if_loaded):
    import os
    import sys

    def forget():
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)

    def answer(found):
        import json

        with open(folder + "/answer.json.new", "w", encoding="utf-8") as file:
            json.dump(found, file)
        os.rename(folder + "/answer.json.new", folder + "/answer.json")

    def load():
        from importlib.util import find_spec, module_from_spec, spec_from_file_location

        if "loopcanary" in sys.modules or find_spec("loopcanary") is not None:
            return
        place = os.path.join(package, "__init__.py")
        if not os.path.exists(place):
            raise ImportError(
                "loopcanary is not installed in its Python, and cannot be taken from " + package
                + ", which it does not see"
            )
        spec = spec_from_file_location("loopcanary", place, submodule_search_locations=[package])
        module = module_from_spec(spec)
        sys.modules["loopcanary"] = module
        spec.loader.exec_module(module)

    try:
        try:
            os.rename(folder + "/waiting", folder + "/taken")
        except OSError:
            return forget()
        try:
            if only_if_loaded and "loopcanary" not in sys.modules:
                return answer({"was_watched": False})
            load()
            from loopcanary.assembly.attach_inside import begin

            begin(folder)
        except Exception as error:
            answer({"error": str(error) or type(error).__name__, "kind": type(error).__name__})
    except OSError:
        return


run({folder!r}, {package!r}, {only_if_loaded!r})
"""


def script(package: str, *, only_if_loaded: bool) -> str:
    """Its text; `{folder!r}` in it is still to be replaced by the folder of the request.

    `package`: folder of this loopcanary, for processes that have none. It raises nothing into the process and
    leaves no name in it. A request that was withdrawn is cleared away.
    """
    return _SCRIPT.replace("{package!r}", repr(package)).replace("{only_if_loaded!r}", repr(only_if_loaded))
