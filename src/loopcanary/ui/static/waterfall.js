// The waterfall of a start, zoomed: a range of time fills the width, and only what was in it is shown.
import { duration, made, offerRange, rangeWords, sliderOf } from "./range.js";

const OPEN_SHARE = 0.05;  // of the time that is shown, as the page itself opens rows
const LEAST_SHARE = 1e-5;
const STOPS_APART = 0.01;
const TICKS = 6;

export function offerZoom(root) {
  for (const place of root.querySelectorAll("[data-waterfall]")) {
    if (!place.querySelector(".scrub")) offer(place, Number(place.dataset.waterfall));
  }
}

function rowsOf(place) {
  return [...place.querySelectorAll(".tree li")].map((item) => {
    const bar = item.querySelector(".tree-bar");
    const drawn = bar.querySelector("rect:not(.rail)");
    const begin = Number(drawn.getAttribute("x")) / 100;
    const end = begin + Number(drawn.getAttribute("width")) / 100;
    return { item, bar, begin, end, fold: item.querySelector(":scope > details"), name: item.querySelector(".tree-name").textContent.trim() };
  });
}

function offer(place, length) {
  const rows = rowsOf(place);
  const bars = rows.map((row) => row.bar);
  const slider = sliderOf("Moment of the start");
  const back = made("button", { type: "button", textContent: "Whole start" });
  const told = made("output", { textContent: "Drag over the bars: that time fills the width. Click a bar: its time does. By keys: arrows in the row Moment, with Shift a range, then Enter. Escape: back to the whole." });
  place.before(made("div", { className: "flame-tools" }, back, told));
  place.querySelector(".tree-head").after(made("div", { className: "tree-row" }, made("span", { className: "tree-name dim", textContent: "Moment" }), made("span"), made("span"), slider, made("span")));
  place.classList.add("zooms");
  let view = [0, 1];

  const placeOf = (share) => view[0] + share * (view[1] - view[0]);
  const shareOf = (at) => (at - view[0]) / (view[1] - view[0]);
  const steps = () => ((view[1] - view[0]) * length) / 100;
  const sayRange = (from, to) => { told.textContent = rangeWords(placeOf(from) * length, placeOf(to) * length, steps()); };
  const show = (from, to) => {
    if (to - from < LEAST_SHARE) return;
    view = [from, to];
    fit(rows, from, to);
    drawTicks(place.querySelector(".ticks"), from * length, to * length);
    sayRange(0, 1);
  };
  const shown = () => rows.filter((row) => row.bar.getClientRects().length);
  const forget = offerRange(place, bars, slider, {
    words: (share) => `At ${duration(placeOf(share) * length, steps())}`,
    next: (share, step) => stopAfter(shown().flatMap((row) => [shareOf(row.begin), shareOf(row.end)]), share, step),
    moment: (share) => {
      const at = placeOf(share);
      const inside = shown().filter((row) => row.begin <= at && at <= row.end).pop();
      told.textContent = `At ${duration(at * length, steps())}${inside ? `: ${inside.name}, ${rangeWords(inside.begin * length, inside.end * length, steps())}` : ""}`;
    },
    range: sayRange,
    chosen: (range, isDone) => { if (range && isDone) zoom(...range.map(placeOf)); },
    clicked: (lane, share) => {
      const row = rows.find((one) => one.bar === lane);
      const near = (view[1] - view[0]) * STOPS_APART;
      if (row && row.begin - near <= placeOf(share) && placeOf(share) <= row.end + near) zoom(row.begin, row.end);
    },
    left: () => show(0, 1),
  });
  const zoom = (from, to) => {
    forget();
    show(from, to);
  };
  back.addEventListener("click", () => zoom(0, 1));
  // A row folds by a click, but not by one on its bar.
  for (const bar of bars) bar.addEventListener("click", (event) => event.preventDefault());
}

function fit(rows, from, to) {
  const length = to - from;
  const isWhole = from <= 0 && to >= 1;
  const seen = (row) => Math.min(row.end, to) - Math.max(row.begin, from);
  const isIn = (row) => seen(row) > 0 && row.begin < to - length / 1000 && row.end > from + length / 1000;
  for (const row of rows) {
    row.bar.setAttribute("viewBox", `${from * 100} 0 ${length * 100} 8`);
    row.item.hidden = !isWhole && !rows.some((one) => isIn(one) && row.item.contains(one.item));
    // One that is folded because it is short, in the whole.
    const isShort = row.fold && row.end - row.begin < OPEN_SHARE;
    if (isShort && isWhole && row.isOpened) row.fold.open = row.isOpened = false;
    if (isShort && !isWhole && !row.fold.open && seen(row) >= OPEN_SHARE * length) row.fold.open = row.isOpened = true;
  }
}

// The next begin or end of a row; -1, 1: before, after; 0: the first.
function stopAfter(edges, share, step) {
  const stops = [0];
  for (const edge of edges.sort((one, other) => one - other)) {
    if (edge - stops.at(-1) >= STOPS_APART && edge <= 1 - STOPS_APART) stops.push(edge);
  }
  stops.push(1);
  if (step === 0 || step === -Infinity) return 0;
  if (step === Infinity) return 1;
  return step > 0 ? stops.find((one) => one > share + 1e-9) ?? 1 : stops.findLast((one) => one < share - 1e-9) ?? 0;
}

// Round moments, as the page itself has them.
function drawTicks(axis, from, to) {
  let step = (to - from) / TICKS;
  const power = 10 ** Math.floor(Math.log10(step));
  step = power * [1, 2, 5, 10].find((one) => one * power >= step);
  axis.replaceChildren();
  for (let number = Math.ceil(from / step); number * step <= to; number += 1) {
    const share = (number * step - from) / (to - from);
    const text = document.createElementNS(axis.namespaceURI, "text");
    for (const [name, value] of [["x", `${share * 100}%`], ["y", 12], ["text-anchor", share < 0.04 ? "start" : share > 0.94 ? "end" : "middle"]]) text.setAttribute(name, value);
    text.textContent = duration(number * step, step);
    axis.append(text);
  }
}
