// Ranks the engines of one workload and machine by one figure. All figures, ratios and claims are
// in the page; nothing is computed here.
import { drawChart, element, isValue, number, partOf, tableBehind } from "./charts.js";

/**
 * @import {
 *   ChartData, ChartPlan, Line, Load, RankedRow, RankingData, Result,
 * } from "./types.d.ts"
 */

/**
 * The element with this id, which must be of this kind.
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} kind
 */
const byIdOf = (id, kind) => {
  const place = document.getElementById(id);
  if (!(place instanceof kind)) throw new TypeError(`The page has no ${kind.name} #${id}.`);
  return place;
};
/** @param {string} id */
const byId = (id) => byIdOf(id, HTMLElement);
/** @param {string} id */
const selectOf = (id) => byIdOf(id, HTMLSelectElement);

/** @type {RankingData} */
const DATA = JSON.parse(byId("data").textContent ?? "");
const { metrics: METRICS, standings: STANDINGS } = DATA;
const choice = { workload: "", machine: "", metric: "", load: "", class: "" };
const state = {
  ...choice,
  hidden: /** @type {Set<string>} */ (new Set()),
  sort: "value",
  down: false,
};
/** @param {string[]} values */
const unique = (values) => [...new Set(values)];
// An engine has the same colour with all workloads and machines.
const NAMES = unique(
  STANDINGS.flatMap((standing) => standing.results.map((result) => result.name)),
).sort();

/**
 * A value that must exist.
 * @template T
 * @param {T | undefined} value
 */
const there = (value) => {
  if (value === undefined) throw new TypeError("The page's data is incomplete.");
  return value;
};
const standing = () =>
  there(STANDINGS.find((one) => one.workload === state.workload && one.machine === state.machine));
/** @param {string} name */
const resultOf = (name) => there(standing().results.find((result) => result.name === name));
const CLASSES = DATA.classes;
// A choice is a text such as `where results live: served`; the empty one stands for all.
const choicesOf = () => Object.keys(standing().answers);
/** @param {Result} result */
const isOfClass = ({ classes }) =>
  !state.class ||
  Object.entries(CLASSES).some(([key, title]) => `${title}: ${classes[key]}` === state.class);
/** @param {string} name */
const isShown = (name) => !state.hidden.has(resultOf(name).path) && isOfClass(resultOf(name));
/** @param {string} key */
const rankingsOf = (key) => standing().rankings[key];
/** @param {string} key */
const isMeasured = (key) => Object.keys(rankingsOf(key)).length > 0;
/** @param {string} key */
const loadsOf = (key) => standing().loads.filter((load) => load.id in rankingsOf(key));
/**
 * Rows of the chosen figure and load, the best first; then the engines without a figure.
 * @returns {RankedRow[]}
 */
const ranked = () => {
  const rankings = rankingsOf(state.metric);
  const rows = rankings[state.load] ?? rankings[""] ?? [];
  const missing = standing().results.filter(
    (result) => !rows.some((row) => row.name === result.name),
  );
  return [
    ...rows,
    ...missing.map((result) => ({
      name: result.name,
      text: "",
      factors: {},
      n: 0,
      held: true,
      unranked: "",
      verdicts: {},
    })),
  ]
    .map((row, rank) => ({ ...row, rank, result: resultOf(row.name) }))
    .filter((row) => isShown(row.name));
};
/**
 * The ratio to the best of the engines shown.
 * @param {RankedRow} row
 * @param {string} [best]
 */
const factorText = (row, best) => {
  if (!row.n) return "";
  if (row.unranked) return `not ranked: ${row.unranked}`;
  if (!row.held) return "did not hold the load";
  return row.name === best ? "best" : (row.factors[best ?? ""] ?? "no ratio");
};
/** @param {RankedRow[]} rows */
const bestOf = (rows) => rows.find((row) => row.n && !row.unranked && row.held)?.name;
/** @param {Result} result */
const classText = ({ classes }) =>
  Object.keys(CLASSES)
    .map((key) => classes[key])
    .filter((of) => of && of !== "all views")
    .join("; ");
