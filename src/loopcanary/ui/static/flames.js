// Flame graphs of stalled time with d3-flame-graph.

export function drawFlames(root) {
  if (!window.flamegraph || !window.d3) return;
  for (const place of root.querySelectorAll("[data-flame]")) {
    const told = document.getElementById(place.dataset.flame);
    if (told && !place.firstChild) draw(place, JSON.parse(told.textContent));
  }
}

function words(node) {
  const { name, place, value } = node.data;
  const share = ((node.x1 - node.x0) * 100).toFixed(1);
  return `${name}${place ? ` (${place})` : ""}: ${(value / 1e6).toFixed(1)} ms, ${share} %`;
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
    .setColorMapper((node) => (node.highlight ? "#e600e6" : ""))
    .setSearchMatch((node, term) => node.data.name.includes(term));
  window.d3.select(place).datum(tree).call(chart);
  const svg = place.querySelector("svg");
  svg.setAttribute("role", "group");
  svg.setAttribute("aria-label", "Flame graph of stalled time; Enter zooms into a frame");
  const dress = () => window.d3.select(place).selectAll("g.frame").each(function name(node) {
    this.querySelector("rect").classList.toggle("own", node.data.own);
    this.querySelector("rect").classList.toggle("lib", !node.data.own);
    if (this.hasAttribute("tabindex")) return;
    this.setAttribute("tabindex", "0");
    this.setAttribute("role", "button");
    this.setAttribute("aria-label", words(node));
    this.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        chart.zoomTo(node);
      }
    });
  });
  dress();
  new MutationObserver(dress).observe(svg, { childList: true, subtree: true });
  new ResizeObserver(() => {
    const width = place.clientWidth;  // 0 where it is not shown
    if (width && width !== chart.width()) chart.width(width).update();
  }).observe(place);
}
