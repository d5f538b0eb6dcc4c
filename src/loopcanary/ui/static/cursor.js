// A cursor over a stall's timeline: what each lane says at that moment, the stack, its lines in the source. A time
// that is dragged over is what the flame graph is about.
import { showInFlame } from "./flames.js";

const NEAR_PX = 4;

export function offerCursor(root) {
  for (const place of root.querySelectorAll("[data-course]")) {
    const told = document.getElementById(place.dataset.course);
    const timeline = place.closest("section").querySelector(".timeline");
    if (told && timeline && !place.firstChild) offer(place, timeline, JSON.parse(told.textContent));
  }
}

function made(name, fields = {}, ...children) {
  const element = Object.assign(document.createElement(name), fields);
  element.append(...children);
  return element;
}

function duration(ns) {
  if (ns === 0) return "0";
  if (ns >= 1e9) return `${Number((ns / 1e9).toPrecision(3))} s`;
  return `${Number((ns / 1e6).toPrecision(3))} ms`;
}

function rangeWords(from, to) {
  return `${duration(Math.max(from, 0))} to ${duration(Math.max(to, 0))}`;
}

function offer(place, timeline, course) {
  const lanes = [...timeline.querySelectorAll("svg.lane")];
  const line = made("div", { className: "cursor", hidden: true });
  const band = made("div", { className: "band", hidden: true });
  const slider = made("div", { className: "scrub", tabIndex: 0 });
  for (const [name, value] of [["role", "slider"], ["aria-label", "Moment of the stall"], ["aria-valuemin", 0], ["aria-valuemax", 100], ["aria-valuenow", 0]]) slider.setAttribute(name, value);
  timeline.append(made("div", { className: "lane-name", textContent: "Moment" }), slider, band, line);
  const state = { at: 0, from: null, isPinned: false, pressed: null };
  say(place, "Point at the timeline, or use the arrow keys in it: the stack of that moment. Drag: the flame graph of that time. Click: it stays. Escape: back.");

  const momentOf = (share) => course.begin + share * course.length;
  const wordsOf = (share) => {
    const ns = momentOf(share);
    return ns < 0 ? `${duration(-ns)} before the stall` : `At ${duration(ns)}`;
  };
  const spanAt = (share) => {
    const index = course.spans.findIndex(([offset, length]) => momentOf(share) < offset + length);
    return index < 0 ? course.spans.length - 1 : index;
  };
  const put = (element, from, to) => {
    const own = timeline.getBoundingClientRect();
    const box = lanes[0].getBoundingClientRect();
    element.style.left = `${box.left - own.left + from * box.width}px`;
    element.style.width = to === undefined ? "" : `${(to - from) * box.width}px`;
    element.hidden = false;
  };
  const redraw = () => {
    put(line, state.at);
    slider.setAttribute("aria-valuenow", Math.round(state.at * 100));
    slider.setAttribute("aria-valuetext", wordsOf(state.at));
    const isRange = state.from !== null && state.from !== state.at;
    band.hidden = !isRange;
    const [from, to] = [Math.min(state.from ?? 0, state.at), Math.max(state.from ?? 0, state.at)];
    if (isRange) put(band, from, to);
    if (isRange) showRange(place, lanes, rangeWords(momentOf(from), momentOf(to)), from, to);
    else showMoment(place, lanes, wordsOf(state.at), state.at, course.spans[spanAt(state.at)]?.[2]);
    markLines(isRange ? [] : course.lines[course.spans[spanAt(state.at)]?.[2]] ?? []);
  };
  const redrawFlame = () => {
    if (state.from === null || state.from === state.at) return;
    const [from, to] = [momentOf(Math.min(state.from, state.at)), momentOf(Math.max(state.from, state.at))];
    showInFlame(place.dataset.graph, treeOf(course, from, to), rangeWords(from, to));
  };
  const clear = () => {
    Object.assign(state, { from: null, isPinned: false, pressed: null });
    line.hidden = band.hidden = true;
    place.replaceChildren();
    markLines([]);
    showInFlame(place.dataset.graph, null, "");
  };

  const shareOf = (event) => {
    const box = lanes[0].getBoundingClientRect();
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
      if (state.from === null) showInFlame(place.dataset.graph, null, "");
      else redrawFlame();
    });
    lane.addEventListener("pointercancel", () => { state.pressed = null; });
  }
  slider.addEventListener("keydown", (event) => {
    const middle = (index) => {
      const [offset, length] = course.spans[Math.min(Math.max(index, 0), course.spans.length - 1)];
      return Math.min(Math.max((offset + length / 2 - course.begin) / course.length, 0), 1);
    };
    const here = spanAt(state.at);
    const first = line.hidden ? 0 : null;  // the first key shows where the cursor is
    const there = { ArrowRight: middle(first ?? here + 1), ArrowUp: middle(first ?? here + 1), ArrowLeft: middle(first ?? here - 1), ArrowDown: middle(first ?? here - 1), Home: middle(0), End: middle(course.spans.length - 1) }[event.key];
    if (event.key === "Escape") clear();
    if (there === undefined) return;
    event.preventDefault();
    state.from = event.shiftKey ? state.from ?? state.at : null;
    Object.assign(state, { at: there, isPinned: true });
    redraw();
    if (state.from === null) showInFlame(place.dataset.graph, null, "");
    else redrawFlame();
  });
  new ResizeObserver(() => { if (!line.hidden) redraw(); }).observe(timeline);
}

