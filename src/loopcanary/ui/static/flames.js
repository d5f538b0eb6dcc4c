// Flame graphs of stalled time with d3-flame-graph.

const graphs = new Map();

// Shows another tree in a graph, and says which; null: the whole again.
export function showInFlame(id, tree, words) {
  graphs.get(id)?.(tree, words);
}

export function drawFlames(root) {
  if (!window.flamegraph || !window.d3) return;
  for (const place of root.querySelectorAll("[data-flame]")) {
    const told = document.getElementById(place.dataset.flame);
    if (told && !place.firstChild) draw(place, JSON.parse(told.textContent));
  }
}

// Libraries that call one another become one frame, so that the program's own are what is read.
function folded(node, isRoot = true) {
  const isLibrary = (one) => !one.own && !one.doing;
  const below = new Map();
  const take = (child) => {
    if (!isRoot && isLibrary(node) && isLibrary(child)) {
      child.children.forEach(take);
      return;
    }
    const key = `${child.name}\n${child.place}`;
    const known = below.get(key) ?? { ...child, value: 0, calls: 0, children: [] };
    const [value, calls] = [known.value + child.value, known.calls + (child.calls ?? 0)];
    below.set(key, { ...known, value, calls, children: [...known.children, ...child.children] });
  };
  node.children.forEach(take);
  return { ...node, children: [...below.values()].map((one) => folded(one, false)) };
}

function words(node) {
  const { name, place, value, calls } = node.data;
  const times = calls > 1 ? ` ×${calls.toLocaleString("en")}` : "";
  const share = ((node.x1 - node.x0) * 100).toFixed(1);
  return `${name}${times}${place ? ` (${place})` : ""}: ${(value / 1e6).toFixed(1)} ms, ${share} %`;
}

function matches(node, term) {
  const { name, place } = node.data;
  return `${name} ${place || ""}`.toLowerCase().includes(term.toLowerCase());
}

// What is above a graph: the search, the way back, and the frame that is pointed at or what was found.
function addTools(place, chart, whole, dress) {
  const tools = document.createElement("div");
  tools.className = "flame-tools";
  const search = Object.assign(document.createElement("input"), { type: "search", placeholder: "function or file" });
  search.setAttribute("aria-label", `Search the flame graph of ${place.dataset.of}`);
  const back = Object.assign(document.createElement("button"), { type: "button", textContent: "Whole graph" });
  const fold = Object.assign(document.createElement("input"), { type: "checkbox" });
  const label = Object.assign(document.createElement("label"), { className: "check" });
  label.append(fold, "Fold libraries");
  const told = document.createElement("output");
  tools.append(search, label, back, told);
  place.before(tools);
  let found = "";
  chart.setSearchHandler((frames, weight, total) => {
    const share = total ? ((weight / total) * 100).toFixed(1) : "0";
    found = `${frames.length} ${frames.length === 1 ? "frame" : "frames"}, ${share} % of the time`;
  });
  search.addEventListener("input", () => {
    const term = search.value.trim();
    found = "";
    if (term) chart.search(term); else chart.clear();
    told.textContent = found;
    dress();
  });
  let shown = { tree: whole, words: "" };
  const redraw = () => {
    chart.resetZoom();
    chart.update(fold.checked ? folded(shown.tree) : shown.tree);
    back.textContent = shown.words ? `${shown.words}: back to the whole` : "Whole graph";
    dress();
  };
  graphs.set(place.dataset.flame, (tree, of) => {
    if (tree === null && !shown.words) return;
    shown = tree === null ? { tree: whole, words: "" } : { tree, words: of };
    if (tree !== null) place.closest("details")?.setAttribute("open", "");
    redraw();
  });
  fold.addEventListener("change", redraw);
  back.addEventListener("click", () => {
    shown = { tree: whole, words: "" };
    redraw();
  });
  return (node) => { told.textContent = node ? words(node) : found; };
}

function draw(place, tree) {
  const chart = window.flamegraph()
    .width(place.clientWidth || 600)
    .cellHeight(19)
    .minFrameSize(2)
    .transitionDuration(matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 200)
    .inverted(true)
    .sort(true)
    .selfValue(false)
    .label(words)
    .setColorMapper(() => "")
    .setSearchMatch(matches);
  window.d3.select(place).datum(tree).call(chart);
  const svg = place.querySelector("svg");
  svg.setAttribute("role", "group");
  svg.setAttribute("aria-label", `Flame graph of ${place.dataset.of}; Enter zooms into a frame`);
  let tell = () => {};
  const dress = () => window.d3.select(place).selectAll("g.frame").each(function name(node) {
    // A frame that is drawn anew may be another one.
    const kind = node.data.doing ? `t-${node.data.doing}` : node.data.own ? "own" : "lib";
    this.querySelector("rect").setAttribute("class", kind);
    this.setAttribute("aria-label", words(node));
    this.querySelector("rect").classList.toggle("found", Boolean(node.highlight));
    if (this.hasAttribute("tabindex")) return;
    this.setAttribute("tabindex", "0");
    this.setAttribute("role", "button");
    for (const name of ["pointerenter", "focus"]) this.addEventListener(name, () => tell(window.d3.select(this).datum()));
    for (const name of ["pointerleave", "blur"]) this.addEventListener(name, () => tell(null));
    this.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        chart.zoomTo(window.d3.select(this).datum());
      }
    });
  });
  tell = addTools(place, chart, tree, dress);
  dress();
  new MutationObserver(dress).observe(svg, { childList: true, subtree: true });
  new ResizeObserver(() => {
    const width = place.clientWidth;  // 0 where it is not shown
    if (width && width !== chart.width()) chart.width(width).update();
  }).observe(place);
}
