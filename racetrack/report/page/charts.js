// Charts with uPlot, for all pages: `drawChart(element, chart)`, with the data that
// racetrack/report/chart_data.py describes, and `tableOf(chart)`, the same data to read.
/** @import { ChartData, Line } from "./types.d.ts" */

/**
 * Colours of lines, as CSS and as drawn.
 * @param {Line} line
 */
const variable = (line) => `--s${line.look % LOOKS}`;
const LOOKS = 6,
  HEIGHT = 230;
const DASHES = [[], [9, 3], [3, 3], [9, 3, 3, 3], [6, 6], [12, 4]];
/** @param {string} name */
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
/** @type {uPlot[]} */
const drawnCharts = [];

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, string | number | boolean | null | undefined>} [attributes]
 * @param {(Node | string | null | undefined)[]} children
 */
export const element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false)
      made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
};

/**
 * @param {number | null | undefined} value
 * @returns {value is number}
 */
export const isValue = (value) => value !== null && value !== undefined;

/**
 * The part of an element that this selector selects.
 * @param {ParentNode} whole
 * @param {string} selector
 */
export const partOf = (whole, selector) => {
  const part = whole.querySelector(selector);
  if (!(part instanceof HTMLElement)) throw new TypeError(`There is no ${selector} here.`);
  return part;
};

/**
 * Three significant digits unless the number of decimals is given.
 * @param {number | null | undefined} value
 * @param {number | null} [decimals]
 */
export const number = (value, decimals = null) => {
  if (value === null || value === undefined) return "n/a";
  const options =
    decimals === null
      ? Math.abs(value) >= 100
        ? { maximumFractionDigits: 0 }
        : { maximumSignificantDigits: 3 }
      : { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return value.toLocaleString("en-US", options);
};

/**
 * One array of x for all lines; null where a line has no point.
 * @param {Line[]} lines
 */
const aligned = (lines) => uPlot.join(lines.map((line) => [line.x, line.y]));

/**
 * @param {ArrayLike<number | null | undefined>} column
 * @param {number} index
 */
const nearest = (column, index) => {
  for (let apart = 0; apart < column.length; apart++) {
    for (const at of [index - apart, index + apart]) {
      if (at >= 0 && at < column.length && column[at] !== null && column[at] !== undefined)
        return at;
    }
  }
  return index;
};

/** @param {ChartData} chart */
const intervals = (chart) => (/** @type {uPlot} */ plot) => {
  const { ctx } = plot;
  ctx.save();
  chart.lines.forEach((line, index) => {
    const { low, high } = line;
    if (!low || !high || !plot.series[index + 1].show) return;
    ctx.strokeStyle = css(variable(line));
    ctx.lineWidth = 1.5 * devicePixelRatio;
    line.x.forEach((x, at) => {
      const least = low[at],
        most = high[at];
      if (least === null || most === null) return;
      const bottom =
        plot.scales.y.distr === 3 ? Math.max(least, plot.scales.y.min ?? least) : least;
      const across = plot.valToPos(x, "x", true),
        half = 4 * devicePixelRatio;
      const [from, until] = [bottom, most].map((y) => plot.valToPos(y, "y", true));
      ctx.beginPath();
      ctx.moveTo(across, from);
      ctx.lineTo(across, until);
      for (const end of [from, until]) {
        ctx.moveTo(across - half, end);
        ctx.lineTo(across + half, end);
      }
      ctx.stroke();
    });
  });
  ctx.restore();
};

/**
 * The judged window as a shaded span, and faults as vertical lines with their names.
 * @param {ChartData} chart
 */
const backdrop = (chart) => (/** @type {uPlot} */ plot) => {
  const { ctx, bbox } = plot,
    at = (/** @type {number} */ x) => plot.valToPos(x, "x", true);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
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
      ctx.beginPath();
      ctx.moveTo(at(x), bbox.top);
      ctx.lineTo(at(x), bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.fillText(mark.name, at(mark.begin) + 4, bbox.top + 12 * devicePixelRatio);
  }
  ctx.restore();
};

/**
 * @param {string} title
 * @param {uPlot.Axis} more
 * @returns {uPlot.Axis}
 */
const axis = (title, more) => ({
  label: title,
  labelSize: 22,
  labelFont: "12px system-ui, sans-serif",
  font: "11px system-ui, sans-serif",
  stroke: () => css("--muted"),
  ticks: { show: false },
  grid: { stroke: () => css("--grid"), width: 1 },
  values: (_plot, splits) => splits.map((value) => (value === null ? null : number(value))),
  ...more,
});

/**
 * 1, 2 and 5 times powers of ten; of many decades the powers alone.
 * @type {uPlot.Axis.Splits}
 */
const logTicks = (_plot, _index, low, high) => {
  /** @type {number[]} */
  const ticks = [];
  const steps = Math.log10(high / low) > 3 ? [1] : [1, 2, 5];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    ticks.push(
      ...steps.map((step) => step * 10 ** power).filter((tick) => tick >= low && tick <= high),
    );
  }
  return ticks;
};
/**
 * @param {boolean} [isLog]
 * @returns {uPlot.Axis}
 */
