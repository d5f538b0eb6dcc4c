// What a report that is a file can do beyond being read: charts, flame graphs, opening and filtering bugs.
import { drawCharts } from "./charts.js";
import { drawFlames } from "./flames.js";
import { offerZoom } from "./waterfall.js";

const bugs = [...document.querySelectorAll("details.bug")];

function show(bug) {
  if (bug.open) drawFlames(bug);
  sideways(bug);
}

// What has to be scrolled sideways is reached by keys, too.
function sideways(root) {
  for (const one of root.querySelectorAll(".scroll")) {
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
  }
}

function openNamed() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const bug = named?.closest("details.bug");
  if (!bug) return;
  bug.hidden = false;
  bug.open = true;
  bug.scrollIntoView();
  bug.querySelector("summary").focus({ preventScroll: true });
}

function offerFilters(form) {
  const said = document.getElementById("found");
  const texts = new Map();
  const textOf = (bug) => {
    if (!texts.has(bug)) texts.set(bug, bug.textContent.toLowerCase());
    return texts.get(bug);
  };
  const filter = () => {
    const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const cause = form.elements.cause.value;
    let found = 0;
    for (const bug of bugs) {
      const fits = (!cause || bug.dataset.cause === cause) && words.every((word) => textOf(bug).includes(word));
      bug.hidden = !fits;
      found += fits;
    }
    said.textContent = words.length || cause ? `${found} of ${bugs.length} match` : "";
  };
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.elements.all.addEventListener("click", () => {
    const shown = bugs.filter((bug) => !bug.hidden);
    const open = shown.some((bug) => !bug.open);
    for (const bug of shown) bug.open = open;
  });
  filter();
}

// A graph is as wide as the screen; on paper it is made to fit.
function fit() {
  for (const svg of document.querySelectorAll(".flame svg")) {
    svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
  }
}

function unfit() {
  for (const svg of document.querySelectorAll(".flame svg")) svg.removeAttribute("viewBox");
}

drawCharts(document);
offerZoom(document);
sideways(document);
for (const bug of bugs) {
  show(bug);
  bug.addEventListener("toggle", () => show(bug));
}
for (const one of document.querySelectorAll("[data-drawn]")) drawFlames(one);
const form = document.getElementById("filters");
if (form) offerFilters(form);
addEventListener("hashchange", openNamed);
addEventListener("beforeprint", fit);
addEventListener("afterprint", unfit);
if (location.hash) openNamed();
