// Draws each chart of the report, and makes the table behind it when it is opened.
import { drawChart, partOf, tableBehind } from "./charts.js";

for (const figure of document.querySelectorAll("[data-chart]")) {
  const chart = JSON.parse(partOf(figure, "script").textContent ?? "");
  drawChart(partOf(figure, ".plot"), chart);
  tableBehind(partOf(figure, "details"), chart);
}
