// Ranks the engines of one workload and machine by one figure. The results are in the page.
"use strict";
const RESULTS = JSON.parse(document.getElementById("results").textContent);
// The event of each workload's main topic, such as a pageview.
const EVENTS = JSON.parse(document.getElementById("events").textContent);
const METRICS = {
  capacity: { title: "Capacity", unit: "events/s", more: true, of: (result) => result.capacity,
    means: "Throughput at saturation: the engine always has 5 to 30 s of work waiting." },
  lag_p50_ms: { title: "Freshness, p50", unit: "ms", rate: true,
    means: "Lag: the age of the oldest event that is due and not yet counted. Half of the time it is at most this." },
  lag_p99_ms: { title: "Freshness, p99", unit: "ms", rate: true,
    means: "Lag: the age of the oldest event that is due and not yet counted. 99 % of the time it is at most this." },
  view_lag_p99_ms: { title: "View lag, p99", unit: "ms", rate: true,
    means: "The same for the oldest of the followed views, such as a join: 99 % of the time at most this." },
  cpu_s_per_million: { title: "CPU per million", unit: "CPU-s", rate: true,
    means: "CPU-seconds of the engine alone, without broker and reader, per million events counted, its base load included." },
  memory_max_gib: { title: "Memory", unit: "GiB", rate: true,
    means: "Memory of the engine with shared pages counted once, and its files in memory: the larger of two readings." },
  base_pct: { title: "Base cost", unit: "% of a core", of: (result) => result.cpu_line && result.cpu_line.base_pct,
    means: "CPU at rate 0, where the line through the engine’s runs begins." },
  read_time_p99_ms: { title: "Read time, p99", unit: "ms", rate: true,
    means: "Time from when a read of a view is due to its answer, for the slowest query: 99 % take at most this." },
};
const ANSWERS = [["Freshest", "lag_p99_ms", () => `Lag of the count of ${EVENTS[state.workload] || "event"}s, p99`],
  ["Goes furthest", "capacity", () => "Throughput at saturation"],
  ["Cheapest", "cpu_s_per_million", () => "CPU time of the engine alone, without broker and reader, per million events"]];
const state = { workload: "", machine: "", metric: "", rate: 0, hidden: new Set(), sort: "value", down: false };
const byId = (id) => document.getElementById(id);
const unique = (values) => [...new Set(values)];
const machineOf = (result) => result.path.split("/")[1];
const describe = ({ machine, runtime }) => [
  `${machine.cpu_model}${machine.cpu_numbers ? ` (${machine.cpu_numbers})` : ""}`, `${machine.cores} cores`,
  ...(machine.cpu_quotas || []).map(({ cores, services }) => `CPU quota ${cores} cores${services.length ? ` for ${list(services)}` : ""}`),
  `${number(machine.memory_gib, 0)} GiB`, runtime].join(", ");
const nameOf = (result) => result.title + (result.variant ? ` (${result.variant})` : "");
const list = (names) => names.join(", ").replace(/, ([^,]*)$/, " and $1");
// An engine has the same colour with all workloads and machines.
const NAMES = unique(RESULTS.map(nameOf)).sort();

const candidates = () => RESULTS.filter((result) => result.workload === state.workload && machineOf(result) === state.machine);
const chosen = () => candidates().filter((result) => !state.hidden.has(result.path));
const rateOf = (result, rate) => (result.rates || []).find((each) => each.per_s === rate);
const valueOf = (result, key, rate = state.rate) => {
  const metric = METRICS[key];
  if (!metric.rate) return metric.of(result) || null;
  return (rateOf(result, rate) || {})[key] || null;
};
const fellBehind = (result, key) => Boolean(METRICS[key].rate && ((rateOf(result, state.rate) || {}).verdicts || {})["fell behind"]);
const rates = () => unique(candidates().flatMap((result) => (result.rates || []).map((each) => each.per_s))).sort((a, b) => a - b);
const isMeasured = (key) => candidates().some((result) =>
  (METRICS[key].rate ? rates().some((rate) => valueOf(result, key, rate)) : valueOf(result, key)));
const overlap = (one, other) => one.low !== undefined && other.low !== undefined && one.low <= other.high && other.low <= one.high;
// More digits would be noise.
const rounded = (value) => number(Number(value.toPrecision(3)));
const interval = (of) => (of.low === undefined ? "single run, no interval" : `${rounded(of.low)} to ${rounded(of.high)}`);
const amount = (of) => (of.is_lower_bound ? "at least " : "") + rounded(of.mean);

