// Numbers and times as text, and elements whose text is never read as HTML.

const several = new Intl.NumberFormat("en");

export function count(n) {
  return n == null ? "–" : several.format(n);
}

export function rounded(n) {
  return count(n == null ? null : Math.round(n));
}

export function number(value) {
  if (value == null) return "–";
  const size = Math.abs(value);
  if (size >= 1e5) return value.toExponential(2);
  return value.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : 4);
}

export function percent(value) {
  return value == null ? "–" : `${(100 * value).toFixed(1)} %`;
}

export function duration(seconds) {
  if (seconds == null) return "–";
  if (seconds < 1) return `${Number((1000 * seconds).toPrecision(3))} ms`;
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  if (seconds < 7200) return `${(seconds / 60).toFixed(1)} min`;
  if (seconds < 172800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86400).toFixed(1)} days`;
}

export function clock(seconds) {
  return new Date(1000 * seconds).toLocaleTimeString();
}

// An element with properties and children; texts are inserted as texts.
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child != null));
  return made;
}
