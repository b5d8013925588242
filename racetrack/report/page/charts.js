// Charts with uPlot, for all pages: `drawChart(element, chart)`, with the data that
// racetrack/report/chart_data.py describes, and `tableOf(chart)`, the same data to read.
"use strict";
// Colours of lines, as CSS and as drawn.
const variable = (line) => `--s${line.look % LOOKS}`;
const LOOKS = 6, HEIGHT = 230;
const DASHES = [[], [9, 3], [3, 3], [9, 3, 3, 3], [6, 6], [12, 4]];
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const drawnCharts = [];

const element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
};

// Three significant digits unless the number of decimals is given.
const number = (value, decimals = null) => {
  if (value === null || value === undefined) return "n/a";
  const options = decimals === null
    ? (Math.abs(value) >= 100 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 3 })
    : { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return value.toLocaleString("en-US", options);
};

const ratio = (value) => value.toLocaleString("en-US", { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });

// One array of x for all lines; null where a line has no point.
const aligned = (lines) => uPlot.join(lines.map((line) => [line.x, line.y]));

const nearest = (column, index) => {
  for (let apart = 0; apart < column.length; apart++) {
    for (const at of [index - apart, index + apart]) {
      if (at >= 0 && at < column.length && column[at] !== null && column[at] !== undefined) return at;
    }
  }
  return index;
};

const intervals = (chart) => (plot) => {
  const { ctx } = plot;
  ctx.save();
  chart.lines.forEach((line, index) => {
    if (!line.low || !plot.series[index + 1].show) return;
    ctx.strokeStyle = css(variable(line));
    ctx.lineWidth = 1.5 * devicePixelRatio;
    line.x.forEach((x, at) => {
      if (line.low[at] === null) return;
      const bottom = plot.scales.y.distr === 3 ? Math.max(line.low[at], plot.scales.y.min) : line.low[at];
      const across = plot.valToPos(x, "x", true), half = 4 * devicePixelRatio;
      const [from, until] = [bottom, line.high[at]].map((y) => plot.valToPos(y, "y", true));
      ctx.beginPath();
      ctx.moveTo(across, from); ctx.lineTo(across, until);
      for (const end of [from, until]) { ctx.moveTo(across - half, end); ctx.lineTo(across + half, end); }
      ctx.stroke();
    });
  });
  ctx.restore();
};

// The judged window as a shaded span, and faults as vertical lines with their names.
const backdrop = (chart) => (plot) => {
  const { ctx, bbox } = plot, at = (x) => plot.valToPos(x, "x", true);
  ctx.save();
  ctx.beginPath(); ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height); ctx.clip();
  if (chart.band) {
    ctx.fillStyle = css("--band");
    ctx.fillRect(at(chart.band[0]), bbox.top, at(chart.band[1]) - at(chart.band[0]), bbox.height);
  }
  ctx.strokeStyle = ctx.fillStyle = css("--muted");
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  for (const mark of chart.marks || []) {
    for (const x of [mark.begin, mark.end]) {
      if (x === null) continue;
      ctx.setLineDash([3, 3]);
      ctx.beginPath(); ctx.moveTo(at(x), bbox.top); ctx.lineTo(at(x), bbox.top + bbox.height); ctx.stroke();
    }
    ctx.fillText(mark.name, at(mark.begin) + 4, bbox.top + 12 * devicePixelRatio);
  }
  ctx.restore();
};

const axis = (title, more) => ({
  label: title, labelSize: 22, labelFont: "12px system-ui, sans-serif", font: "11px system-ui, sans-serif",
  stroke: () => css("--muted"), ticks: { show: false },
  grid: { stroke: () => css("--grid"), width: 1 },
  values: (plot, splits) => splits.map((value) => (value === null ? null : number(value))),
  ...more,
});

// 1, 2 and 5 times powers of ten; of many decades the powers alone.
const logTicks = (plot, index, low, high) => {
  const ticks = [];
  const steps = Math.log10(high / low) > 3 ? [1] : [1, 2, 5];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    ticks.push(...steps.map((step) => step * 10 ** power).filter((tick) => tick >= low && tick <= high));
  }
  return ticks;
};
const logAxis = (isLog) => (isLog ? { splits: logTicks, filter: (plot, splits) => splits } : {});
const fromZero = (plot, low, high) => (low === null ? [0, 1] : [Math.min(0, low), (high || 1) * 1.06]);
const logRange = (plot, low, high) => (low === null ? [1, 10] : [low / 1.3, high * 1.3]);
// Of the points and of their intervals; a lower end of 0 has no place on a logarithmic axis.
const withIntervals = (chart, range) => (plot, low, high) => {
  const known = (of) => of !== null && of !== undefined && (!chart.log_y || of > 0);
  const ends = chart.lines.flatMap((line) => [...(line.low || []), ...(line.high || [])]).filter(known);
  return low === null ? range(plot, low, high) : range(plot, Math.min(low, ...ends), Math.max(high, ...ends));
};

