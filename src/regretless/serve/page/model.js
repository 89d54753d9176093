// What the page knows about a model: its history from /page-data, and the newest point from /live.

const MOST_LAST = 50;
const STRETCHES = 50; // at most, in the charts that show what changes
const LEAST_LABELS = 20; // of a stretch

export class Model {
  constructor(data, colour) {
    this.colour = colour;
    this.shown = colour < 6;
    this.replace(data);
  }

  replace(data) {
    Object.assign(this, data);
    this.read = Date.now();
  }

  // Take an event of /live; true if the history has grown since it was read.
  update(changes) {
    const { last, ...rest } = changes;
    Object.assign(this, rest);
    const byId = new Map(this.last.map((each) => [each.id, each]));
    for (const each of last) byId.set(each.id, each);
    this.last = [...byId.values()].sort((a, b) => a.seq - b.seq).slice(-MOST_LAST);
    const labels = this.history.labels;
    const step = labels.length > 1 ? labels.at(-1) - labels.at(-2) : 10;
    return this.point.labels >= (labels.at(-1) ?? 0) + step && Date.now() > this.read + 3000;
  }

  // The labels so far at each point, with the newest one.
  get labels() {
    const labels = this.history.labels;
    return this.#isNewer() ? [...labels, this.point.labels] : labels;
  }

  #isNewer() {
    return this.point && this.point.labels > (this.history.labels.at(-1) ?? 0);
  }

  series(name) {
    const values = this.history[name];
    return this.#isNewer() ? [...values, this.point[name]] : values;
  }

  // Means over stretches of labels, from means so far: [labels at the end of each stretch, means].
  stretches(name) {
    const labels = this.history.labels;
    return this.#grouped(this.history[name].map((mean, i) => mean * labels[i]));
  }

  // The share of a class in stretches of labels.
  shares(name) {
    const labels = this.history.labels;
    let total = 0;
    return this.#grouped(this.history.shares[name].map((share, i) => (total += share * (labels[i] - (labels[i - 1] ?? 0)))));
  }

  // From totals so far: fewer stretches than points, so that there is less noise.
  #grouped(totals) {
    const labels = this.history.labels;
    const least = Math.max(LEAST_LABELS, (labels.at(-1) ?? 0) / STRETCHES);
    const ends = [], means = [];
    let before = 0, total = 0;
    labels.forEach((end, i) => {
      if (end - before < least) return;
      ends.push(end);
      means.push((totals[i] - total) / (end - before));
      before = end;
      total = totals[i];
    });
    return [ends, means];
  }

  // The mean log loss of the last stretches, and whether it differs from the mean so far by more than chance: 1, -1 or 0.
  get lately() {
    const means = this.stretches("log_loss")[1];
    if (means.length < 6) return null;
    const some = means.slice(-Math.max(3, Math.round(means.length / 10)));
    const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
    const all = mean(means), now = mean(some);
    const spread = Math.sqrt(mean(means.map((value) => (value - all) ** 2)));
    return { loss: now, change: Math.abs(now - all) > (2 * spread) / Math.sqrt(some.length) ? Math.sign(now - all) : 0 };
  }
}