const logAxis = (isLog) => (isLog ? { splits: logTicks, filter: (_plot, splits) => splits } : {});

/**
 * @callback Range
 * @param {uPlot} plot
 * @param {number | null} low
 * @param {number | null} high
 * @param {string} scale
 * @returns {uPlot.Range.MinMax}
 */
/** @type {Range} */
const fromZero = (_plot, low, high) =>
  low === null ? [0, 1] : [Math.min(0, low), (high || 1) * 1.06];
/** @type {Range} */
const logRange = (_plot, low, high) =>
  low === null || high === null ? [1, 10] : [low / 1.3, high * 1.3];

/**
 * The range of the points and of their intervals; a lower end of 0 has no place on a logarithmic
 * axis.
 * @param {ChartData} chart
 * @param {Range} range
 * @returns {Range}
 */
const withIntervals = (chart, range) => (plot, low, high, scale) => {
  const ends = chart.lines
    .flatMap((line) => [...(line.low || []), ...(line.high || [])])
    .filter(isValue)
    .filter((end) => !chart.log_y || end > 0);
  if (low === null || high === null) return range(plot, low, high, scale);
  return range(plot, Math.min(low, ...ends), Math.max(high, ...ends), scale);
};

/** @param {Line} line */
const dashesOf = (line) => line.dash || DASHES[line.look % LOOKS];

/**
 * A line's colour and dashes, as the background of its marker in the legend.
 * @param {Line} line
 */
const markerOf = (line) => {
  const colour = `var(${variable(line)})`,
    dashes = dashesOf(line);
  if (!dashes.length) return colour;
  let at = 0;
  const stripes = dashes.map((length, index) => {
    const from = at;
    at += length;
    return `${index % 2 ? "transparent" : colour} ${from}px ${at}px`;
  });
  return `repeating-linear-gradient(90deg, ${stripes})`;
};

/**
 * @param {ChartData} chart
 * @param {number} width
 * @returns {uPlot.Options}
 */
