// Shows the matrix of one workload and machine, its charts and records. All figures and claims are
// in the page's data (racetrack/report/ranking.py); nothing is computed here.
import { drawChart, element, partOf, tableBehind } from "./charts.js";

/** @import { Column, Row, Standing } from "./types.d.ts" */

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

/** @type {Standing[]} */
const STANDINGS = JSON.parse(byId("data").textContent ?? "");
const CHOICES = /** @type {const} */ (["workload", "machine", "class", "figure"]);
const state = { workload: "", machine: "", class: "", figure: "", sort: "", isDown: false };
/** @param {string[]} values */
const unique = (values) => [...new Set(values)];

const standing = () => {
  const { workload, machine } = state;
  const chosen = STANDINGS.find((one) => one.workload === workload && one.machine === machine);
  if (!chosen) throw new TypeError(`There are no results of ${workload} on ${machine}.`);
  return chosen;
};
const choice = () => standing().choices[state.class];
// The queries of the chosen workload, on the chosen machine.
const family = () => {
  const { family: workload, machine } = standing();
  return STANDINGS.filter((one) => one.family === workload && one.machine === machine);
};
/**
 * @param {Row} row
 * @param {string} text
 */
const link = (row, text) => {
  const path = row.path.split("/").map(encodeURIComponent).join("/");
  return element("a", { href: `../results/${path}` }, text);
};

/**
 * Columns that are sorted by their texts.
 * @type {Record<string, (row: Row) => string>}
 */
const TEXTS = {
  engine: (row) => row.name,
  answers: (row) => row.answers,
  classes: (row) => row.classes,
};
/**
 * @param {Row} row
 * @param {string} key
 */
const sortValue = (row, key) =>
  key in TEXTS ? TEXTS[key](row) : row.unranked ? null : row.cells[key].value;
/**
 * Rows in the chosen order; those without a value are last in both directions.
 * @param {Row[]} rows
 */
const sorted = (rows) => {
  const key = state.sort;
  const column = standing().columns.find((one) => one.key === key);
  const direction = (column?.is_more_better ? -1 : 1) * (state.isDown ? -1 : 1);
  return [...rows].sort((row, other) => {
    const value = sortValue(row, key),
      beside = sortValue(other, key);
    if (value === null || beside === null)
      return Number(value === null) - Number(beside === null) || row.name.localeCompare(other.name);
    const order =
      typeof value === "number" ? value - Number(beside) : value.localeCompare(String(beside));
    return direction * order || row.name.localeCompare(other.name);
  });
};
const shownRows = () => sorted(standing().rows.filter((row) => choice().names.includes(row.name)));

/** @typedef {Pick<Column, "key" | "title"> & Partial<Column>} Heading */
/** @returns {Heading[]} */
const headings = () => [
  { key: "engine", title: "engine" },
  ...standing().columns,
  { key: "answers", title: "answers" },
  { key: "classes", title: "class" },
];
/** @param {Heading} heading */
const titleOf = ({ title, at, unit }) =>
  `${title}${at ? ` at ${at}` : ""}${unit ? `, ${unit}` : ""}`;
/** @param {string} key */
const sortBy = (key) => {
  state.isDown = state.sort === key && !state.isDown;
  state.sort = key;
  showMatrix();
  partOf(document, `#matrix th[data-key="${key}"] button`).focus();
};
/** @param {Heading} heading */
const headCell = ({ key, title, at, unit, means, is_more_better: isMoreBetter }) => {
  const button = element(
    "button",
    { type: "button", title: means },
    title,
    at ? element("small", {}, ` at ${at}`) : null,
    unit ? element("small", {}, ` ${unit}`) : null,
  );
  button.addEventListener("click", () => sortBy(key));
  const direction = state.isDown === Boolean(isMoreBetter) ? "ascending" : "descending";
  const attributes = { scope: "col", role: "columnheader", "data-key": key };
  const sort = state.sort === key ? direction : "none";
  return element("th", { ...attributes, "aria-sort": sort }, button);
};
/**
 * @param {Row} row
 * @param {Column} column
 * @param {string[]} best
 */
const figureCell = (row, column, best) => {
  const { text, sure, whole } = row.cells[column.key];
  const isBest = best.includes(row.name);
  return element(
    "td",
    {
      role: "cell",
      class: isBest ? "best" : "",
      title: whole ? `${whole} ${column.unit}` : null,
      "data-title": titleOf(column),
    },
    isBest ? element("span", { class: "star", title: "best in this column" }, "★ ") : null,
    text ? element("b", {}, text) : null,
    " ",
    element("small", {}, sure),
  );
};
/** @param {Row} row */
const cells = (row) => {
  const remarks = [row.version, row.unranked, row.disturbed].filter(Boolean);
  return [
    element(
      "th",
      { scope: "row", role: "rowheader" },
      link(row, row.name),
      " ",
      ...remarks.map((text) => element("small", {}, text)),
    ),
    ...standing().columns.map((column) => figureCell(row, column, choice().best[column.key])),
    element(
      "td",
      { role: "cell", class: row.is_wrong ? "bad" : "", "data-title": "answers" },
      element(row.is_wrong ? "b" : "small", {}, row.answers),
    ),
    element(
      "td",
      { role: "cell", class: "classes", "data-title": "class" },
      element("small", {}, row.classes || "not known"),
    ),
  ];
};
const showMatrix = () => {
  partOf(document, "#matrix thead tr").replaceChildren(...headings().map(headCell));
  const rows = shownRows().map((row) =>
    element("tr", { role: "row", "data-engine": row.engine }, ...cells(row)),
  );
  partOf(document, "#matrix tbody").replaceChildren(...rows);
};

