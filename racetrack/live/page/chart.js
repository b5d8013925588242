// One chart over the time of the session, with uPlot. All charts share the time axis and the
// cursor; the legend below a chart is text, and shows the values at the cursor or the latest ones.
import { clock, element, setText } from "./format.js";

/** @import { History } from "./history.js" */
/** @import { Line, Spec, Timeline } from "./types.d.ts" */

export const LOOKS = 6;
const SYNC_KEY = "session",
  GAP_S = 3,
  AXIS_WIDTH = 58,
  MOST_HIGHEST = 400;
const DASHES = [[], [6, 3], [2, 3], [10, 3, 2, 3], [12, 4], [4, 6]];
const TIME_STEPS_S = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400,
];
const FONT = "11px system-ui, sans-serif";
export const GRAVE = new Set(["kill", "failed", "load_stopped", "warning"]);

// Colours of the style sheet, read again when the colour scheme changes.
/** @type {Map<string, string>} */
const palette = new Map();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => palette.clear());
/** @param {string} name */
const colour = (name) => {
  const known = palette.get(name);
  if (known) return known;
  const read = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  palette.set(name, read);
  return read;
};

/** @param {number} value */
const roundUp = (value) => {
  const power = 10 ** Math.floor(Math.log10(value));
  const steps = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];
  return power * (steps.find((step) => step * power >= value * 0.9999) ?? 10);
};

/**
 * The range of a linear axis: from 0 to a round value. It changes only if the data leaves it or
 * needs less than half of it.
 * @param {number} least
 * @returns {uPlot.Range.Function}
 */
const linearRange = (least) => {
  let top = 0;
  return (_plot, _low, high) => {
    const needed = roundUp(Math.max((high ?? 0) * 1.08, least));
    if (needed > top || needed < top / 2) top = needed;
    return [0, top];
  };
};

/**
 * The range of a logarithmic axis: whole decades, at least two.
 * @type {uPlot.Range.Function}
 */
const logRange = (_plot, low, high) => {
  const bottom = 10 ** Math.floor(Math.log10(Math.max(1, low ?? 1)));
  return [bottom, Math.max(10 ** Math.ceil(Math.log10(Math.max(1, high ?? 1))), bottom * 100)];
};
/** @type {uPlot.Axis.Splits} */
const decades = (_plot, _index, low, high) => {
  const ticks = [];
  for (let power = Math.round(Math.log10(low)); 10 ** power <= high * 1.001; power++)
    ticks.push(10 ** power);
  return ticks;
};

/**
 * Only pauses longer than GAP_S interrupt a line: some figures come once a second, and older rows
 * are thinned.
 * @type {uPlot.Series.GapsRefiner}
 */
const longGaps = (plot, _series, _from, _end, gaps) =>
  gaps.filter(
    ([left, right]) => plot.posToVal(right, "x", true) - plot.posToVal(left, "x", true) > GAP_S,
  );

/**
 * @param {uPlot.Axis} more
 * @returns {uPlot.Axis}
 */
const axis = (more) => ({
  font: FONT,
  stroke: () => colour("--muted"),
  ticks: { show: false },
  gap: 6,
  grid: { stroke: () => colour("--grid"), width: 1 },
  ...more,
});
const timeAxis = () =>
  axis({
    size: 24,
    space: 64,
    incrs: TIME_STEPS_S,
    grid: { show: false },
    values: (_plot, splits) => splits.map((value) => (value < 0 ? "" : clock(value))),
  });

/**
 * Draws the current segment as a shaded span, and each event as a vertical line.
 * @param {Timeline} timeline
 */
