// A moment, or a range of time, that is chosen on a drawing: pointed at, dragged over, or by keys in a row of its own.

const NEAR_PX = 4;

export function made(name, fields = {}, ...children) {
  const element = Object.assign(document.createElement(name), fields);
  element.append(...children);
  return element;
}

// `step`: what has to be told apart; without it, three digits.
export function duration(ns, step = 0) {
  if (ns === 0) return "0";
  const [unit, word] = ns >= 1e9 ? [1e9, "s"] : [1e6, "ms"];
  if (!step) return `${Number((ns / unit).toPrecision(3))} ${word}`;
  return `${(ns / unit).toFixed(Math.min(Math.max(-Math.floor(Math.log10(step / unit) + 1e-9), 0), 6))} ${word}`;
}

export function rangeWords(from, to, step = 0) {
  return `${duration(Math.max(from, 0), step)} to ${duration(Math.max(to, 0), step)}`;
}

// The row in which keys move the moment.
export function sliderOf(name) {
  const slider = made("div", { className: "scrub", tabIndex: 0 });
  for (const [key, value] of [["role", "slider"], ["aria-label", name], ["aria-valuemin", 0], ["aria-valuemax", 100], ["aria-valuenow", 0]]) slider.setAttribute(key, value);
  return slider;
}

// `around`: what is drawn into; `lanes`: where it is pointed at, all as wide as the slider. Moments are shares of that
// width. `told`: `words` of a moment, and the `next` one; `moment` and `range`, as they change; `chosen`: a range, or null,
// and whether a drag or Enter ended it; `clicked`: a lane, and where; `left`: by Escape. Gives what forgets it all.
export function offerRange(around, lanes, slider, told) {
  const line = made("div", { className: "cursor", hidden: true });
  const band = made("div", { className: "band", hidden: true });
  around.append(band, line);
  const state = { at: 0, from: null, isPinned: false, pressed: null };

  const put = (element, from, to) => {
    const own = around.getBoundingClientRect();
    const box = slider.getBoundingClientRect();
    element.style.left = `${box.left - own.left + from * box.width}px`;
    element.style.width = to === undefined ? "" : `${(to - from) * box.width}px`;
    element.hidden = false;
  };
  const range = () => (state.from === null || state.from === state.at ? null : [Math.min(state.from, state.at), Math.max(state.from, state.at)]);
  const redraw = () => {
    put(line, state.at);
    slider.setAttribute("aria-valuenow", Math.round(state.at * 100));
    slider.setAttribute("aria-valuetext", told.words(state.at));
    band.hidden = range() === null;
    if (range()) put(band, ...range());
    if (range()) told.range(...range());
    else told.moment(state.at);
  };
  const forget = () => {
    Object.assign(state, { from: null, isPinned: false, pressed: null });
    line.hidden = band.hidden = true;
  };

  const shareOf = (event) => {
    const box = slider.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
  };
  for (const lane of [...lanes, slider]) {
    lane.addEventListener("pointermove", (event) => {
      if (state.pressed === null && (state.isPinned || event.pointerType !== "mouse")) return;
      if (state.pressed !== null && Math.abs(event.clientX - state.pressed.x) > NEAR_PX) state.from = state.pressed.at;
      state.at = shareOf(event);
      redraw();
    });
    lane.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      lane.setPointerCapture(event.pointerId);
      state.at = shareOf(event);
      Object.assign(state, { from: null, pressed: { x: event.clientX, at: state.at } });
      redraw();
    });
    lane.addEventListener("pointerup", () => {
      if (state.pressed === null) return;
      state.isPinned = state.from !== null || !state.isPinned;
      state.pressed = null;
      told.chosen(range(), true);
      if (state.from === null) told.clicked?.(lane, state.at);
    });
    lane.addEventListener("pointercancel", () => { state.pressed = null; });
  }
  around.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    forget();
    told.left();
  });
  slider.addEventListener("keydown", (event) => {
    if (event.key === "Enter") told.chosen(range(), true);
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    // The first key shows where the cursor is.
    const there = told.next(state.at, line.hidden && Number.isFinite(step) ? 0 : step);
    state.from = event.shiftKey ? state.from ?? state.at : null;
    Object.assign(state, { at: there, isPinned: true });
    redraw();
    told.chosen(range(), false);
  });
  new ResizeObserver(() => { if (!line.hidden) redraw(); }).observe(around);
  return forget;
}
