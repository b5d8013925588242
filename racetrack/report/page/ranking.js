// Shows the matrix of one workload and machine, its charts and records. All figures and claims are
// in the page's data (racetrack/report/ranking.py); nothing is computed here.
"use strict";
const STANDINGS = JSON.parse(document.getElementById("data").textContent);
const CHOICES = ["workload", "machine", "class"];
const state = { workload: "", machine: "", class: "", sort: "", isDown: false };
const byId = (id) => document.getElementById(id);
const unique = (values) => [...new Set(values)];

const standing = () =>
  STANDINGS.find((one) => one.workload === state.workload && one.machine === state.machine);
const choice = () => standing().choices[state.class];
const recordOf = (row) => `../results/${row.path.split("/").map(encodeURIComponent).join("/")}`;
const link = (row, ...content) => element("a", { href: recordOf(row) }, ...content);

// What a column of the matrix is sorted by; rows without a value come last in both directions.
const TEXTS = {
  engine: (row) => row.name,
  answers: (row) => row.answers,
  classes: (row) => row.classes,
};
const valueOf = (row, key) => TEXTS[key]?.(row) ?? row.cells[key].value;
const isRanked = (row, key) => key in TEXTS || !row.unranked;
const isLast = (row, key) => !isRanked(row, key) || valueOf(row, key) === null;
const sorted = (rows) => {
  const key = state.sort;
  const column = standing().columns.find((of) => of.key === key);
  const direction = (column?.is_more_better ? -1 : 1) * (state.isDown ? -1 : 1);
  return [...rows].sort((a, b) => {
    if (isLast(a, key) !== isLast(b, key)) return isLast(a, key) - isLast(b, key);
    const [one, other] = [valueOf(a, key), valueOf(b, key)];
    const order = typeof one === "string" ? one.localeCompare(other) : (one ?? 0) - (other ?? 0);
    return direction * order || a.name.localeCompare(b.name);
  });
};
const rows = () => sorted(standing().rows.filter((row) => choice().names.includes(row.name)));

const headings = () => [
  { key: "engine", title: "engine" },
  ...standing().columns,
  { key: "answers", title: "answers" },
  { key: "classes", title: "class" },
];
const sortBy = (key) => {
  state.isDown = state.sort === key && !state.isDown;
  state.sort = key;
  showMatrix();
  document.querySelector(`#matrix th[data-key="${key}"] button`).focus();
};
const heading = ({ key, title, at, unit, means, is_more_better: isMoreBetter }) => {
  const button = element("button", { type: "button", title: means }, title,
    at ? element("small", {}, ` at ${at}`) : null,
    unit ? element("small", {}, ` ${unit}`) : null);
  button.addEventListener("click", () => sortBy(key));
  const direction = state.isDown === Boolean(isMoreBetter) ? "ascending" : "descending";
  return element("th", { scope: "col", role: "columnheader", "data-key": key,
    "aria-sort": state.sort === key ? direction : "none" }, button);
};
const figure = (row, column) => {
  const { text, sure, whole } = row.cells[column.key];
  const isBest = choice().best[column.key].includes(row.name);
  const star = element("span", { class: "star", title: "best in this column" }, "★ ");
  return element("td", {
    role: "cell",
    class: isBest ? "best" : "",
    title: whole ? `${whole} ${column.unit}` : null,
    "data-title": `${column.title}${column.at ? ` at ${column.at}` : ""}, ${column.unit}`,
  }, isBest ? star : null, text ? element("b", {}, text) : null, " ", element("small", {}, sure));
};
const cells = (row) => {
  const remarks = [row.version, row.unranked, row.disturbed].filter(Boolean);
  return [
    element("th", { scope: "row", role: "rowheader" }, link(row, row.name), " ",
      ...remarks.map((text) => element("small", {}, text))),
    ...standing().columns.map((column) => figure(row, column)),
    element("td", { role: "cell", class: row.is_wrong ? "bad" : "", "data-title": "answers" },
      row.answers),
    element("td", { role: "cell", class: "classes", "data-title": "class" },
      element("small", {}, row.classes || "not known")),
  ];
};
const showMatrix = () => {
  const table = byId("matrix");
  table.tHead.rows[0].replaceChildren(...headings().map(heading));
  table.tBodies[0].replaceChildren(...rows().map((row) =>
    element("tr", { role: "row", "data-engine": row.engine }, ...cells(row))));
};

const showCharts = () => {
  for (const [name, whole] of Object.entries(standing().charts)) {
    const lines = whole.lines.filter((line) => choice().names.includes(line.name));
    const chart = { ...whole, lines };
    const place = byId(`chart-${name}`);
    place.hidden = !lines.some((line) => line.x.length);
    place.querySelector("h3").textContent = chart.title;
    drawChart(place.querySelector(".plot"), chart);
    const details = element("details", {}, element("summary", {}, "Table"));
    tableBehind(details, chart);
    place.querySelector(".behind").replaceChildren(details);
  }
};

const record = (row) => element("div", { class: "record" },
  element("h3", {}, row.name), element("p", {}, "To repeat it:"),
  ...row.commands.map((command) => element("pre", {}, command)),
  element("dl", { class: "pairs" },
    ...row.facts.flatMap(([title, text]) => [element("dt", {}, title), element("dd", {}, text)])),
  element("p", {}, link(row, `results/${row.path}`)));

const fill = (select, values, textOf, value) => select.replaceChildren(
  ...values.map((of) => element("option", { value: of, selected: of === value }, textOf(of))));
const pick = (wanted, among) => (among.includes(wanted) ? wanted : among[0]);

// Shows everything for the choices in `state`, and replaces those that are not there.
const show = () => {
  const workloads = unique(STANDINGS.map((of) => of.workload));
  state.workload = pick(state.workload, workloads);
  const places = STANDINGS.filter((of) => of.workload === state.workload);
  state.machine = pick(state.machine, places.map((of) => of.machine));
  const classes = Object.keys(standing().choices);
  state.class = pick(state.class, classes);
  state.sort = pick(state.sort, standing().columns.map((of) => of.key).concat(Object.keys(TEXTS)));
  fill(byId("workload"), workloads, String, state.workload);
  fill(byId("machine"), places.map((of) => of.machine),
    (machine) => places.find((of) => of.machine === machine).place, state.machine);
  fill(byId("class"), classes, (text) => text || "all", state.class);
  const { missing } = standing();
  byId("missing").textContent = missing.length ? `Not measured here: ${missing.join("; ")}.` : "";
  byId("answers").replaceChildren(...choice().answers.map((text) => element("li", {}, text)));
  byId("records").replaceChildren(...rows().map(record));
  showMatrix();
  showCharts();
  const kept = CHOICES.filter((name) => state[name]).map((name) => [name, state[name]]);
  history.replaceState(null, "", `#${new URLSearchParams(kept)}`);
};

for (const name of CHOICES) {
  byId(name).addEventListener("change", (event) => { state[name] = event.target.value; show(); });
}
const linked = new URLSearchParams(location.hash.slice(1));
for (const name of CHOICES) state[name] = linked.get(name) ?? "";
if (STANDINGS.length) show();
else byId("missing").textContent = "There are no results yet: ./race publish FOLDER…";
