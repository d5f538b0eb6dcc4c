// Follows the program: when something changed, the parts of the page that say so are replaced.

const PAUSE_MS = 2000;

export function follow(dress) {
  const kind = document.getElementById("main")?.dataset.live;
  if (!window.EventSource) return;
  let seen = null;
  let refreshed = 0;
  let waiting = null;

  const refresh = async () => {
    waiting = null;
    if (isInUse()) {
      waiting = setTimeout(refresh, PAUSE_MS);
      return;
    }
    refreshed = Date.now();
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (kind === "trouble" && answer.ok) location.reload();
      // A page that cannot be made any more says why; the rest stays as it was.
      else replaceParts(await answer.text(), dress, answer.ok ? "[data-refresh]" : "#notices, #status");
    } catch {
      // The server has ended; the stream says so.
    }
  };

  const heard = (event) => {
    const now = JSON.parse(event.data);
    const key = kind === "moving" ? `${now.version} ${now.moving}` : now.version;
    const isNews = seen === null ? now.version !== document.body.dataset.version : key !== seen;
    seen = key;
    if (isNews && kind !== "none" && waiting === null) {
      waiting = setTimeout(refresh, Math.max(0, refreshed + PAUSE_MS - Date.now()));
    }
  };
  // A browser keeps no more than six connections to one host: pages in the background leave theirs to others.
  let stream = null;
  const listen = () => {
    if (document.hidden) {
      stream?.close();
      stream = null;
    } else if (stream === null) {
      stream = new EventSource("/live");
      stream.onmessage = heard;
      stream.onerror = () => {
        const status = document.getElementById("status");
        if (stream?.readyState === EventSource.CLOSED && status) status.textContent = "loopcanary ui has ended";
      };
    }
  };
  document.addEventListener("visibilitychange", listen);
  listen();
}

// What the reader is using is not replaced.
function isInUse() {
  const held = document.activeElement;
  if (held && held.closest("[data-refresh]") && held.matches("input, select, textarea")) return true;
  return !document.hidden && String(getSelection()).length > 0;
}

function replaceParts(text, dress, which) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  for (const old of document.querySelectorAll(which)) {
    const next = fresh.getElementById(old.id);
    if (!next || next.innerHTML === old.dataset.was) continue;
    const was = next.innerHTML;
    keepState(old, next);
    const focused = old.contains(document.activeElement) ? pathOf(old, document.activeElement) : null;
    old.replaceChildren(...next.childNodes);
    old.dataset.was = was;
    if (focused) elementAt(old, focused)?.focus({ preventScroll: true });
    dress(old);
  }
  document.body.dataset.version = fresh.body.dataset.version ?? "";
}

function keepState(old, next) {
  const opened = [...old.querySelectorAll("details")].map((one) => one.open);
  [...next.querySelectorAll("details")].forEach((one, index) => {
    if (index < opened.length) one.open = opened[index];
  });
}

function pathOf(root, element) {
  const path = [];
  for (let one = element; one !== root; one = one.parentElement) path.unshift([...one.parentElement.children].indexOf(one));
  return path;
}

function elementAt(root, path) {
  return path.reduce((one, index) => one?.children[index], root);
}