/** @param {RankedRow} row */
const interval = (row) =>
  row.low === null || row.low === undefined
    ? row.n > 1
      ? "interval not resolved"
      : "single run, no interval"
    : `${number(row.low)} to ${number(row.high)}`;

/** @param {string} text */
const note = (text) => element("li", { class: "muted" }, text);
/** @param {string[]} names */
const list = (names) => names.join(", ").replace(/, ([^,]*)$/, " and $1");
const caveats = () => {
  /** @type {Record<string, string[]>} */
  const names = {};
  const shown = standing().results.filter((result) => isShown(result.name));
  for (const result of shown) {
    for (const text of result.caveats ?? []) names[text] = [...(names[text] ?? []), result.name];
  }
  const unverified = shown.filter((result) => !result.views.runs).map((result) => result.name);
  const lines = Object.entries(names).map(([text, of]) => note(`${list(of)}: ${text}`));
  return unverified.length
    ? [...lines, note(`The answers of ${list(unverified)} were not verified in these runs.`)]
    : lines;
};

/** @param {Result} result */
const viewsText = ({ views }) => {
  if (!views.of_workload) return "";
  const there = views.of_workload - (views.absent || []).length;
  return there === views.of_workload ? `all ${there}` : `△ ${there} of ${views.of_workload}`;
};
/** @param {Result} result */
const answersText = ({ views }) => {
  if (!views.runs) return "not checked";
  return views.wrong.length ? `✗ ${views.wrong.length} wrong` : `✓ ${views.right.length} verified`;
};
// Beyond what voids a run by default (docs/noise.md).
const FOREIGN_MAX_PCT = 5,
  STEAL_MAX_PCT = 1;
/** @param {Result} result */
const disturbance = ({ noise }) => {
  const shares = [
    noise.foreign_cpu_max_pct > FOREIGN_MAX_PCT
      ? `other programs used up to ${number(noise.foreign_cpu_max_pct)} % of a core`
      : "",
    noise.steal_max_pct > STEAL_MAX_PCT
      ? `other machines took up to ${number(noise.steal_max_pct)} % of the CPU time`
      : "",
  ].filter(Boolean);
  return shares.length ? `△ disturbed: ${shares.join(", ")}` : "";
};
/** @type {{ key: string, title: string, of: (row: RankedRow) => string | number }[]} */
const COLUMNS = [
  { key: "engine", title: "Engine", of: (row) => row.name },
  { key: "value", title: "Figure", of: (row) => row.rank },
  { key: "factor", title: "Times the best", of: (row) => row.rank },
  { key: "answers", title: "Answers", of: (row) => answersText(row.result) },
  { key: "views", title: "Views", of: (row) => (row.result.views.absent || []).length },
  { key: "class", title: "Class", of: (row) => classText(row.result) || "~" },
  { key: "n", title: "Runs", of: (row) => -row.n },
];

/**
 * @param {RankedRow} row
 * @param {number} most
 */
const bar = (row, most) => {
  if (row.mean === null || row.mean === undefined)
    return element("span", { class: "muted" }, row.n ? "lag without limit" : "not measured");
  const share = (/** @type {number} */ value) => `${((100 * value) / most).toFixed(2)}%`;
  const marks = [element("span", { class: "fill", style: `width:${share(row.mean)}` })];
  const { low, high } = row;
  if (isValue(low) && isValue(high)) {
    marks.push(
      element("span", {
        class: "whisker",
        style: `left:${share(low)};width:${share(high - low)}`,
      }),
    );
  }
  return element(
    "div",
    {},
    element("div", { class: "bar", "aria-hidden": "true" }, ...marks),
    element("b", {}, row.text),
    ` ${METRICS[state.metric].unit} `,
    element("small", {}, interval(row)),
  );
};

