// A cursor over a stall's timeline: what each lane says at that moment, the stack, its lines in the source. A time
// that is dragged over is what the flame graph is about.
import { showInFlame } from "./flames.js";
import { duration, made, offerRange, rangeWords, sliderOf } from "./range.js";

export function offerCursor(root) {
  for (const place of root.querySelectorAll("[data-course]")) {
    const told = document.getElementById(place.dataset.course);
    const timeline = place.closest("section").querySelector(".timeline");
    if (told && timeline && !place.firstChild) offer(place, timeline, JSON.parse(told.textContent));
  }
}

function offer(place, timeline, course) {
  const lanes = [...timeline.querySelectorAll("svg.lane")];
  const slider = sliderOf("Moment of the stall");
  timeline.append(made("div", { className: "lane-name", textContent: "Moment" }), slider);
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
  offerRange(timeline, lanes, slider, {
    words: wordsOf,
    next: (share, step) => {
      const index = Math.min(Math.max(spanAt(share) + step, 0), course.spans.length - 1);
      const [offset, length] = course.spans[index];
      return Math.min(Math.max((offset + length / 2 - course.begin) / course.length, 0), 1);
    },
    moment: (share) => {
      const stack = course.spans[spanAt(share)]?.[2];
      showMoment(place, lanes, wordsOf(share), share, stack);
      markLines(course.lines[stack] ?? []);
    },
    range: (from, to) => {
      showRange(place, lanes, rangeWords(momentOf(from), momentOf(to)), from, to);
      markLines([]);
    },
    chosen: (range) => {
      const [from, to] = range ? range.map(momentOf) : [];
      showInFlame(place.dataset.graph, range && treeOf(course, from, to), range ? rangeWords(from, to) : "");
    },
    left: () => {
      place.replaceChildren();
      markLines([]);
      showInFlame(place.dataset.graph, null, "");
    },
  });
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