// Best first; then those that fell behind; then those without a figure.
const ranked = (key) => {
  const sign = METRICS[key].more ? -1 : 1;
  const place = (row) => (row.behind ? 1 : row.of ? 0 : 2);
  const rows = chosen().map((result) => ({ result, of: valueOf(result, key), behind: fellBehind(result, key) }));
  rows.sort((a, b) => place(a) - place(b) || (a.of && b.of ? sign * (a.of.mean - b.of.mean) : nameOf(a.result).localeCompare(nameOf(b.result))));
  const best = rows.find((row) => row.of && !row.behind);
  return rows.map((row, index) => ({ ...row, rank: index, best: best && best.of,
    factor: row.of && best && !row.behind ? row.of.mean / best.of.mean : null }));
};
// Why it is not certain that a figure is worse than a better one; empty if it is.
const doubtOf = (of, better) => {
  if (of.is_lower_bound) return "may be more";
  if (of.low === undefined || better.low === undefined) return "single run";
  return overlap(of, better) ? "no clear difference" : "";
};
// The ratio of two means, and the range that both intervals allow.
const times = (of, to) => {
  const mean = ratio(of.mean / to.mean), digits = { minimumSignificantDigits: 2, maximumSignificantDigits: 2 };
  const few = (value) => value.toLocaleString("en-US", digits);
  if (of.low === undefined || to.low === undefined) return { mean };
  if (of.is_lower_bound || to.low <= 0) return { mean, least: few(of.low / to.high) };
  if (to.is_lower_bound) return { mean, most: few(of.high / to.low) };
  return { mean, range: `${few(of.low / to.high)} to ${few(of.high / to.low)}` };
};
const factorText = (row) => {
  if (row.behind) return "fell behind";
  if (!row.of) return "not measured";
  if (row.of === row.best) return "best";
  const doubt = doubtOf(row.of, row.best), { mean, range, least, most } = times(row.of, row.best);
  if (doubt) return `${mean} ×, ${doubt}`;
  return range ? `${mean} × (${range})` : least ? `at least ${least} ×` : `at most ${most} ×`;
};

const runsOf = (of) => (of.low === undefined ? "one run" : `${rounded(of.low)} to ${rounded(of.high)}, ${of.n} runs`);
// How much worse than the best a figure is, and how sure that and the order before it are.
const worseText = (row, before, more) => {
  const doubt = doubtOf(row.of, row.best);
  if (doubt && doubt !== "single run") return doubt;
  const [of, to] = more ? [row.best, row.of] : [row.of, row.best];
  const { mean, range, least } = times(of, to), has = more ? "the first has " : "";
  const factor = least ? `${has}at least ${least} × as much` : `${has}${mean} × as much${range ? `, ${range} within both intervals` : ""}`;
  const tied = before.of !== row.best && overlap(row.of, before.of);
  return factor + (doubt && ", but one run is no proof") + (tied ? `, no clear difference from ${nameOf(before.result)}` : "");
};
const answer = ([word, key, what]) => {
  if (!isMeasured(key)) return null;
  const rows = ranked(key).filter((row) => row.of && !row.behind);
  if (!rows.length) return null;
  const metric = METRICS[key], at = metric.rate ? ` at ${number(state.rate)} events/s` : "";
  const alike = rows.filter((row, index) => !index || doubtOf(row.of, row.best)).map((row) => nameOf(row.result));
  const figures = rows.map((row, index) => {
    const worse = index ? `; ${worseText(row, rows[index - 1], metric.more)}` : "";
    return `${nameOf(row.result)} ${amount(row.of)} ${metric.unit} (${runsOf(row.of)}${worse})`;
  });
  const best = alike.length > 1 ? `not decided between ${list(alike)}` : alike[0];
  return element("li", {}, element("b", {}, `${word}${at}: ${best}.`),
    ` ${what()}: ${figures.join(", ")}.`);
};
const BRACKETS = "In brackets: the 95 % interval of the mean, and the number of runs. “Not decided”: the intervals overlap (“no clear difference”), an engine has one run only, or may get further than measured (“at least”).";
const note = (text) => element("li", { class: "muted" }, text);
// What a reader must know before comparing: the first caveat of each engine, such as views that are
// computed only when they are read.
const caveats = () => {
  const names = {};
  const firsts = (result) => (result.caveats || []).filter((text, index) => !index || text.startsWith("Quick:"));
  chosen().forEach((result) => firsts(result).forEach((text) => { (names[text] = names[text] || []).push(nameOf(result)); }));
  return Object.entries(names).map(([text, of]) => note(`${list(of)}: ${text}`));
};
const unverified = () => {
  const names = chosen().filter((result) => !result.views.runs).map(nameOf);
  return names.length ? note(`The answers of ${list(names)} were not verified in these runs.`) : null;
};

