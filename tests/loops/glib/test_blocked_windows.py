"""Windows of GTK that take no input, though their loop is healthy: by what, and by which line."""

from __future__ import annotations

from typing import Any

import pytest
from tests.loops.window_desk import HEAD

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("gtk")]

WINDOW = """
tracer.start()
import gi
gi.require_version("Gtk", "{version}.0")
gi.require_version("GdkX11", "{version}.0")
import ctypes
from gi.repository import GdkX11, GLib, Gtk
is_3 = {version} == 3
watch = tracer._watches[-1]
look, looks = watch.look, []

def counted(*args):
    looks.append(1)
    return look(*args)

watch.look = counted

def window(title, *controls, **options):
    found, box = Gtk.Window(title=title, **options), Gtk.Box()
    (found.add if is_3 else found.set_child)(box)
    for control in controls:
        (box.add if is_3 else box.append)(control)
    return found

def show(one):
    one.show_all() if is_3 else one.present()

def content(one):
    return one.get_child()

def loses(one):
    "As where a window manager puts it away."
    x = ctypes.CDLL("libX11.so.6")
    x.XOpenDisplay.restype = ctypes.c_void_p
    server = ctypes.c_void_p(x.XOpenDisplay(None))
    x.XUnmapWindow(server, ctypes.c_ulong((one.get_window() if is_3 else one.get_surface()).get_xid()))
    x.XSync(server, 0)

def bar(*controls):
    found = Gtk.HeaderBar()
    for control in controls:
        found.pack_start(control)
    return found

def until(is_done, *work):
    "In turns of the loop: works, and looks whether it is done."
    steps, loop = [*work], GLib.MainLoop()

    def step():
        if steps:
            steps.pop(0)()
        elif is_done():
            loop.quit()
        return True

    GLib.timeout_add(5, step)
    loop.run()

def looked():
    return len(looks) > 16

main = window("Orders", Gtk.Button(label="Buy"), Gtk.Label(label="3 orders"), Gtk.Entry())
"""
LEFT_ON = {
    "a window that is insensitive": (
        """
def load():
    main.set_sensitive(False)

show(main)
until(lambda: desk.issues, load)
""",
        ["insensitive", "Window Orders", "load"],
    ),
    "its content, under a title bar of its own": (
        """
def load():
    content(main).set_name("orders")
    content(main).set_sensitive(False)

main.set_titlebar(bar(Gtk.Label(label="All")))
show(main)
until(lambda: desk.issues, load)
""",
        ["insensitive", "Box orders", "load"],
    ),
    "a modal window that is not seen": (
        """
dialog = window("Sure?", Gtk.Button(label="Yes"), modal=True, transient_for=main)
show(dialog)
dialog.hide()

def ask():
    dialog.present()

show(main)
until(lambda: desk.issues, ask, lambda: loses(dialog))
""",
        ["modal-window", "Window Sure?", "ask"],
    ),
    "a grab of what is hidden": (
        """
dialog = window("Sure?", field := Gtk.Entry())

def ask():
    show(dialog)
    field.grab_add()

show(main)
until(lambda: desk.issues, ask, lambda: dialog.hide())
""",
        ["gtk-grab", "Entry", "ask"],
    ),
    "a grab of what Python keeps no word of": (
        """
def ask():
    window("Sure?", Gtk.Entry()).get_child().get_children()[0].grab_add()

show(main)
until(lambda: desk.issues, ask)
""",
        ["gtk-grab", "Entry", "ask"],
    ),
}
MEANT = {
    "single controls, alone in their window": """
main = window("Orders", button := Gtk.Button(label="Buy"), count := Gtk.SpinButton())

def states():
    button.set_sensitive(False)
    count.set_sensitive(False)
    main.set_sensitive(False)
    main.set_sensitive(True)
""",
    "what lies beside a control": """
button = Gtk.Button(label="Cancel")
main.set_titlebar(bar(button))

def states():
    content(main).set_sensitive(False)
""",
    "beside a dialog": """
dialog = window("Sure?", Gtk.Button(label="Yes"), modal=True, transient_for=main)

def states():
    main.set_sensitive(False)
    show(dialog)
""",
    "a window without controls": """
main = window("Starts", Gtk.Label(label="..."))

def states():
    main.set_sensitive(False)
""",
    "what was taken back by other means": """
dialog = window("Sure?", Gtk.Button(label="Yes"), modal=True)

def states():
    main.set_sensitive(False)
    main.props.sensitive = True
    show(dialog)
    dialog.hide()
""",
    "a window that draws by itself": """
tools = Gtk.Box()
(tools.add if is_3 else tools.append)(Gtk.Button(label="Buy"))
main = window("Game", tools, Gtk.DrawingArea())

def states():
    tools.set_sensitive(False)
""",
    "a grab of a menu that is seen, and one that was given back": """
hidden = Gtk.Window()
hidden.realize()
popup = Gtk.Window(type=Gtk.WindowType.POPUP)
popup.add(Gtk.Button(label="Buy"))

def states():
    popup.show_all()
    popup.grab_add()
    hidden.grab_add()
    hidden.grab_remove()
""",
    "a function that goes on": """
def states():
    main.set_sensitive(False)
    context = GLib.MainContext.default()
    while not looked():
        context.iteration(True)
    main.set_sensitive(True)
""",
}
SHOWN = """
kept = window("Kept", Gtk.Entry())
kept.set_sensitive(False)  # it is not shown; so there are looks
show(main)
until(looked, states)
say()
"""


