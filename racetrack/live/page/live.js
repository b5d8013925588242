// The page of a running session: follows /events, draws the curves, and describes the state in
// text.
import { Chart, GRAVE, LOOKS } from "./chart.js";
import { Controls, listen } from "./controls.js";
import {
  byId,
  byIdOf,
  clock,
  dialogOf,
  element,
  formatOf,
  inputOf,
  isNumber,
  setText,
  short,
  shortDuration,
} from "./format.js";
import { History } from "./history.js";

/**
 * @import {
 *   EngineState, Figure, Hello, Line, Look, Sample, SessionEvent, State, Timeline, Values,
 * } from "./types.d.ts"
 */

const DRAW_EVERY_MS = 250,
  SLOW_EVERY_MS = 1000,
  TEXT_EVERY_MS = 500,
  SILENT_MS = 6000,
  RETRY_MS = 2000,
  MOST_EVENTS = 300;
/** @type {[number, string][]} */
const SPANS_S = [
  [60, "1 min"],
  [300, "5 min"],
  [900, "15 min"],
  [Infinity, "all"],
];
const STEPS_S = [60, 120, 300, 600, 900],
  MOST_STEP_S = 900,
  TABLE_ROWS = 120;
/**
 * Looks of the charts, in the order on the page. Their titles and meanings, and the names, units
 * and groups of all series come from the session.
 * @type {Record<string, Look>}
 */
const GROUPS = {
  rate: { height: 140, least: 100, tick: short },
  lag: { height: 190, log: true, highest: true, tick: shortDuration },
  events: { title: null, height: 34 },
  cpu: { height: 130, least: 10, isSlow: true, tick: (pct) => `${short(pct)} %` },
  memory: { height: 130, least: 0.5, isSlow: true, tick: (value) => `${short(value)} GiB` },
  noise: { height: 130, least: 5, isSlow: true, tick: (pct) => `${short(pct)} %` },
};
/** @type {Record<string, [string, string]>} */
const VERDICTS = {
  "kept up": ["✓", "good"],
  "fell behind": ["✗", "bad"],
  undecided: ["?", "open"],
  "generator-bound": ["⊘", "open"],
  "broker-bound": ["⊘", "open"],
  "harness-bound": ["⊘", "open"],
  none: ["·", "muted"],
};

const controls = new Controls();
/** @type {Hello | null} the message `hello`, updated by later messages */
let session = null;
/** @type {Record<string, History>} */
let histories = {};
/** @type {Chart[]} */
let charts = [];
/** @type {Values} */
let latest = {};
/** @type {EventSource | null} */
let source = null;
/** @type {number | null} */
let lostAtMs = null;
let lastHeardMs = 0,
  hasEnded = false;
/** @type {ReturnType<typeof setTimeout> | null} */
let drawTimer = null;
let spanS = Number(sessionStorage.getItem("span")) || 300,
  isFrozen = false;
let drawnMs = 0,
  drawnAllMs = 0,
  writtenMs = 0;

/**
 * Times shown, and events in them; the charts read it.
 * @type {Timeline}
 */
const timeline = {
  fromS: 0,
  untilS: 60,
  segmentFromS: 0,
  marks: [],
  marksShown() {
    return this.marks.filter((mark) => mark.timeS >= this.fromS && mark.timeS <= this.untilS);
  },
};
/** The session; only called once it has begun. */
const begun = () => {
  if (!session) throw new Error("The session has not begun.");
  return session;
};
/** @param {number} atMs */
const sessionS = (atMs) => (atMs - begun().started_ms) / 1000;

// --- the connection ------------------------------------------------------------------------------
function connect() {
  source?.close();
  const opened = new EventSource("/events");
  source = opened;
  /**
   * @template T
   * @param {string} name
   * @param {(message: T) => void} does
   */
  const on = (name, does) =>
    opened.addEventListener(name, (event) => {
      lastHeardMs = Date.now();
      does(JSON.parse(event.data));
    });
  on("hello", begin);
  on("sample", (/** @type {Sample} */ sample) => {
    if (session) add(sample);
  });
  on("state", (/** @type {State} */ state) => {
    if (session) update(state);
  });
  on("event", (/** @type {SessionEvent} */ event) => {
    if (session) addEvent(event);
  });
  on("end", finish);
  opened.addEventListener("error", () => {
    if (hasEnded) return;
    lose();
    // After a refusal the browser does not try again by itself.
    if (opened.readyState === EventSource.CLOSED) setTimeout(connect, RETRY_MS);
  });
}

