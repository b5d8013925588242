// Values under the pointer: for each line the measured point nearest to it, left and right.
"use strict";
for (const chart of document.querySelectorAll("[data-chart]")) {
  const plot = chart.querySelector(".plot"), svg = chart.querySelector("svg");
  const rule = chart.querySelector(".rule"), tip = chart.querySelector(".tip");
  let lines = null, units = null;
  const nearest = (points, x) => points.reduce((best, point) =>
    Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best);
  const row = (line, point, x) => {
    const reading = document.createElement("div"), name = document.createElement("i");
    reading.dataset.look = line.look;
    name.textContent = line.name;
    reading.append(name, point[2] + units[1] + (point[1] === x ? "" : ` at ${point[1]}${units[0]}`));
    return reading;
  };
  const show = (event) => {
    if (!lines) {
      ({ lines, units } = JSON.parse(chart.querySelector("script").textContent));
      lines = lines.filter((line) => line.points).map((line) => (
        { ...line, points: line.points.split(";").map((point) => point.split("|")) }));
    }
    if (!lines.length) return;
    const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
    const found = lines.map((line) => nearest(line.points, (event.clientX - box.left) / scale));
    const far = (point) => Math.abs(point[0] * scale - (event.clientX - box.left));
    const at = found.reduce((best, point) => (far(point) < far(best) ? point : best));
    const head = document.createElement("b");
    head.textContent = at[1] + units[0];
    tip.replaceChildren(head, ...lines.map((line, index) => row(line, found[index], at[1])));
    rule.hidden = tip.hidden = false;
    rule.style.left = `${at[0] * scale}px`;
    const left = at[0] * scale + 12;
    tip.style.left = `${left + tip.offsetWidth > box.width ? Math.max(0, left - 24 - tip.offsetWidth) : left}px`;
  };
  const hide = () => { rule.hidden = tip.hidden = true; };
  plot.addEventListener("pointermove", show);
  plot.addEventListener("pointerdown", show);
  plot.addEventListener("pointerleave", hide);
}
