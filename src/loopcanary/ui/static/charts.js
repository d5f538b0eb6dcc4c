// Series over time with uPlot: share of the time stalled by cause, stacked; frames of a scene.

const drawn = new Map();

// A canvas keeps the colours that it was drawn in.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const [place, end] of [...drawn]) {
    end();
    drawn.delete(place);
    if (place.isConnected) drawCharts(place.parentNode);
  }
});

export function drawCharts(root) {
  if (!window.uPlot) return;
  for (const place of root.querySelectorAll("[data-chart]")) {
    const told = document.getElementById(place.dataset.chart);
    if (told && !place.firstChild) draw(place, JSON.parse(told.textContent));
  }
}

function colour(name) {
  const probe = document.createElement("span");
  probe.className = `c-${name}`;
  document.body.append(probe);
  const found = getComputedStyle(probe).getPropertyValue("--cause").trim();
  probe.remove();
  return found || token("--unknown");
}

function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function hatched(base) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const pen = tile.getContext("2d");
  pen.fillStyle = base;
  pen.fillRect(0, 0, 6, 6);
  pen.strokeStyle = token("--card");
  pen.lineWidth = 1.2;
  pen.beginPath();
  pen.moveTo(0, 6);
  pen.lineTo(6, 0);
  pen.stroke();
  return pen.createPattern(tile, "repeat");
}

// Twenty-four hours, and the date where a day begins.
function moments(_, splits, __, ___, step) {
  const two = (number) => String(number).padStart(2, "0");
  return splits.map((second, index) => {
    const at = new Date(second * 1000);
    const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    if (step >= 86400) return day;
    const time = `${two(at.getHours())}:${two(at.getMinutes())}${step < 60 ? `:${two(at.getSeconds())}` : ""}`;
    return index === 0 ? `${time}\n${day}` : time;
  });
}

function percent(share) {
  return `${Number((share * 100).toPrecision(3))} %`;
}

function draw(place, told) {
  const isStack = told.begin !== undefined;
  const times = told.times ?? told.series[0].values.map((_, index) => told.begin + (index + 0.5) * told.step);
  const axis = { stroke: token("--dim"), grid: { stroke: token("--line"), width: 1 }, ticks: { stroke: token("--line") }, font: "11px system-ui" };
  const options = {
    width: place.clientWidth || 600,
    height: (place.clientHeight || 200) - 28,
    legend: { show: true, live: true },
    cursor: { drag: { x: false, y: false }, points: { show: !isStack } },
    axes: [{ ...axis, space: 90, values: moments }, { ...axis, size: 52, ...(isStack && { values: (_, splits) => splits.map(percent) }) }],
    ...(isStack ? stack(told, times) : lines(told)),
  };
  const chart = new uPlot(options, options.data, place);
  const observer = new ResizeObserver(() => chart.setSize({ width: place.clientWidth, height: options.height }));
  observer.observe(place);
  if (told.open) chart.over.addEventListener("click", () => openBar(told, chart.cursor.idx));
  drawn.set(place, () => { observer.disconnect(); chart.destroy(); });
}

// The stalls of the bar that is pointed at.
function openBar(told, cell) {
  if (cell == null || !told.series.some((one) => one.values[cell] > 0)) return;
  const moment = (index) => `${told.begin + index * told.step}000000000`;
  location.assign(`${told.open}&from=${moment(cell)}&to=${moment(cell + 1)}`);
}

// The causes that the bar under the pointer has, in the order of the legend below.
function legendOf(series) {
  let rows = [];
  return {
    ready: [(chart) => {
      rows = [...chart.root.querySelectorAll(".u-series")];
      rows.slice(1).reverse().forEach((row) => row.parentNode.append(row));
    }],
    setLegend: [(chart) => rows.forEach((row, index) => { row.hidden = index > 0 && chart.legend.idx != null && !series[index].has(chart.legend.idx); })],
  };
}

const when = { label: "from", value: (_, second) => (second === null ? "" : new Date(second * 1000).toLocaleString("sv")) };

function stack(told, times) {
  const sums = told.series.map(() => []);
  const running = times.map(() => 0);
  told.series.forEach((one, index) => one.values.forEach((value, cell) => { running[cell] += value; sums[index][cell] = running[cell]; }));
  const bars = uPlot.paths.bars({ size: [0.9, 60] });
  const ends = [told.begin, told.begin + times.length * told.step];
  // The highest first: each lower one is painted over it.
  const order = told.series.map((_, index) => index).reverse();
  const series = order.map((index) => {
    const one = told.series[index];
    const base = colour(one.label);
    return {
      label: one.label,
      fill: one.hatched ? hatched(base) : base,
      stroke: base,
      width: 0,
      paths: bars,
      points: { show: false },
      has: (cell) => one.values[cell] > 0,
      value: (_, __, ___, cell) => (cell === null || cell === undefined ? "" : `${percent(one.values[cell])} (${one.seconds[cell].toFixed(2)} s)`),
    };
  });
  return { data: [times, ...order.map((index) => sums[index])], series: [when, ...series], hooks: legendOf([when, ...series]), scales: { x: { time: true, range: () => ends }, y: { range: (_, low, high) => [0, Math.min(Math.max(high, 0.001) * 1.05, 1)] } } };
}

function lines(told) {
  const colours = [token("--lock"), token("--native")];
  return {
    data: [told.times, ...told.series.map((one) => one.values)],
    series: [when, ...told.series.map((one, index) => ({ label: one.label, stroke: colours[index % 2], width: 1.5, dash: index ? [5, 3] : undefined, scale: index ? "other" : "y" }))],
    scales: { x: { time: true }, y: { range: (_, low, high) => [0, Math.max(high, 1) * 1.05] }, other: { range: (_, low, high) => [0, Math.max(high, 1) * 1.05] } },
  };
}