function lose() {
  if (lostAtMs) return;
  lostAtMs = Date.now();
  controls.connect(false);
  document.body.classList.add("stale");
  say(`The connection to the session is lost. Trying again.`);
  showConnection();
}

function showConnection() {
  const place = byId("connection");
  place.dataset.state = hasEnded ? "ended" : lostAtMs ? "lost" : session ? "live" : "waiting";
  if (hasEnded) return;
  setText(
    place,
    lostAtMs
      ? `Connection lost ${new Date(lostAtMs).toLocaleTimeString("en-GB")}, trying again`
      : session
        ? "Live"
        : "Connecting…",
  );
  place.title = lostAtMs ? `for ${clock((Date.now() - lostAtMs) / 1000)}` : "";
}

/** @param {{ text: string, folder: string }} end */
function finish({ text, folder }) {
  hasEnded = true;
  source?.close();
  controls.connect(false, true);
  showConnection();
  setText(byId("connection"), "Ended");
  setText(byId("why-not"), `${text} The run folder is ${folder}.`);
  say(`The session has ended. ${text}`);
}

// Reconnect if no message came for a while: the connection may have ended without notice.
setInterval(() => {
  if (!hasEnded && session && !lostAtMs && Date.now() - lastHeardMs > SILENT_MS) {
    lose();
    connect();
  }
  showConnection();
}, 1000);

// --- what arrives --------------------------------------------------------------------------------
/** @param {Hello} hello */
function begin(hello) {
  const isBack = Boolean(lostAtMs),
    isSame = session?.session === hello.session;
  session = hello;
  lostAtMs = null;
  latest = {};
  document.body.classList.remove("stale", "empty");
  document.title = `${hello.engines.map((engine) => engine.title).join(" + ")} · Racetrack live`;
  setText(
    byId("session"),
    [
      hello.engines.map((engine) => engine.title).join(" and "),
      hello.workload,
      hello.runtime,
      hello.machine,
    ].join(" · "),
  );
  const groups = Object.keys(GROUPS).filter(
    (group) => group === "events" || hello.series.some((one) => one.group === group),
  );
  histories = Object.fromEntries(hello.series.map((one) => [one.group, new History()]));
  fill(hello.history);
  timeline.marks = [];
  byId("events").replaceChildren();
  hello.events.forEach(showEvent);
  if (!isSame) buildEngines();
  buildCharts(groups);
  controls.begin(hello);
  controls.connect(true);
  update(hello.state);
  showConnection();
  draw(true);
  if (isBack) say(isSame ? "Connected again." : "Connected to another session.");
}

/** @param {Hello["history"]} history */
function fill(history) {
  const rows = history.at_ms.length;
  for (let row = 0; row < rows; row++) {
    /** @type {Values} */
    const values = {};
    for (const [id, column] of Object.entries(history.values))
      if (Number.isFinite(column[row])) values[id] = column[row];
    store(history.at_ms[row], values);
  }
}

/**
 * One history per group, since the groups are sampled at different intervals.
 * @param {number} atMs
 * @param {Values} values
 */
function store(atMs, values) {
  /** @type {Record<string, Values>} */
  const rows = {};
  for (const { id, group } of begun().series) {
    if (!(id in values)) continue;
    const value = values[id];
    // A logarithmic axis has no place for 0.
    rows[group] ??= {};
    rows[group][id] = GROUPS[group]?.log && isNumber(value) ? Math.max(1, value) : value;
  }
  for (const [group, row] of Object.entries(rows)) histories[group].add(sessionS(atMs), row);
  Object.assign(latest, values);
}

/** @param {Sample} sample */
function add({ at_ms: atMs, values }) {
  store(atMs, values);
  begun().now_ms = atMs;
  requestDraw();
}