const backdrop = (timeline) => (/** @type {uPlot} */ plot) => {
  const { ctx, bbox } = plot;
  const at = (/** @type {number} */ timeS) => plot.valToPos(timeS, "x", true);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = colour("--band");
  const from = Math.max(bbox.left, at(timeline.segmentFromS));
  ctx.fillRect(from, bbox.top, bbox.left + bbox.width - from, bbox.height);
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const mark of timeline.marksShown()) {
    ctx.strokeStyle = colour(GRAVE.has(mark.kind) ? "--bad" : "--line");
    const across = Math.round(at(mark.timeS));
    ctx.beginPath();
    ctx.moveTo(across, bbox.top);
    ctx.lineTo(across, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
};

/**
 * Draws each event as a dot, with its text where there is room; newer texts take precedence.
 * @param {Timeline} timeline
 */
const eventLine = (timeline) => (/** @type {uPlot} */ plot) => {
  const { ctx, bbox } = plot,
    ratio = devicePixelRatio,
    middle = bbox.top + bbox.height / 2;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  let free = bbox.left + bbox.width;
  for (const mark of [...timeline.marksShown()].reverse()) {
    const across = plot.valToPos(mark.timeS, "x", true);
    ctx.fillStyle = colour(
      GRAVE.has(mark.kind) ? "--bad" : mark.kind === "note" ? "--s3" : "--ink",
    );
    ctx.beginPath();
    ctx.arc(across, middle, 3 * ratio, 0, 2 * Math.PI);
    ctx.fill();
    const begin = across + 7 * ratio,
      width = ctx.measureText(mark.text).width;
    if (begin + width < free) ctx.fillText(mark.text, begin, middle + ratio);
    free = across - 6 * ratio;
  }
  ctx.restore();
};

/** @param {Line} line */
const colourOf = (line) => colour(line.colour === null ? "--muted" : `--s${line.colour % LOOKS}`);

export class Chart {
  #place;
  #spec;
  #history;
  #timeline;
  /** @type {uPlot | null} */
  #plot = null;
  /** @type {HTMLElement[]} */
  #values = [];
  #onCursor;

  /**
   * @param {Element} place
   * @param {Spec} spec
   * @param {History} history
   * @param {Timeline} timeline
   * @param {(plot: uPlot) => void} onCursor
   */
  constructor(place, spec, history, timeline, onCursor) {
    this.#spec = spec;
    this.#history = history;
    this.#timeline = timeline;
    this.#onCursor = onCursor;
    this.#place = element("div", { class: "plot" });
    // Reserve the place of the chart before it is drawn, so that nothing on the page moves.
    this.#place.style.height = `${spec.height}px`;
    place.replaceChildren(
      ...(spec.title ? [this.#heading()] : []),
      this.#place,
      ...(spec.lines.length ? [this.#legend()] : []),
    );
    new ResizeObserver(() => this.#fit()).observe(this.#place);
    this.#fit();
  }

  get plot() {
    return this.#plot;
  }
  get isSlow() {
    return Boolean(this.#spec.isSlow);
  }

  /**
   * Shows a new history after a reconnection. The chart stays.
   * @param {History} history
   */
  use(history) {
    this.#history = history;
    this.draw();
  }

  draw() {
    const plot = this.#plot;
    if (!plot) return;
    plot.batch(() => {
      plot.setData(this.#data(), false);
      plot.setScale("x", { min: this.#timeline.fromS, max: this.#timeline.untilS });
    });
  }

  // The text of the legend: values at the cursor, or the latest ones.
  read() {
    if (!this.#spec.lines.length || !this.#plot) return;
    const [times, ...columns] = this.#plot.data;
    const index = this.#plot.cursor.idx ?? times.length - 1;
    columns.forEach((column, number) => {
      let at = index;
      while (at > 0 && column[at] === null && times[index] - times[at] < GAP_S) at--;
      setText(this.#values[number], this.#spec.value(column[at]));
    });
  }

  /** @returns {uPlot.AlignedData} */
  #data() {
    const { lines } = this.#spec;
    if (!lines.length)
      return [
        [this.#timeline.fromS, this.#timeline.untilS],
        [null, null],
      ];
    const ids = lines.map((line) => line.id);
    if (this.#spec.highest) {
      const { fromS, untilS } = this.#timeline;
      const bucketS = Math.max(1, (untilS - fromS) / MOST_HIGHEST);
      return /** @type {uPlot.AlignedData} */ (this.#history.highest(ids, fromS, bucketS));
    }
    return [this.#history.times, ...ids.map((id) => this.#history.column(id))];
  }

  #heading() {
    return element(
      "h3",
      { title: this.#spec.means },
      this.#spec.title,
      " ",
      element("small", {}, this.#spec.means),
    );
  }

  #legend() {
    return element(
      "ul",
      { class: "legend" },
      ...this.#spec.lines.map((line, number) => {
        const value = element("span", { class: "value" }, "–");
        this.#values.push(value);
        const swatch = element("canvas", {
          width: 36,
          height: 8,
          class: "swatch",
          "aria-hidden": "true",
        });
        this.#sample(swatch, line);
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
          this.#sample(swatch, line),
        );
        const button = element(
          "button",
          {
            type: "button",
            "aria-pressed": String(!line.isHidden),
            title: `Show or hide ${line.label}`,
          },
          swatch,
          element("span", { class: "name" }, line.label),
          value,
        );
        button.addEventListener("click", () => {
          const show = button.getAttribute("aria-pressed") !== "true";
          button.setAttribute("aria-pressed", String(show));
          this.#plot?.setSeries(number + 1, { show });
        });
        return element("li", {}, button);
      }),
    );
  }

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {Line} line
   */
  #sample(canvas, line) {
    const ctx = canvas.getContext("2d");
    if (!ctx) return;
    ctx.clearRect(0, 0, 36, 8);
    ctx.strokeStyle = colourOf(line);
    ctx.lineWidth = line.width * 2;
    ctx.setLineDash(DASHES[line.dash].map((length) => length * 1.6));
    ctx.beginPath();
    ctx.moveTo(0, 4);
    ctx.lineTo(36, 4);
    ctx.stroke();
  }

  #fit() {
    const width = Math.floor(this.#place.clientWidth);
    if (!width) return;
    if (this.#plot) {
      this.#plot.setSize({ width, height: this.#spec.height });
      return;
    }
    this.#plot = new uPlot(this.#options(width), this.#data(), this.#place);
    const canvas = this.#plot.root.querySelector("canvas");
    canvas?.setAttribute("role", "img");
    canvas?.setAttribute("aria-label", this.#spec.label);
    this.draw();
  }

  /**
   * @param {number} width
   * @returns {uPlot.Options}
   */
  #options(width) {
    const { height, log, least = 1, tick = String, lines } = this.#spec,
      isEventLine = !lines.length;
    return {
      width,
      height,
      legend: { show: false },
      padding: [6, 16, 0, 0],
      pxAlign: 1,
      scales: {
        x: { time: false, auto: false },
        y: isEventLine
          ? { range: [0, 1] }
          : { distr: log ? 3 : 1, range: log ? logRange : linearRange(least) },
      },
      axes: [
        isEventLine ? { show: false } : timeAxis(),
        isEventLine
          ? axis({
              size: AXIS_WIDTH,
              grid: { show: false },
              splits: () => [0.5],
              values: () => ["events"],
            })
          : axis({
              size: AXIS_WIDTH,
              space: 34,
              values: (_plot, splits) => splits.map(tick),
              ...(log ? { splits: decades, filter: (_plot, splits) => splits } : {}),
            }),
      ],
      series: [
        {},
        ...(isEventLine
          ? [{ points: { show: false } }]
          : lines.map((line) => ({
              stroke: () => colourOf(line),
              show: !line.isHidden,
              width: line.width,
              dash: DASHES[line.dash],
              spanGaps: false,
              gaps: longGaps,
              points: { show: false },
            }))),
      ],
      cursor: {
        sync: { key: SYNC_KEY, setSeries: false, scales: ["x", null] },
        drag: { x: false, y: false },
        y: false,
        points: { show: !isEventLine, size: 6 },
      },
      hooks: {
        drawClear: [backdrop(this.#timeline)],
        draw: isEventLine ? [eventLine(this.#timeline)] : [],
        setCursor: [
          (plot) => {
            this.read();
            this.#onCursor(plot);
          },
        ],
      },
    };
  }
}