/** @param {Result} result */
const facts = (result) => {
  const pairs = (/** @type {Record<string, string>} */ of) =>
    Object.entries(of)
      .map(([name, value]) => `${name} ${value}`)
      .join(", ") || "none";
  const { noise, machine } = result;
  const days = unique([result.measured_from, result.measured_until]).join(" to ");
  const speeds = [noise.core_min_mib_per_s, noise.core_max_mib_per_s].map((speed) => number(speed));
  const lines = [
    ["Measured", `${days}, ${standing().place}, kernel ${machine.kernel}`],
    ["Versions", pairs(result.versions)],
    ["Changed settings", pairs(result.settings)],
    [
      "Other programs",
      `at most ${number(noise.foreign_cpu_max_pct)} % of a core; stolen by the hypervisor at most` +
        ` ${number(noise.steal_max_pct)} % of all cores; core speed ${speeds.join(" to ")} MiB/s`,
    ],
    ["Views missing", (result.views.absent || []).join(", ")],
    ["Views wrong", (result.views.wrong || []).join(", ")],
    ["Before comparing", (result.caveats || []).join(" ")],
    ["Left out", (result.left_out || []).join("; ")],
    [
      "Raw data",
      `${result.raw.files} files in ${result.raw.folders.join(", ")}; SHA-256 ${result.raw.sha256}`,
    ],
  ].filter(([, text]) => text);
  return element(
    "div",
    {},
    element("p", {}, "To repeat it:"),
    ...result.commands.map((command) => element("pre", {}, command)),
    element(
      "dl",
      { class: "pairs" },
      ...lines.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)]),
    ),
    element(
      "p",
      {},
      element(
        "a",
        { href: `../results/${result.path.split("/").map(encodeURIComponent).join("/")}` },
        `results/${result.path}`,
      ),
    ),
  );
};

const atLoad = () =>
  state.load in rankingsOf(state.metric) && state.load ? ` at ${state.load}` : "";
const showTable = () => {
  const rows = ranked(),
    metric = METRICS[state.metric],
    best = bestOf(rows);
  const most =
    Math.max(...rows.filter((row) => row.mean).map((row) => row.high ?? row.mean ?? 0), 0) || 1;
  const column = there(COLUMNS.find((each) => each.key === state.sort));
  rows.sort((a, b) => {
    const [one, other] = [column.of(a), column.of(b)];
    const order = typeof one === "string" ? one.localeCompare(String(other)) : one - Number(other);
    return (state.down ? -order : order) || a.rank - b.rank;
  });
  byId("means").textContent =
    `${metric.title}${atLoad()}. ${metric.means} ${metric.more ? "More" : "Less"} is better.` +
    " Bars: means with 95 % intervals.";
  for (const head of document.querySelectorAll("#ranking thead th")) {
    const mine = head.getAttribute("data-key") === state.sort;
    head.setAttribute("aria-sort", mine ? (state.down ? "descending" : "ascending") : "none");
  }
  /**
   * @param {string} key
   * @param {Node | string} content
   * @param {RankedRow} row
   */
  const cell = (key, content, row) => {
    const isWrong = key === "answers" && (row.result.views.wrong || []).length > 0;
    return element(
      key === "engine" ? "th" : "td",
      {
        class: `c-${key}${isWrong ? " bad" : ""}`,
        role: key === "engine" ? "rowheader" : "cell",
        scope: key === "engine" ? "row" : null,
        "data-title": there(COLUMNS.find((each) => each.key === key)).title,
      },
      content,
    );
  };
  byIdOf("ranking", HTMLTableElement).tBodies[0].replaceChildren(
    ...rows.flatMap((row) => [
      element(
        "tr",
        { role: "row", "data-engine": row.result.engine },
        cell(
          "engine",
          element(
            "span",
            {},
            row.name,
            " ",
            element("small", {}, `version ${row.result.version}, ${row.result.measured_until}`),
            ...[disturbance(row.result)]
              .filter(Boolean)
              .map((text) => element("small", { class: "open" }, ` ${text}`)),
          ),
          row,
        ),
        cell("value", bar(row, most), row),
        cell("factor", factorText(row, best), row),
        cell("answers", answersText(row.result), row),
        cell("views", viewsText(row.result), row),
        cell("class", classText(row.result) || "not known", row),
        cell("n", row.n ? String(row.n) : "", row),
      ),
      element(
        "tr",
        { class: "record", role: "row" },
        element(
          "td",
          { colspan: COLUMNS.length, role: "cell" },
          element(
            "details",
            {},
            element("summary", {}, `Record of ${row.name}, and the command to repeat it`),
            facts(row.result),
          ),
        ),
      ),
    ]),
  );
};