const viewsText = ({ views }) => {
  if (!views.of_workload) return "";
  const there = views.of_workload - (views.absent || []).length;
  return there === views.of_workload ? `all ${there}` : `△ ${there} of ${views.of_workload}`;
};
const answersText = ({ views }) => {
  if (!views.runs) return "not checked";
  return views.wrong.length ? `✗ ${views.wrong.length} wrong` : `✓ ${views.right.length} verified`;
};
// Beyond what voids a run by default (docs/noise.md).
const FOREIGN_MAX_PCT = 5, STEAL_MAX_PCT = 1;
const disturbance = ({ noise }) => {
  const shares = [
    noise.foreign_cpu_max_pct > FOREIGN_MAX_PCT ? `other programs used up to ${number(noise.foreign_cpu_max_pct)} % of a core` : "",
    noise.steal_max_pct > STEAL_MAX_PCT ? `other machines took up to ${number(noise.steal_max_pct)} % of the CPU time` : "",
  ].filter(Boolean);
  return shares.length ? `△ disturbed: ${shares.join(", ")}` : "";
};
const nearCapacity = ({ capacity }) =>
  (METRICS[state.metric].rate && capacity && (capacity.low ?? capacity.mean) <= state.rate ? "△ may not keep up at this rate" : "");
const COLUMNS = [
  { key: "engine", title: "Engine", of: (row) => nameOf(row.result) },
  { key: "value", title: "Figure", of: (row) => row.rank },
  { key: "factor", title: "Times the best", of: (row) => row.factor ?? Infinity },
  { key: "answers", title: "Answers", of: (row) => answersText(row.result) },
  { key: "views", title: "Views", of: (row) => (row.result.views.absent || []).length },
  { key: "guarantee", title: "Promised after a kill", of: (row) => row.result.guarantee || "~" },
  { key: "n", title: "Runs", of: (row) => -(row.of ? row.of.n : 0) },
];

const bar = (row, most) => {
  if (!row.of) return element("span", { class: "muted" }, row.behind ? "lag without limit" : "not measured");
  const share = (value) => `${(100 * value / most).toFixed(2)}%`;
  const marks = [element("span", { class: "fill", style: `width:${share(row.of.mean)}` })];
  if (row.of.low !== undefined) {
    marks.push(element("span", { class: "whisker", style: `left:${share(row.of.low)};width:${share(row.of.high - row.of.low)}` }));
  }
  return element("div", {}, element("div", { class: "bar", "aria-hidden": "true" }, ...marks),
    element("b", {}, amount(row.of)), ` ${METRICS[state.metric].unit} `, element("small", {}, interval(row.of)));
};

const facts = (result) => {
  const pairs = (of) => Object.entries(of).map(([name, value]) => `${name} ${value}`).join(", ") || "none";
  const noise = result.noise;
  const dates = unique([result.measured_from, result.measured_until]).join(" to ");
  const lines = [
    ["Measured", `${dates}, ${describe(result)}, kernel ${result.machine.kernel}`],
    ["Versions", pairs(result.versions)],
    ["Changed settings", pairs(result.settings)],
    ["Heap", result.heap_rule],
    ["Other programs", `at most ${number(noise.foreign_cpu_max_pct)} % of a core; stolen by the hypervisor at most ${number(noise.steal_max_pct)} % of all cores; core speed ${number(noise.core_min_mib_per_s)} to ${number(noise.core_max_mib_per_s)} MiB/s`],
    ["Views missing", (result.views.absent || []).join(", ")],
    ["Views wrong", (result.views.wrong || []).join(", ")],
    ["Before comparing", (result.caveats || []).join(" ")],
    ["Left out", (result.left_out || []).join("; ")],
    ["Raw data", `${result.raw.files} files in ${result.raw.folders.join(", ")}; SHA-256 ${result.raw.sha256}`],
  ].filter(([, text]) => text);
  return element("div", {},
    element("p", {}, "To repeat it:"), ...result.commands.map((command) => element("pre", {}, command)),
    element("dl", { class: "pairs" }, ...lines.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)])),
    element("p", {}, element("a", { href: `../results/${result.path.split("/").map(encodeURIComponent).join("/")}` }, `results/${result.path}`)),
    element("details", {}, element("summary", {}, "The whole record"),
      element("pre", {}, JSON.stringify({ ...result, path: undefined }, null, 1))));
};