/** @param {State} state */
function update(state) {
  const known = begun();
  known.state = state;
  known.now_ms = Math.max(known.now_ms, state.now_ms);
  timeline.segmentFromS = sessionS(state.segment.from_ms);
  for (const engine of state.engines) showEngine(engine);
  const inTheWay = byId("in-the-way");
  setText(
    inTheWay,
    state.in_the_way.text ||
      (state.in_the_way.what === "nothing" ? "Nothing." : state.in_the_way.what),
  );
  inTheWay.className = state.in_the_way.what === "nothing" ? "" : "open";
  setText(byId("segment"), `Segment ${state.segment.number}: ${state.segment.why}`);
  showMemory(state.memory);
  controls.update(state);
}

/** @param {SessionEvent} event */
function addEvent(event) {
  const { events } = begun();
  if ((events.at(-1)?.number ?? -1) >= event.number) return;
  events.push(event);
  events.splice(0, events.length - 1000);
  showEvent(event);
  const isFrequent = event.kind === "collection";
  if (GRAVE.has(event.kind) || (event.by !== "user" && !isFrequent)) say(event.text);
}

// --- as text -------------------------------------------------------------------------------------
/**
 * Announces a text to screen readers without interrupting them. A repeated text is announced again.
 * @param {string} text
 */
function say(text) {
  setText(byId("spoken"), byId("spoken").textContent === text ? `${text}\u00a0` : text);
}

/** @param {SessionEvent} event */
function showEvent(event) {
  timeline.marks.push({
    timeS: sessionS(event.at_ms),
    kind: event.kind,
    text: event.text,
    number: event.number,
  });
  timeline.marks.splice(0, timeline.marks.length - 1000);
  const list = byId("events");
  const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 30;
  list.append(
    element(
      "li",
      { class: GRAVE.has(event.kind) ? "bad" : event.kind === "note" ? "note" : "" },
      element("time", {}, clock(sessionS(event.at_ms))),
      element("span", {}, event.text + (event.by === "replay" ? " (replayed)" : "")),
    ),
  );
  while (list.children.length > MOST_EVENTS) list.firstElementChild?.remove();
  if (isAtEnd) list.scrollTop = list.scrollHeight;
}

/**
 * @typedef {{ status: HTMLElement, kind: HTMLElement, text: HTMLElement,
 *   figures: Record<string, HTMLElement> }} EngineParts
 */
/** @type {Map<string, EngineParts>} */
const engineParts = new Map();
/** @param {string} text */
const capital = (text) => text[0].toUpperCase() + text.slice(1);

function buildEngines() {
  const { engines, panel } = begun();
  engineParts.clear();
  byId("engines").replaceChildren(
    ...engines.map((engine, index) => {
      /**
       * @param {"span" | "p"} tag
       * @param {string} name
       */
      const part = (tag, name) => element(tag, { class: name }, "–");
      /** @type {EngineParts} */
      const parts = {
        status: part("span", "status"),
        kind: part("p", "verdict"),
        text: part("p", "reason"),
        figures: {},
      };
      const cells = panel.map(({ key, title, means, group }) => {
        parts.figures[key] = element("dd", {}, "–");
        return element(
          "div",
          { class: group, title: means },
          element("dt", {}, capital(title)),
          parts.figures[key],
        );
      });
      engineParts.set(engine.name, parts);
      return element(
        "article",
        { class: "panel engine", "data-colour": index, "aria-labelledby": `engine-${index}` },
        element("h2", { id: `engine-${index}` }, engine.title),
        parts.status,
        parts.kind,
        element("dl", {}, ...cells),
        parts.text,
      );
    }),
  );
}

/** @param {EngineState} engine */
function showEngine({ name, status, text, verdict }) {
  const parts = engineParts.get(name);
  if (!parts) return;
  const [sign, grade] = VERDICTS[verdict.kind] ?? VERDICTS.none;
  const before = parts.kind.dataset.kind,
    title = begun().engines.find((engine) => engine.name === name)?.title ?? name;
  setText(parts.status, status);
  parts.status.dataset.status = status;
  setText(parts.kind, `${sign} ${verdict.kind === "none" ? "no verdict yet" : verdict.kind}`);
  parts.kind.className = `verdict ${grade}`;
  parts.kind.dataset.kind = verdict.kind;
  setText(parts.text, status === "running" ? verdict.text : text || verdict.text);
  // "Undecided" is not announced: every action causes it, and its announcement would interrupt that
  // of the action.
  const isDecided = !["none", "undecided"].includes(verdict.kind);
  if (before && before !== verdict.kind && isDecided) say(`${title}: ${verdict.kind}.`);
}