const options = (chart, width) => ({
  width,
  height: HEIGHT,
  padding: [8, 26, 0, 0],
  scales: {
    x: {
      time: false,
      distr: chart.log_x ? 3 : 1,
      ...(chart.log_x ? { range: logRange } : chart.x_from_zero ? { range: fromZero } : {}),
    },
    y: {
      distr: chart.log_y ? 3 : 1,
      range: withIntervals(chart, chart.log_y ? logRange : fromZero),
    },
  },
  axes: [
    axis(chart.x_title, {
      size: 32,
      grid: { show: Boolean(chart.log_x), stroke: () => css("--grid"), width: 1 },
      ...logAxis(chart.log_x),
    }),
    axis(chart.y_title, { size: 62, ...logAxis(chart.log_y) }),
  ],
  series: [
    {
      label: chart.x_title,
      value: (_plot, x) => (x === null ? "" : number(x, chart.x_decimals) + chart.x_unit),
    },
    ...chart.lines.map((line) => ({
      label: line.name,
      stroke: () => css(variable(line)),
      width: 1.6,
      dash: dashesOf(line),
      spanGaps: true,
      paths: line.kind === "step" ? uPlot.paths.stepped?.({ align: 1 }) : undefined,
      points: { show: line.kind === "points", size: 7, fill: () => css("--paper") },
      value: (/** @type {uPlot} */ _plot, /** @type {number | null} */ y) =>
        y === null || y === undefined ? "" : number(y, chart.y_decimals) + chart.y_unit,
    })),
  ],
  legend: { markers: { width: 0, fill: (_plot, index) => markerOf(chart.lines[index - 1]) } },
  cursor: {
    drag: { x: false, y: false },
    dataIdx: (plot, index, at) => (index === 0 ? at : nearest(plot.data[index], at)),
    points: { size: 6 },
  },
  hooks: { drawClear: [backdrop(chart)], draw: [intervals(chart)] },
});

/**
 * @param {HTMLElement} place
 * @param {ChartData} chart
 */
export const drawChart = (place, chart) => {
  const lines = chart.lines.filter((line) => line.x.length);
  const shown = { ...chart, lines };
  if (!lines.length) {
    place.replaceChildren(element("p", { class: "muted" }, "No data."));
    return;
  }
  const data = aligned(lines);
  /** @type {uPlot | null} */
  let plot = null;
  const fit = () => {
    const width = Math.floor(place.clientWidth);
    if (!width) return;
    if (plot) {
      plot.setSize({ width, height: HEIGHT });
      return;
    }
    plot = new uPlot(options(shown, width), data, place);
    const canvas = partOf(plot.root, "canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${chart.title}. The table below has the same data.`);
    drawnCharts.push(plot);
  };
  place.replaceChildren();
  fit();
  new ResizeObserver(fit).observe(place);
};

/** @param {ChartData} chart */
const tableOf = (chart) => {
  const lines = chart.lines.filter((line) => line.x.length);
  if (!lines.length) return element("p", {}, "No data.");
  const [xs, ...columns] = aligned(lines);
  /**
   * @param {Line} line
   * @param {number} index
   * @param {number | null | undefined} y
   */
  const cell = (line, index, y) => {
    if (y === null || y === undefined) return "";
    const at = line.x.indexOf(xs[index]),
      low = line.low?.[at] ?? null;
    const text = (/** @type {number | null | undefined} */ value) =>
      number(value, chart.y_decimals);
    return text(y) + (low === null ? "" : ` (${text(low)} to ${text(line.high?.[at])})`);
  };
  const head = element(
    "tr",
    {},
    element("th", { scope: "col" }, chart.x_title),
    ...lines.map((line) => element("th", { scope: "col" }, `${line.name}, ${chart.y_title}`)),
  );
  const rows = [...xs].map((x, index) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, number(x, chart.x_decimals)),
      ...lines.map((line, of) => element("td", {}, cell(line, index, columns[of][index]))),
    ),
  );
  return element(
    "div",
    { class: "wide" },
    element(
      "table",
      { class: "figures" },
      element("thead", {}, head),
      element("tbody", {}, ...rows),
    ),
  );
};

/**
 * A table is made when it is opened: a page may have dozens of charts.
 * @param {HTMLElement} details
 * @param {ChartData} chart
 */
export const tableBehind = (details, chart) =>
  details.addEventListener("toggle", () => {
    if (details instanceof HTMLDetailsElement && details.open && details.children.length === 1)
      details.append(tableOf(chart));
  });

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const plot of drawnCharts) plot.redraw();
});
