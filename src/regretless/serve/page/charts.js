// Charts by uPlot: lines over a shared axis, redrawn where data, size or colours change.

import { element, number } from "./format.js";

const HEIGHT = 210;

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function colourOf(i) {
  return colour(`c${i % 8}`);
}

const DASHES = { solid: [], dashed: [7, 5], dotted: [2, 4] };

// A chart is a title, a legend and a plot. `lines()` returns what to draw: {label, colour, style, x, y}.
export class Chart {
  constructor(place, title, note, lines, options = {}) {
    this.lines = lines;
    this.options = options;
    this.legend = element("p", { className: "legend" });
    this.canvas = element("div", { className: "plot" });
    this.box = element(
      "div", { className: "chart" }, element("h2", { textContent: title }), this.canvas, this.legend,
      note ? element("p", { className: "note", textContent: note }) : null,
    );
    place.append(this.box);
    this.kind = null;
    new ResizeObserver(() => this.plot?.setSize({ width: this.width, height: HEIGHT })).observe(this.canvas);
  }

  get width() {
    return Math.max(200, Math.floor(this.canvas.clientWidth));
  }

  draw() {
    const lines = this.lines();
    this.box.hidden = lines.length === 0;
    if (this.box.hidden) return;
    const kind = JSON.stringify([lines.map((line) => [line.label, line.colour, line.style]), colour("ink")]);
    const data = lines.length > 1 ? uPlot.join(lines.map((line) => [line.x, line.y])) : [lines[0].x, lines[0].y];
    if (kind !== this.kind) {
      this.kind = kind;
      this.plot?.destroy();
      this.plot = new uPlot(this.#configuration(lines), data, this.canvas);
      this.values = lines.map(() => element("b"));
      this.legend.replaceChildren(...lines.map((line, i) => entry(line, this.values[i])));
    } else {
      this.plot.setData(data);
    }
  }

  // The values under the cursor, in the legend: of the nearest point of each line.
  #tell(plot) {
    const { idx } = plot.cursor;
    this.values.forEach((place, i) => {
      const values = plot.data[i + 1];
      let at = idx;
      while (at != null && at >= 0 && values[at] == null) at -= 1;
      place.textContent = at == null || at < 0 ? "" : ` ${number(values[at])}`;
    });
  }

  #configuration(lines) {
    const axis = {
      stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 },
      font: "12px system-ui, sans-serif",
    };
    const { time = false, range, from, hooks, xrange, yformat } = this.options;
    return {
      width: this.width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false },
      scales: { x: { time, range: xrange }, y: { range: range ?? ((_, low, high) => limits(low, high, from)) } },
      axes: [
        { ...axis, size: 32, space: 70, values: (_, ticks) => ticks.map(time ? minute : short) },
        { ...axis, size: 52, values: (_, ticks) => ticks.map(yformat ?? short) },
      ],
      series: [
        {},
        ...lines.map((line) => ({
          label: line.label, stroke: line.colour, width: line.style === "solid" ? 2 : 1.5, dash: DASHES[line.style],
          spanGaps: true, points: { show: line.points ?? false, size: 6 },
        })),
      ],
      hooks: { ...hooks, setCursor: [(plot) => this.#tell(plot)] },
      padding: [8, 22, 0, 0],
    };
  }
}

function limits(low, high, from) {
  if (low == null) return [0, 1];
  const least = from === undefined ? low : Math.min(from, low);
  const room = (high - least || Math.abs(high) || 1) * 0.06;
  return [least === from ? least : least - room, high + room];
}

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(4))}M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(4))}k`;
  return String(Number(value.toPrecision(6)));
}

function minute(seconds) {
  return new Date(1000 * seconds).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
}

function entry(line, value) {
  const swatch = element("i", { className: `swatch ${line.style}` });
  swatch.style.borderTopColor = line.colour;
  return element("span", {}, swatch, line.label, value);
}