const showTable = () => {
  const rows = ranked(state.metric), metric = METRICS[state.metric];
  const most = Math.max(...rows.filter((row) => row.of).map((row) => row.of.high ?? row.of.mean), 0) || 1;
  const column = COLUMNS.find((each) => each.key === state.sort);
  rows.sort((a, b) => {
    const [one, other] = [column.of(a), column.of(b)];
    const order = typeof one === "string" ? one.localeCompare(other) : (one === other ? 0 : one - other);
    return (state.down ? -order : order) || a.rank - b.rank;
  });
  byId("means").textContent = `${metric.title}${metric.rate ? ` at ${number(state.rate)} events/s` : ""}. ${metric.means} ${metric.more ? "More" : "Less"} is better. Bars: means with 95 % intervals.`;
  for (const head of document.querySelectorAll("#ranking thead th")) {
    const mine = head.dataset.key === state.sort;
    head.setAttribute("aria-sort", mine ? (state.down ? "descending" : "ascending") : "none");
  }
  const cell = (column, content, row) => element(column === "engine" ? "th" : "td",
    { class: `c-${column}${column === "answers" && (row.result.views.wrong || []).length ? " bad" : ""}`, role: column === "engine" ? "rowheader" : "cell", scope: column === "engine" ? "row" : null,
      "data-title": COLUMNS.find((each) => each.key === column).title }, content);
  byId("ranking").tBodies[0].replaceChildren(...rows.flatMap((row) => [
    element("tr", { role: "row", "data-engine": row.result.engine },
      cell("engine", element("span", {}, nameOf(row.result), " ", element("small", {}, `version ${row.result.version}, ${row.result.measured_until}`),
        ...[nearCapacity(row.result), disturbance(row.result)].filter(Boolean).map((text) => element("small", { class: "open" }, ` ${text}`))), row),
      cell("value", bar(row, most), row), cell("factor", factorText(row), row),
      cell("answers", answersText(row.result), row), cell("views", viewsText(row.result), row),
      cell("guarantee", row.result.guarantee || "not known", row), cell("n", row.of ? String(row.of.n) : "", row)),
    element("tr", { class: "record", role: "row" }, element("td", { colspan: COLUMNS.length, role: "cell" },
      element("details", {}, element("summary", {}, `Record of ${nameOf(row.result)}, and the command to repeat it`), facts(row.result)))),
  ]));
};

const line = (result, index, key, name, dash) => {
  const points = (result.rates || []).filter((each) => each[key]);
  const of = (end) => points.map((each) => each[key][end] ?? null);
  return { name, look: index, kind: "points", dash, x: points.map((each) => each.per_s), y: of("mean"), low: of("low"), high: of("high") };
};
// Of lines on a logarithmic axis, values above 0.
const positive = (line) => {
  const kept = line.y.map((y, at) => y > 0 && line.x[at] > 0);
  const only = (values) => values && values.filter((_, at) => kept[at]);
  return { ...line, x: only(line.x), y: only(line.y), low: only(line.low), high: only(line.high) };
};
const CHARTS = {
  lag: (results, look) => ({ title: "Lag against rate", x_title: "events/s", y_title: "lag, ms", log_x: true, log_y: true, x_decimals: 0, y_decimals: 0, x_unit: "/s", y_unit: " ms",
    lines: results.flatMap((result) => [
      positive(line(result, look(result), "lag_p99_ms", `${nameOf(result)} p99`, [])),
      positive({ ...line(result, look(result), "lag_p50_ms", `${nameOf(result)} p50`, [2, 4]), low: null, high: null })]) }),
  cpu: (results, look) => ({ title: "CPU against rate", x_title: "events/s", y_title: "% of a core", x_from_zero: true, x_decimals: 0, y_decimals: 1, x_unit: "/s", y_unit: " %",
    lines: results.map((result) => line(result, look(result), "cpu_mean_pct", nameOf(result))) }),
  distribution: (results, look) => ({ title: "How lag is distributed", x_title: "lag, ms", y_title: "% of the time at most", log_x: true, x_decimals: 0, y_decimals: 1, x_unit: " ms", y_unit: " %",
    lines: results.map((result) => {
      const points = ((rateOf(result, state.rate) || {}).lag_distribution || []).filter((each) => each.lag_ms > 0);
      const last = new Map(points.map((each) => [each.lag_ms, 100 * each.share]));
      return { name: nameOf(result), look: look(result), kind: "line", x: [...last.keys()], y: [...last.values()] };
    }) }),
};
const showCharts = () => {
  const look = (result) => NAMES.indexOf(nameOf(result));
  for (const [name, make] of Object.entries(CHARTS)) {
    const chart = make(chosen(), look), figure = byId(`chart-${name}`);
    figure.hidden = !chart.lines.some((each) => each.x.length);
    figure.querySelector("h3").textContent = chart.title + (name === "distribution" ? ` at ${number(state.rate)} events/s` : "");
    drawChart(figure.querySelector(".plot"), chart);
    const details = element("details", {}, element("summary", {}, "Table"));
    tableBehind(details, chart);
    figure.querySelector(".behind").replaceChildren(details);
  }
};