/**
 * A line of a figure over the rates, without values that a logarithmic axis has no place for.
 * @param {string} name
 * @param {string} key
 * @param {string} label
 * @param {number[]} [dash]
 * @returns {Line}
 */
const line = (name, key, label, dash) => {
  const points = loadsOf(key)
    .filter((load) => load.share === null)
    .map((load) => ({
      x: load.per_s,
      row: rankingsOf(key)[load.id].find((row) => row.name === name),
    }))
    .filter(({ row }) => (row?.mean ?? 0) > 0);
  const of = (/** @type {"mean" | "low" | "high"} */ end) =>
    points.map(({ row }) => row?.[end] ?? null);
  return {
    name: label,
    look: NAMES.indexOf(name),
    kind: "points",
    dash,
    x: points.map(({ x }) => x),
    y: of("mean"),
    low: of("low"),
    high: of("high"),
  };
};
/** @type {Record<string, Partial<ChartData>>} */
const AXES = { lag: { log_x: true, log_y: true }, cpu: { x_from_zero: true } };
/**
 * A chart of figures over the rate, with a line for each engine and figure; all but the first
 * figure are dotted and without intervals.
 * @param {string} name
 * @param {ChartPlan} plan
 * @param {string[]} names
 * @returns {ChartData}
 */
const chartOf = (name, { title, unit, decimals, keys }, names) => {
  /**
   * @param {string} engine
   * @param {string} key
   * @param {number} index
   */
  const lineOf = (engine, key, index) => {
    if (keys.length === 1) return line(engine, key, engine);
    const drawn = line(engine, key, `${engine} ${METRICS[key].title}`, index ? [2, 4] : []);
    return index ? { ...drawn, low: null, high: null } : drawn;
  };
  return {
    title: `${title[0].toUpperCase()}${title.slice(1)} against rate`,
    x_title: "events/s",
    x_unit: "/s",
    x_decimals: 0,
    y_title: `${title}, ${unit}`,
    y_unit: ` ${unit}`,
    y_decimals: decimals,
    ...AXES[name],
    lines: names.flatMap((engine) => keys.map((key, index) => lineOf(engine, key, index))),
  };
};
const showCharts = () => {
  const names = standing()
    .results.map((result) => result.name)
    .filter(isShown);
  for (const [name, of] of Object.entries(DATA.charts)) {
    const chart = chartOf(name, of, names),
      figure = byId(`chart-${name}`);
    figure.hidden = !chart.lines.some((each) => each.x.length);
    partOf(figure, "h3").textContent = chart.title;
    drawChart(partOf(figure, ".plot"), chart);
    const details = element("details", {}, element("summary", {}, "Table"));
    tableBehind(details, chart);
    partOf(figure, ".behind").replaceChildren(details);
  }
};

/**
 * @param {HTMLSelectElement} select
 * @param {string[]} values
 * @param {(value: string) => string} text
 * @param {string} value
 */
const fill = (select, values, text, value) => {
  select.replaceChildren(
    ...values.map((each) =>
      element("option", { value: each, selected: each === value }, text(each)),
    ),
  );
};
/**
 * @param {string} wanted
 * @param {string[]} among
 * @param {string} fallback
 */