function say(place, words) {
  place.replaceChildren(made("p", { className: "quiet", textContent: words }));
}

// The stretches of a lane, each with where it is and what is said of it.
function stretches(lane) {
  return [...lane.querySelectorAll(":scope > rect")].filter((rect) => rect.querySelector("title") && !rect.classList.contains("unseen")).map((rect) => ({
    from: Number(rect.getAttribute("x")) / 100,
    to: (Number(rect.getAttribute("x")) + Number(rect.getAttribute("width"))) / 100,
    words: rect.querySelector("title").textContent,
    label: rect.dataset.label,
  }));
}

function listOf(title, rows) {
  const list = made("dl", { className: "facts" });
  for (const [name, words] of rows) list.append(made("dt", { textContent: name }), made("dd", { textContent: words }));
  return made("div", {}, made("h3", { textContent: title }), list);
}

function nameOf(lane) {
  return document.getElementById(lane.getAttribute("aria-labelledby")).textContent;
}

function showMoment(place, lanes, title, at, stack) {
  const rows = lanes.map((lane) => [nameOf(lane), stretches(lane).filter((one) => one.from <= at && at <= one.to).map((one) => one.words).pop()]);
  const frames = document.querySelector(`[data-stack="${stack}"] > .frames`)?.cloneNode(true);
  place.replaceChildren(listOf(title, rows.filter(([, words]) => words)), frames ?? made("p", { className: "quiet", textContent: "No stack is shown of that moment." }));
}

function showRange(place, lanes, title, from, to) {
  const rows = lanes.map((lane) => {
    const shares = new Map();
    for (const one of stretches(lane)) {
      const share = (Math.min(one.to, to) - Math.max(one.from, from)) / (to - from);
      if (share > 0) shares.set(one.label, (shares.get(one.label) ?? 0) + share);
    }
    const ranked = [...shares].sort((one, other) => other[1] - one[1]).slice(0, 4);
    return [nameOf(lane), ranked.map(([label, share]) => `${label ? `${label} ` : ""}${Number(Math.min(share * 100, 100).toPrecision(2))} %`).join(", ")];
  });
  place.replaceChildren(listOf(title, rows.filter(([, words]) => words)));
}

function markLines(lines) {
  for (const one of document.querySelectorAll(".code .line.now")) one.classList.remove("now");
  for (const figure of document.querySelectorAll(".code[data-file]")) {
    for (const one of figure.querySelectorAll(".line")) {
      const here = `${figure.dataset.file}:${one.querySelector(".number").textContent}`;
      one.classList.toggle("now", lines.includes(here));
    }
  }
}

// The stacks of a part of the stall, as the flame graph takes them.
function treeOf(course, from, to) {
  const root = { name: "stalled time", place: "", own: false, value: 0, children: [] };
  for (const [offset, length, stack, leaf] of course.spans) {
    const ns = Math.min(offset + length, to) - Math.max(offset, from);
    if (ns <= 0 || !course.stacks[stack]?.length) continue;
    const path = course.stacks[stack].map((index) => course.frames[index]);
    if (leaf) path.push({ name: leaf[1], place: "", own: false, doing: leaf[0] });
    let node = root;
    node.value += ns;
    for (const frame of path) {
      let below = node.children.find((one) => one.name === frame.name && one.place === frame.place);
      if (!below) node.children.push(below = { ...frame, value: 0, children: [] });
      below.value += ns;
      node = below;
    }
  }
  return root;
}