function showFigures() {
  const { panel, series, now_ms: nowMs } = begun();
  for (const [name, { figures }] of engineParts) {
    for (const figure of panel) setText(figures[figure.key], figureOf(name, figure));
  }
  setText(byId("elapsed"), clock(sessionS(nowMs)));
  controls.figures(series, latest);
}

/**
 * A figure of an engine as text: the sum over its services, or the highest of a lag in the last
 * second over all views; a single sample would not do, since lag rises and falls with each update.
 * @param {string} engine
 * @param {Figure} figure
 */
function figureOf(engine, { key, unit, group }) {
  const { series, now_ms: nowMs } = begun();
  const own = series.filter((one) => one.key === key && one.engine === engine);
  const isHighest = Boolean(GROUPS[group]?.highest);
  const known = own
    .map(({ id }) => (isHighest ? histories[group].peak(id, sessionS(nowMs) - 1) : latest[id]))
    .filter(isNumber);
  return formatOf(unit)(
    known.length
      ? known.reduce((one, other) => (isHighest ? Math.max(one, other) : one + other))
      : null,
  );
}

/** @param {State["memory"]} memory */
function showMemory(memory) {
  const list = byId("memory");
  if (!memory.length) return;
  while (list.children.length > memory.length) list.lastElementChild?.remove();
  memory.forEach(({ text, warn }, index) => {
    const item = list.children.item(index) ?? list.appendChild(element("li"));
    setText(item, text);
    item.className = warn ? "bad" : "";
  });
}

// All figures in one sentence, for the key that reads them out.
function summary() {
  if (!session) return "Not connected.";
  const { state, panel, series } = session;
  const engines = session.engines.map(({ name, title }) => {
    const { verdict, status } = state.engines.find((engine) => engine.name === name) ?? {
      verdict: { kind: "none" },
      status: "",
    };
    const figures = panel.map((figure) => `${figure.title} ${figureOf(name, figure)}`);
    const known = verdict.kind === "none" ? "no verdict yet" : verdict.kind;
    return `${title} ${status}: ${figures.join(", ")}, ${known}`;
  });
  const references = series
    .filter((one) => one.look === "reference")
    .map(({ id, label, unit }) => capital(`${label} ${formatOf(unit)(latest[id])}`));
  return [...references, ...engines, `In the way: ${byId("in-the-way").textContent}`].join(". ");
}

// --- curves --------------------------------------------------------------------------------------
/** @param {string[]} groups */
function buildCharts(groups) {
  const { charts: titles, series } = begun();
  const place = byId("plots"),
    key = JSON.stringify([groups, series]);
  if (place.dataset.key === key)
    for (const [index, chart] of charts.entries()) chart.use(histories[groups[index]]);
  else {
    place.dataset.key = key;
    charts = [];
    place.replaceChildren();
    for (const group of groups) {
      const figure = place.appendChild(element("div", { class: `chart ${group}` }));
      const lines = linesOf(group),
        chart = { ...GROUPS[group], ...titles[group], value: formatOf(lines[0]?.unit) };
      const label = chart.title
        ? `${chart.title}: ${chart.means}. The legend has the values as text.`
        : "Events over time. The list of events has them as text.";
      charts.push(
        new Chart(figure, { ...chart, label, lines }, histories[group], timeline, showReading),
      );
    }
  }
}

/**
 * Engines have the first colours, a service has the colour of its engine, and everything else has
 * the others.
 * @param {string} group
 * @returns {Line[]}
 */