const fill = (select, values, text, value) => {
  select.replaceChildren(...values.map((each) => element("option", { value: each, selected: String(each) === String(value) }, text(each))));
};
const pick = (wanted, among, fallback) => (among.map(String).includes(String(wanted)) ? wanted : fallback);
// The highest rate at which the most engines kept up.
const defaultRate = () => {
  const kept = (rate) => candidates().filter((result) => rateOf(result, rate) && !rateOf(result, rate).verdicts["fell behind"]).length;
  return rates().reduce((best, rate) => (best === null || kept(rate) >= kept(best) ? rate : best), null);
};
const show = () => {
  const workloads = unique(RESULTS.map((result) => result.workload));
  state.workload = pick(state.workload, workloads, workloads[0]);
  const machines = unique(RESULTS.filter((result) => result.workload === state.workload).map(machineOf));
  state.machine = pick(state.machine, machines, machines[0]);
  state.rate = Number(pick(state.rate, rates(), defaultRate()));
  const metrics = Object.keys(METRICS).filter(isMeasured);
  state.metric = pick(state.metric, metrics, metrics.includes("lag_p99_ms") ? "lag_p99_ms" : metrics[0]);
  fill(byId("workload"), workloads, String, state.workload);
  fill(byId("machine"), machines, (name) => describe(RESULTS.find((result) => machineOf(result) === name)), state.machine);
  fill(byId("rate"), rates(), (rate) => `${number(rate)} events/s`, state.rate);
  fill(byId("metric"), metrics, (key) => METRICS[key].title, state.metric);
  byId("rate").disabled = !METRICS[state.metric].rate && !isMeasured("lag_p99_ms");
  byId("engines").replaceChildren(...candidates().map((result) => {
    const box = element("input", { type: "checkbox", checked: !state.hidden.has(result.path), value: result.path });
    box.addEventListener("change", () => { box.checked ? state.hidden.delete(result.path) : state.hidden.add(result.path); render(); });
    return element("label", {}, box, ` ${nameOf(result)}`);
  }));
  render();
};
const render = () => {
  byId("answers").replaceChildren(...[...ANSWERS.map(answer), note(BRACKETS), ...caveats(), unverified()].filter(Boolean));
  showTable();
  showCharts();
  const hidden = [...state.hidden].join(" ");
  const kept = { workload: state.workload, machine: state.machine, metric: state.metric, rate: state.rate, ...(hidden ? { hidden } : {}) };
  history.replaceState(null, "", `#${new URLSearchParams(kept)}`);
};

for (const name of ["workload", "machine", "metric", "rate"]) {
  byId(name).addEventListener("change", (event) => { state[name] = event.target.value; state.sort = "value"; state.down = false; show(); });
}
byId("ranking").tHead.rows[0].replaceChildren(...COLUMNS.map((column) => {
  const button = element("button", { type: "button" }, column.title);
  button.addEventListener("click", () => {
    state.down = state.sort === column.key && !state.down;
    state.sort = column.key;
    showTable();
  });
  return element("th", { scope: "col", role: "columnheader", "data-key": column.key }, button);
}));
const linked = new URLSearchParams(location.hash.slice(1));
for (const name of ["workload", "machine", "metric", "rate"]) state[name] = linked.get(name) ?? state[name];
(linked.get("hidden") || "").split(" ").filter(Boolean).forEach((path) => state.hidden.add(path));
if (RESULTS.length) show();
else byId("means").textContent = "There are no results yet: ./race publish FOLDER…";
