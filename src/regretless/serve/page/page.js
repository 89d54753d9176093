// The page: reads /models and each model's page-data once, then follows /live.

import { Chart, colour, colourOf } from "./charts.js";
import { json, events, KeyNeeded, setKey } from "./source.js";
import { element } from "./format.js";
import { Model } from "./model.js";
import { lastTable, modelsTable } from "./tables.js";

const models = new Map(); // name -> Model
let traffic = { seconds: [] };
let chosen = null;
let waiting = false; // whether a redraw is due

const place = (id) => document.getElementById(id);

// ------------------------------------------------------------------ charts

function lines(names, of = (model, name) => [model.labels, model.series(name)]) {
  const found = [];
  for (const model of models.values()) {
    if (!model.shown) continue;
    for (const [name, label, style] of names) {
      const [x, y] = of(model, name);
      if (!y.some((value) => value != null)) continue;
      found.push({ label: `${model.name}${label}`, colour: colourOf(model.colour), style, x, y });
    }
  }
  return found;
}

const stretch = (model, name) => model.stretches(name);

function reliability() {
  const found = [{ label: "perfect", colour: colour("soft"), style: "dotted", x: [0, 1], y: [0, 1] }];
  for (const model of models.values()) {
    if (!model.shown || !model.reliability.length) continue;
    const bins = [...model.reliability].sort((a, b) => a[1] - b[1]);
    const x = bins.map((bin) => bin[1]), y = bins.map((bin) => bin[2]);
    found.push({ label: model.name, colour: colourOf(model.colour), style: "solid", points: true, x, y });
  }
  return found;
}

// Two standard errors around each point of the reliability diagram.
function uncertainty(plot) {
  const { ctx } = plot;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  for (const model of models.values()) {
    if (!model.shown) continue;
    ctx.strokeStyle = colourOf(model.colour);
    for (const [n, confidence, accuracy] of model.reliability) {
      const error = 2 * Math.sqrt(Math.max(accuracy * (1 - accuracy), 0.25 / n) / n);
      const x = plot.valToPos(confidence, "x", true);
      ctx.beginPath();
      ctx.moveTo(x, plot.valToPos(Math.min(1, accuracy + error), "y", true));
      ctx.lineTo(x, plot.valToPos(Math.max(0, accuracy - error), "y", true));
      ctx.stroke();
    }
  }
  ctx.restore();
}

function shares() {
  const model = models.get(chosen);
  if (!model?.history.shares) return [];
  return Object.keys(model.history.shares).map((name, i) => {
    const [x, y] = model.shares(name);
    return { label: name, colour: colourOf(i), style: "solid", x, y };
  });
}

const second = (label, i, style, column, factor = 1) => ({
  label, colour: colourOf(i), style,
  x: traffic.seconds.map((each) => each[0]), y: traffic.seconds.map((each) => factor * each[column]),
});

const grid = place("charts");
const charts = [
  new Chart(grid, "Log loss so far", "By labels learned. Dashed: the baseline.",
    () => lines([["log_loss", "", "solid"], ["baseline_log_loss", ", baseline", "dashed"]])),
  new Chart(grid, "Log loss lately", "In stretches of labels: where it rises, the world has changed.",
    () => lines([["log_loss", "", "solid"], ["baseline_log_loss", ", baseline", "dashed"]], stretch)),
  new Chart(grid, "Error", "Share of labels that were not the likeliest class. Solid: in stretches; dotted: so far.",
    () => [...lines([["error", ", so far", "dotted"]]), ...lines([["error", "", "solid"]], stretch)], { from: 0 }),
  new Chart(grid, "Regret of the served forecasts, at most",
    "In total, against the best fixed weights in hindsight. Dashed: the certificate of the learner itself; dotted: its bound.",
    () => lines([["live_regret", "", "solid"], ["certificate", ", certificate", "dashed"], ["bound", ", bound", "dotted"]]),
    { from: 0 }),
  new Chart(grid, "Reliability", "How often the likeliest class was right, by its probability; bars are two standard errors.",
    reliability, { range: [0, 1], xrange: [0, 1], hooks: { draw: [uncertainty] } }),
  new Chart(grid, "Class shares", "Shares of the classes among the labels of the model chosen below, in stretches.", shares,
    { range: [0, 1] }),
  new Chart(grid, "Throughput", "Forecasts and labels per second, of all models.",
    () => traffic.seconds.length ? [second("operations", 0, "solid", 1)] : [], { time: true, from: 0 }),
  new Chart(grid, "Latency", "Milliseconds per request.",
    () => traffic.seconds.length ? [second("mean", 0, "solid", 2, 1000), second("largest", 1, "dotted", 3, 1000)] : [],
    { time: true, from: 0 }),
];

// ------------------------------------------------------------------ drawing

function draw() {
  waiting = false;
  document.querySelector("main").hidden = false;
  modelsTable(place("models"), [...models.values()], traffic, soon);
  const select = place("chosen");
  if (select.options.length !== models.size) {
    select.replaceChildren(...[...models.keys()].map((name) => element("option", { value: name, textContent: name })));
    chosen = chosen ?? select.value;
    select.value = chosen;
  }
  const model = models.get(chosen);
  if (model) lastTable(place("last"), model);
  for (const chart of charts) chart.draw();
}

function soon() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(draw);
}

function tell(text, state) {
  const status = place("status");
  status.textContent = text;
  status.className = state;
}

// ------------------------------------------------------------------ data

async function read(name) {
  const { traffic: seen, ...data } = await json(`/models/${encodeURIComponent(name)}/page-data`);
  const known = models.get(name);
  if (known) known.replace(data);
  else models.set(name, new Model(data, models.size));
  traffic = seen;
}

const reading = new Set();

function readAgain(name) {
  if (reading.has(name)) return;
  reading.add(name);
  read(name).then(soon, () => {}).finally(() => reading.delete(name));
}

function update({ models: changed, traffic: seen }) {
  for (const [name, changes] of Object.entries(changed)) {
    const model = models.get(name);
    if (!model || model.update(changes)) readAgain(name);
  }
  const last = traffic.seconds.at(-1)?.[0] ?? 0;
  const seconds = [...traffic.seconds, ...seen.seconds.filter((each) => each[0] > last)].slice(-300);
  traffic = { ...seen, seconds };
  soon();
}

async function follow() {
  for (;;) {
    try {
      for (const { name } of await json("/models")) await read(name);
      soon();
      await events("/live", update, () => tell("live", "live"));
      tell("the service ended the stream; trying again", "lost");
    } catch (error) {
      if (error instanceof KeyNeeded) {
        tell("a key is needed", "lost");
        place("key-form").hidden = false;
        return;
      }
      tell("no connection; trying again", "lost");
    }
    await new Promise((done) => setTimeout(done, 2000));
  }
}

place("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setKey(place("key").value);
  place("key-form").hidden = true;
  follow();
});
place("chosen").addEventListener("change", (event) => {
  chosen = event.target.value;
  soon();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", soon);
follow();