function linesOf(group) {
  const { engines, series } = begun();
  /** @type {Map<number, number>} */
  const dashes = new Map();
  let other = engines.length;
  return series
    .filter((one) => one.group === group)
    .map(({ id, label, unit, engine, look }) => {
      const owner = engines.findIndex(({ name }) => name === engine),
        line = { id, label, unit };
      if (look === "reference") return { ...line, colour: null, dash: 1, width: 1.5 };
      if (owner < 0)
        return {
          ...line,
          colour: other,
          dash: Math.floor(other++ / LOOKS),
          width: 1.4,
          isHidden: look === "legend",
        };
      const dash = dashes.get(owner) ?? 0;
      dashes.set(owner, dash + 1);
      return { ...line, colour: owner, dash, width: dash ? 1.3 : 2 };
    });
}

function requestDraw() {
  const wait = Math.max(0, drawnMs + DRAW_EVERY_MS - performance.now());
  if (drawTimer || document.hidden) return;
  drawTimer = setTimeout(
    () =>
      requestAnimationFrame(() => {
        drawTimer = null;
        draw();
      }),
    wait,
  );
}

function draw(isForced = false) {
  drawnMs = performance.now();
  if (!isFrozen || isForced) {
    const nowS = sessionS(begun().now_ms);
    const isFull = nowS >= spanS;
    timeline.fromS = isFull ? nowS - spanS : 0;
    // A young session fills its minutes from the left; the axis grows in steps.
    timeline.untilS =
      isFull || nowS > MOST_STEP_S ? nowS : (STEPS_S.find((step) => step >= nowS) ?? MOST_STEP_S);
    // Drawing costs CPU time of the machine that is measured, so charts of figures that are sampled
    // once a second are drawn once a second.
    const isAll = isForced || drawnMs - drawnAllMs >= SLOW_EVERY_MS;
    if (isAll) drawnAllMs = drawnMs;
    for (const chart of charts) if (isAll || !chart.isSlow) chart.draw();
  }
  if (drawnMs - writtenMs < TEXT_EVERY_MS && !isForced) return;
  writtenMs = drawnMs;
  showFigures();
  for (const chart of charts) chart.read();
  showReading(charts[0]?.plot);
}
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && session) draw(true);
});

/**
 * The time under the cursor, and the event next to it.
 * @param {uPlot | null | undefined} plot
 */
function showReading(plot) {
  if (!plot || !session) return;
  const { idx, left = -1 } = plot.cursor;
  if (idx === null || idx === undefined || left < 0) {
    setText(byId("reading"), isFrozen ? `frozen at ${clock(timeline.untilS)}` : "latest values");
    return;
  }
  const timeS = plot.posToVal(left, "x"),
    near = (timeline.untilS - timeline.fromS) / 60;
  const mark = timeline
    .marksShown()
    .filter((one) => Math.abs(one.timeS - timeS) < near)
    .at(-1);
  setText(byId("reading"), `at ${clock(timeS)}${mark ? `: ${mark.text}` : ""}`);
}

/** @param {KeyboardEvent} event */
function moveCursor(event) {
  const { plot } = charts[0] ?? {};
  if (!plot) return;
  const width = plot.over.clientWidth,
    { left = -1 } = plot.cursor,
    at = left < 0 ? width : left;
  /** @type {Record<string, number>} */
  const places = {
    ArrowLeft: at - width / 100,
    ArrowRight: at + width / 100,
    Home: 0,
    End: width,
    Escape: -10,
  };
  const to = places[event.key];
  if (to === undefined) return;
  event.preventDefault();
  event.stopPropagation();
  plot.setCursor({
    left: to < 0 && event.key !== "Escape" ? 0 : Math.min(to, width),
    top: event.key === "Escape" ? -10 : 10,
  });
  if (event.key === "Escape") return;
  const values = document.querySelectorAll("#plots .rate li, #plots .lag li");
  const text = [...values].map((item) => item.textContent).join(", ");
  say(`${byId("reading").textContent}. ${text}`);
}

function buildSpans() {
  byId("spans").append(
    ...SPANS_S.map(([seconds, text], index) => {
      const radio = element("input", {
        type: "radio",
        name: "span",
        id: `span-${index}`,
        checked: seconds === spanS,
      });
      radio.addEventListener("change", () => showSpan(seconds));
      return element("span", {}, radio, element("label", { for: `span-${index}` }, text));
    }),
  );
}

