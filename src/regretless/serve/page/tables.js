// The table of models, side by side, and the table of the last forecasts.

import { colourOf } from "./charts.js";
import { clock, count, duration, element, number, percent, rounded } from "./format.js";

const ROWS = [
  ["Labels learned", (m) => count(m.summary.labels)],
  ["Forecasts without a label", (m) => count(m.summary.forecasts - m.summary.labels - m.summary.refused)],
  ["Labels refused by the learner", (m) => m.summary.refused ? count(m.summary.refused) : null],
  ["Log loss", (m) => number(m.summary.log_loss)],
  ["Log loss of the baseline", (m) => number(m.summary.baseline_log_loss)],
  ["Log loss lately", lately],
  ["Error", (m) => percent(m.summary.error)],
  ["Brier score", (m) => number(m.summary.brier)],
  ["Regret, at most", (m) => number(m.regret.live_regret_at_most)],
  ["– certificate", (m) => number(m.regret.certificate)],
  ["– cost of late labels", (m) => number(m.regret.delay_cost)],
  ["Bound", (m) => number(m.regret.bound)],
  ["Labels come after", (m) => `${duration(m.summary.delay_seconds)}, ${rounded(m.summary.delay_labels)} other labels`],
];

const CHANGES = { 1: [" ▲ more than before", "bad"], 0: [" (as before)", ""], "-1": [" ▼ less than before", "good"] };

// Lately against so far: in words too, because not everyone sees the colour.
function lately(model) {
  const found = model.lately;
  if (found == null) return "–";
  const [textContent, className] = CHANGES[found.change];
  return element("span", {}, number(found.loss), element("span", { className, textContent }));
}

function head(model, changed) {
  const box = element("input", { type: "checkbox", checked: model.shown, ariaLabel: `show ${model.name}` });
  box.addEventListener("change", () => {
    model.shown = box.checked;
    changed();
  });
  const swatch = element("i", { className: "swatch" });
  swatch.style.borderTopColor = colourOf(model.colour);
  const why = model.regret.why_not ? `no regret: ${model.regret.why_not}` : `regret in ${model.regret.against}`;
  return element(
    "th", { scope: "col", title: why }, element("label", {}, box, " ", swatch, model.name),
    element("div", { className: "recipe", textContent: model.recipe }),
  );
}

export function modelsTable(table, models, traffic, changed) {
  const names = JSON.stringify(models.map((model) => [model.name, model.recipe, model.shown, colourOf(model.colour)]));
  if (table.dataset.names !== names) { // a checkbox that has the focus is not made again
    table.dataset.names = names;
    const row = element("tr", {}, element("td"), ...models.map((model) => head(model, changed)));
    table.replaceChildren(element("thead", {}, row), element("tbody"));
  }
  const rows = [];
  for (const [name, value] of ROWS) {
    const values = models.map(value);
    if (values.every((each) => each == null)) continue;
    const cells = values.map((each) => element("td", {}, each ?? "–"));
    rows.push(element("tr", {}, element("th", { scope: "row", textContent: name }), ...cells));
  }
  const requests = `${count(traffic.requests)}, half within ${duration(traffic.p50_seconds)}, 99 % within ${duration(traffic.p99_seconds)}`;
  rows.push(element("tr", {}, element("th", { scope: "row", textContent: "Requests since the start" }),
    element("td", { colSpan: models.length, textContent: requests })));
  table.tBodies[0].replaceChildren(...rows);
}

export function lastTable(table, model) {
  const heads = [["Time", "when"], ["Id", "id"], ["Forecast", ""], ["Label", ""]];
  const cells = heads.map(([textContent, className]) => element("th", { scope: "col", textContent, className }));
  const rows = model.last.toReversed().map((each) => {
    const [name, p] = Object.entries(each.probabilities).reduce((a, b) => (b[1] > a[1] ? b : a));
    const right = typeof each.y === "number" ? Number(name) === each.y : name === String(each.y); // "1.0" is 1
    const label = each.y === null
      ? element("td", { className: "note", textContent: "waits" })
      : element("td", { className: right ? "good" : "bad", textContent: `${right ? "✓" : "✗"} ${each.y}` });
    const forecast = element("td", {}, element("meter", { value: p, min: 0, max: 1 }), `${name}, ${percent(p)}`);
    return element(
      "tr", {}, element("td", { className: "when", textContent: clock(each.at) }),
      element("td", { className: "id", textContent: each.id, title: each.id }), forecast, label,
    );
  });
  table.replaceChildren(element("thead", {}, element("tr", {}, ...cells)), element("tbody", {}, ...rows));
}