def of_both(stories: Any) -> Any:
    """GTK 4 has no grabs of programs."""
    return [
        pytest.param(version, name, id=f"{version}: {name}")
        for name in stories
        for version in (3, 4)
        if version == 3 or "grab" not in name
    ]


@pytest.mark.parametrize(("gtk", "story"), of_both(LEFT_ON), indirect=["gtk"])
def test_what_is_left_on_is_reported_with_its_line(request, tell, story):
    program, told = LEFT_ON[story]
    version = request.node.callspec.params["gtk"]
    found = tell(HEAD + WINDOW.format(version=version) + program + "say()\n")
    assert found == {"told": [told], "errors": []}


@pytest.mark.parametrize(("gtk", "story"), of_both(MEANT), indirect=["gtk"])
def test_what_may_be_meant_is_not_reported(request, tell, story):
    version = request.node.callspec.params["gtk"]
    found = tell(HEAD + WINDOW.format(version=version) + MEANT[story] + SHOWN)
    assert found == {"told": [], "errors": []}


BY_THE_LOOP = """
show(main)
GLib.idle_add(main.set_sensitive, False)  # as a thread would
until(lambda: desk.issues)
(issue,) = desk.issues
print(json.dumps([issue.subject, issue.switched_on, desk.errors]))
"""
UNNOTICED = """
import gi
gi.require_version("Gtk", "{version}.0")
from gi.repository import Gtk

def answers():
    main = Gtk.Window(title="Orders")
    asked = [main.set_sensitive(False), main.get_sensitive(), Gtk.Widget.set_sensitive(main, sensitive=True)]
    for wrong in ((), (1, 2), ([],)):
        try:
            main.set_sensitive(*wrong)
        except TypeError as error:
            asked.append(str(error))
    return [*asked, main.get_sensitive(), main.set_modal.__name__, main.show.__name__]

base = next(one for one in Gtk.Widget.__mro__ if "set_sensitive" in vars(one))
before = vars(base)["set_sensitive"]
plain = answers()
tracer.start()
put = vars(base)["set_sensitive"] is not before
watched = answers()
tracer.stop()
say(same=plain == watched or [plain, watched], put=put, restored=vars(base)["set_sensitive"] is before)
"""


@pytest.mark.parametrize("gtk", [3], indirect=True)
def test_what_the_loop_calls_has_no_line(tell):
    assert tell(HEAD + WINDOW.format(version=3) + BY_THE_LOOP) == ["Window Orders", [], []]


@pytest.mark.parametrize("gtk", [3, 4], indirect=True)
def test_the_program_notices_nothing(request, tell):
    found = tell(HEAD + UNNOTICED.format(version=request.node.callspec.params["gtk"]))
    assert found == {"told": [], "errors": [], "same": True, "put": True, "restored": True}