/**
 * The row of a query with one figure of each engine.
 * @param {Standing} query
 * @param {string} key
 * @param {string[]} names
 */
const queryRow = (query, key, names) => {
  const button = element("button", { type: "button" }, query.query);
  button.addEventListener("click", () => {
    state.workload = query.workload;
    show();
    byId("matrix").scrollIntoView({ block: "nearest" });
  });
  const column = query.columns.find((one) => one.key === key);
  const figures = names.map((name) => {
    const row = query.rows.find((one) => one.name === name);
    const best = query.choices[state.class]?.best ?? {};
    return row && column ? figureCell(row, column, best[key] ?? []) : element("td", {});
  });
  const current = query === standing() ? { "aria-current": "true" } : {};
  return element("tr", current, element("th", { scope: "row" }, button), ...figures);
};
// Shows one figure of all queries of the workload. Stars are those within a query.
const showQueries = () => {
  const queries = family();
  byId("queries").hidden = queries.length < 2;
  if (queries.length < 2) return;
  const columns = new Map(queries.flatMap((one) => one.columns.map((each) => [each.key, each])));
  offer("figure", [...columns.keys()], (key) => titleOf(columns.get(key) ?? { key, title: key }));
  const known = unique(queries.flatMap((one) => one.choices[state.class]?.names ?? []));
  const names = known.sort((name, other) => name.localeCompare(other));
  const head = ["query", ...names].map((name) => element("th", { scope: "col" }, name));
  partOf(document, "#queries thead tr").replaceChildren(...head);
  const rows = queries.map((query) => queryRow(query, state.figure, names));
  partOf(document, "#queries tbody").replaceChildren(...rows);
};

const showCharts = () => {
  for (const [name, whole] of Object.entries(standing().charts)) {
    const lines = whole.lines.filter((line) => choice().names.includes(line.name));
    const chart = { ...whole, lines };
    const place = byId(`chart-${name}`);
    place.hidden = !lines.some((line) => line.x.length);
    partOf(place, "h3").textContent = chart.title;
    drawChart(partOf(place, ".plot"), chart);
    const details = element("details", {}, element("summary", {}, "Table"));
    tableBehind(details, chart);
    partOf(place, ".behind").replaceChildren(details);
  }
};

/** @param {Row} row */
const record = (row) =>
  element(
    "div",
    { class: "record" },
    element("h3", {}, row.name),
    element("p", {}, "To repeat it:"),
    ...row.commands.map((command) => element("pre", {}, command)),
    element(
      "dl",
      { class: "pairs" },
      ...row.facts.flatMap(([title, text]) => [element("dt", {}, title), element("dd", {}, text)]),
    ),
    element("p", {}, link(row, `results/${row.path}`)),
  );

/**
 * Offers values with their texts, and keeps the chosen one or takes the first.
 * @param {(typeof CHOICES)[number]} name
 * @param {string[]} values
 * @param {(value: string) => string} [textOf]
 */
const offer = (name, values, textOf = String) => {
  if (!values.includes(state[name])) state[name] = values[0];
  byId(name).replaceChildren(
    ...values.map((value) =>
      element("option", { value, selected: value === state[name] }, textOf(value)),
    ),
  );
};

// Shows everything for the choices in `state`, and replaces those that are not there.
const show = () => {
  offer("workload", unique(STANDINGS.map((one) => one.workload)));
  const places = STANDINGS.filter((one) => one.workload === state.workload);
  const titles = new Map(places.map((one) => [one.machine, one.place]));
  offer("machine", [...titles.keys()], (machine) => titles.get(machine) ?? machine);
  offer("class", Object.keys(standing().choices), (text) => text || "all");
  const { columns, missing } = standing();
  const keys = [...columns.map((column) => column.key), ...Object.keys(TEXTS)];
  if (!keys.includes(state.sort)) state.sort = keys[0];
  byId("missing").textContent = missing.length ? `Without figures: ${missing.join("; ")}.` : "";
  byId("answers").replaceChildren(...choice().answers.map((text) => element("li", {}, text)));
  byId("records").replaceChildren(...shownRows().map(record));
  showMatrix();
  showQueries();
  showCharts();
  const kept = CHOICES.filter((name) => state[name]).map((name) => [name, state[name]]);
  history.replaceState(null, "", `#${new URLSearchParams(kept)}`);
};

const linked = new URLSearchParams(location.hash.slice(1));
for (const name of CHOICES) {
  state[name] = linked.get(name) ?? "";
  const select = byIdOf(name, HTMLSelectElement);
  select.addEventListener("change", () => {
    state[name] = select.value;
    show();
  });
}
if (STANDINGS.length) show();
else byId("missing").textContent = "There are no results yet: ./race publish FOLDER…";
