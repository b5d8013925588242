// Draws each chart of the report, and makes the table behind it when it is opened.
"use strict";
for (const figure of document.querySelectorAll("[data-chart]")) {
  const chart = JSON.parse(figure.querySelector("script").textContent);
  drawChart(figure.querySelector(".plot"), chart);
  tableBehind(figure.querySelector("details"), chart);
}