/** @param {number} seconds */
function showSpan(seconds) {
  spanS = seconds;
  sessionStorage.setItem("span", String(seconds));
  inputOf(`span-${SPANS_S.findIndex(([each]) => each === seconds)}`).checked = true;
  if (session) draw(true);
}

function freeze() {
  isFrozen = !isFrozen;
  byId("freeze").setAttribute("aria-pressed", String(isFrozen));
  if (session) draw();
}

// The last minutes as a table, made when it is opened: one row a second at most.
function showTable() {
  const table = byIdOf("table", HTMLDetailsElement);
  const summary = table.querySelector("summary");
  if (!table.open || !session || !summary) return;
  const titles = session.charts;
  const lines = ["rate", "lag", "cpu", "memory", "noise"]
    .filter((group) => histories[group])
    .flatMap((group) => linesOf(group).map((line) => ({ ...line, group })));
  const untilS = Math.floor(timeline.untilS),
    step = Math.max(1, Math.ceil((timeline.untilS - timeline.fromS) / TABLE_ROWS));
  const rows = [];
  for (let timeS = untilS; timeS > timeline.fromS && rows.length < TABLE_ROWS; timeS -= step) {
    const cells = lines.map(({ id, unit, group }) => {
      const history = histories[group],
        at = history.indexAt(timeS);
      return at >= 0 && timeS - history.times[at] < step + 2
        ? formatOf(unit)(history.column(id)[at])
        : "";
    });
    if (cells.some(Boolean))
      rows.push(
        element(
          "tr",
          {},
          element("th", { scope: "row" }, clock(timeS)),
          ...cells.map((cell) => element("td", {}, cell)),
        ),
      );
  }
  const head = element(
    "tr",
    {},
    element("th", { scope: "col" }, "time"),
    ...lines.map(({ label, group }) =>
      element("th", { scope: "col" }, `${titles[group].title}: ${label}`),
    ),
  );
  table.replaceChildren(
    summary,
    element(
      "div",
      { class: "wide", tabindex: "0", role: "region", "aria-label": "Figures" },
      element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)),
    ),
  );
}

// --- keys ----------------------------------------------------------------------------------------
/** @param {string} id */
const focus = (id) => () => {
  const place = byId(id);
  place.focus();
  if (place instanceof HTMLInputElement) place.select();
};
/** @param {string} selector */
const focusFirst = (selector) => () => {
  const place = document.querySelector(selector);
  if (place instanceof HTMLElement) place.focus();
};
listen([
  { key: "+", means: "Raise the rate by one step of the slider", does: () => controls.step(1) },
  { key: "-", means: "Lower the rate by one step", does: () => controls.step(-1) },
  { key: "r", means: "Type a rate, such as 5k", does: focus("rate") },
  { key: "l", means: "Type a load profile, such as spike 5k 50k 10s", does: focus("profile") },
  { key: "n", means: "Mark this moment with a note", does: focus("note") },
  {
    key: "v",
    means: "Go to the services: Tab and Enter pause, kill and restart",
    does: focusFirst("#services button"),
  },
  {
    key: "o",
    means: "Go to the other load: purchases, updates, deletions, reads",
    does: focusFirst("#kinds input"),
  },
  { key: "c", means: "Go to the curves: arrow keys move the cursor", does: focus("plots") },
  { key: "f", means: "Freeze the curves, or let them run", does: freeze },
  ...SPANS_S.map(([seconds, text], index) => ({
    key: String(index + 1),
    means: `Show ${text === "all" ? "the whole session" : `the last ${text}`}`,
    does: () => showSpan(seconds),
  })),
  { key: "s", means: "Read the figures out (screen readers)", does: () => say(summary()) },
  { key: "e", means: "End the session; asks first", does: () => byId("ask-end").click() },
  { key: "?", means: "Show these keys", does: () => dialogOf("keys").showModal() },
]);
byId("show-keys").addEventListener("click", () => dialogOf("keys").showModal());
byId("freeze").addEventListener("click", freeze);
byId("plots").addEventListener("keydown", moveCursor);
byId("table").addEventListener("toggle", showTable);
buildSpans();
connect();