const dashesOf = (line) => line.dash || DASHES[line.look % LOOKS];
// A line's colour and dashes, as the background of its marker in the legend.
const markerOf = (line) => {
  const colour = `var(${variable(line)})`, dashes = dashesOf(line);
  if (!dashes.length) return colour;
  let at = 0;
  const stripes = dashes.map((length, index) => `${index % 2 ? "transparent" : colour} ${at}px ${(at += length)}px`);
  return `repeating-linear-gradient(90deg, ${stripes})`;
};

const options = (chart, width) => ({
  width, height: HEIGHT,
  padding: [8, 26, 0, 0],
  scales: {
    x: { time: false, distr: chart.log_x ? 3 : 1, ...(chart.log_x ? { range: logRange } : chart.x_from_zero ? { range: fromZero } : {}) },
    y: { distr: chart.log_y ? 3 : 1, range: withIntervals(chart, chart.log_y ? logRange : fromZero) },
  },
  axes: [
    axis(chart.x_title, { size: 32, grid: { show: Boolean(chart.log_x), stroke: () => css("--grid"), width: 1 }, ...logAxis(chart.log_x) }),
    axis(chart.y_title, { size: 62, ...logAxis(chart.log_y) }),
  ],
  series: [
    { label: chart.x_title, value: (plot, x) => (x === null ? "" : number(x, chart.x_decimals) + chart.x_unit) },
    ...chart.lines.map((line) => ({
      label: line.name,
      stroke: () => css(variable(line)),
      width: 1.6,
      dash: dashesOf(line),
      spanGaps: true,
      paths: line.kind === "step" ? uPlot.paths.stepped({ align: 1 }) : undefined,
      points: { show: line.kind === "points", size: 7, fill: () => css("--paper") },
      value: (plot, y) => (y === null || y === undefined ? "" : number(y, chart.y_decimals) + chart.y_unit),
    })),
  ],
  legend: { markers: { width: 0, fill: (plot, index) => markerOf(chart.lines[index - 1]) } },
  cursor: {
    drag: { x: false, y: false },
    dataIdx: (plot, index, at) => (index === 0 ? at : nearest(plot.data[index], at)),
    points: { size: 6 },
  },
  hooks: { drawClear: [backdrop(chart)], draw: [intervals(chart)] },
});

const drawChart = (place, chart) => {
  const lines = chart.lines.filter((line) => line.x.length);
  const shown = { ...chart, lines };
  if (!lines.length) { place.replaceChildren(element("p", { class: "muted" }, "No data.")); return; }
  const data = aligned(lines);
  let plot = null;
  const fit = () => {
    const width = Math.floor(place.clientWidth);
    if (!width) return;
    if (plot) { plot.setSize({ width, height: HEIGHT }); return; }
    plot = new uPlot(options(shown, width), data, place);
    plot.root.querySelector("canvas").setAttribute("role", "img");
    plot.root.querySelector("canvas").setAttribute("aria-label", `${chart.title}. The table below has the same data.`);
    drawnCharts.push(plot);
  };
  place.replaceChildren();
  fit();
  new ResizeObserver(fit).observe(place);
};

const tableOf = (chart) => {
  const lines = chart.lines.filter((line) => line.x.length);
  if (!lines.length) return element("p", {}, "No data.");
  const [xs, ...columns] = aligned(lines);
  const cell = (line, index, y) => {
    if (y === null || y === undefined) return "";
    const at = line.x.indexOf(xs[index]), has = line.low && line.low[at] !== null;
    return number(y, chart.y_decimals) + (has ? ` (${number(line.low[at], chart.y_decimals)} to ${number(line.high[at], chart.y_decimals)})` : "");
  };
  const head = element("tr", {}, element("th", { scope: "col" }, chart.x_title),
    ...lines.map((line) => element("th", { scope: "col" }, `${line.name}, ${chart.y_title}`)));
  const rows = [...xs].map((x, index) => element("tr", {},
    element("th", { scope: "row" }, number(x, chart.x_decimals)),
    ...lines.map((line, of) => element("td", {}, cell(line, index, columns[of][index])))));
  return element("div", { class: "wide" }, element("table", { class: "figures" },
    element("thead", {}, head), element("tbody", {}, ...rows)));
};

// A table is made when it is opened: a page may have dozens of charts.
const tableBehind = (details, chart) => details.addEventListener("toggle", () => {
  if (details.open && details.children.length === 1) details.append(tableOf(chart));
});

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawnCharts.forEach((plot) => plot.redraw()));