const pick = (wanted, among, fallback) => (among.includes(wanted) ? wanted : fallback);
/**
 * The highest load that the most engines held.
 * @param {string} key
 */
const defaultLoad = (key) => {
  const held = (/** @type {Load} */ load) =>
    rankingsOf(key)[load.id].filter((row) => row.held && !row.unranked).length;
  const counts = loadsOf(key).map(held);
  return loadsOf(key)[counts.lastIndexOf(Math.max(...counts))]?.id ?? "";
};
const show = () => {
  const workloads = unique(STANDINGS.map((one) => one.workload));
  state.workload = pick(state.workload, workloads, workloads[0]);
  const machines = STANDINGS.filter((one) => one.workload === state.workload);
  state.machine = pick(
    state.machine,
    machines.map((one) => one.machine),
    machines[0].machine,
  );
  const keys = Object.keys(METRICS).filter(isMeasured);
  const first = pick(DATA.default, keys, keys[0]);
  state.metric = pick(state.metric, keys, first);
  state.load = pick(
    state.load,
    standing().loads.map((load) => load.id),
    defaultLoad(first),
  );
  fill(selectOf("workload"), workloads, String, state.workload);
  fill(
    selectOf("machine"),
    machines.map((one) => one.machine),
    (name) => there(machines.find((one) => one.machine === name)).place,
    state.machine,
  );
  fill(
    selectOf("load"),
    standing().loads.map((load) => load.id),
    String,
    state.load,
  );
  fill(selectOf("metric"), keys, (key) => METRICS[key].title, state.metric);
  state.class = pick(state.class, choicesOf(), "");
  fill(selectOf("class"), choicesOf(), (choice) => choice || "all", state.class);
  selectOf("load").disabled = !(state.load in rankingsOf(state.metric));
  byId("engines").replaceChildren(
    ...standing().results.map((result) => {
      const box = element("input", {
        type: "checkbox",
        checked: !state.hidden.has(result.path),
        value: result.path,
      });
      box.addEventListener("change", () => {
        if (box.checked) state.hidden.delete(result.path);
        else state.hidden.add(result.path);
        render();
      });
      return element("label", {}, box, ` ${result.name}`);
    }),
  );
  render();
};
const render = () => {
  byId("answers").replaceChildren(
    ...standing().answers[state.class].map((text) => element("li", {}, text)),
    ...caveats(),
  );
  showTable();
  showCharts();
  const hidden = [...state.hidden].join(" ");
  const kept = {
    workload: state.workload,
    machine: state.machine,
    metric: state.metric,
    load: state.load,
    ...(state.class ? { class: state.class } : {}),
    ...(hidden ? { hidden } : {}),
  };
  history.replaceState(null, "", `#${new URLSearchParams(kept)}`);
};

const CHOICES = /** @type {(keyof typeof choice)[]} */ (Object.keys(choice));
for (const name of CHOICES) {
  const select = selectOf(name);
  select.addEventListener("change", () => {
    state[name] = select.value;
    state.sort = "value";
    state.down = false;
    show();
  });
}
byIdOf("ranking", HTMLTableElement).tHead?.rows[0].replaceChildren(
  ...COLUMNS.map((column) => {
    const button = element("button", { type: "button" }, column.title);
    button.addEventListener("click", () => {
      state.down = state.sort === column.key && !state.down;
      state.sort = column.key;
      showTable();
    });
    return element("th", { scope: "col", role: "columnheader", "data-key": column.key }, button);
  }),
);
const linked = new URLSearchParams(location.hash.slice(1));
for (const name of CHOICES) state[name] = linked.get(name) ?? state[name];
for (const path of (linked.get("hidden") ?? "").split(" ")) if (path) state.hidden.add(path);
if (STANDINGS.length) show();
else byId("means").textContent = "There are no results yet: ./race publish FOLDER…";
