// Marks, axes and tips, which plots in SVG share.

const SHAPES = {
  // around (0, 0)
  o: "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0Z",
  s: "M-3.6,-3.6h7.2v7.2h-7.2Z",
  "^": "M0,-4.6L4.4,3.4H-4.4Z",
  v: "M0,4.6L4.4,-3.4H-4.4Z",
  D: "M0,-4.8L4.8,0L0,4.8L-4.8,0Z",
  "<": "M-4.6,0L3.4,-4.4V4.4Z",
  ">": "M4.6,0L-3.4,-4.4V4.4Z",
  P: "M-1.5,-4.4h3v2.9h2.9v3h-2.9v2.9h-3v-2.9h-2.9v-3h2.9Z",
  X: "M-4.2,-2.4L-2.4,-4.2L0,-1.8L2.4,-4.2L4.2,-2.4L1.8,0L4.2,2.4L2.4,4.2L0,1.8L-2.4,4.2L-4.2,2.4L-1.8,0Z",
  p: "M0,-4.6L4.4,-1.4L2.7,3.8H-2.7L-4.4,-1.4Z",
  h: "M0,-4.6L4,-2.3V2.3L0,4.6L-4,2.3V-2.3Z",
};
const colours = new Map(); // of the lines shown, by line; of others their own
const OF_THEME = {"#000000": "var(--ink)", "#882255": "var(--wine)"}; // too dark for dark paper
const colourOf = (line) => OF_THEME[colours.get(line) ?? line.colour] ?? colours.get(line) ?? line.colour;

/** Give the lines shown different colours, as far as these go: a line keeps its own unless one before it has that. */
function tellApart(lines) {
  const free = unique(data.lines.filter((line) => line.group !== "baseline").map((line) => line.colour));
  colours.clear();
  for (const line of lines.filter((one) => one.group !== "baseline").slice(0, free.length)) {
    const colour = free.includes(line.colour) ? line.colour : free[0];
    free.splice(free.indexOf(colour), 1);
    colours.set(line, colour);
  }
}

const sample = (line) =>
  s(
    "svg",
    {width: 26, height: 12, viewBox: "0 0 26 12", "aria-hidden": "true"},
    s("path", {d: "M1,6H25", stroke: colourOf(line), "stroke-width": 1.6, "stroke-dasharray": line.dash || null}),
    mark(line, 13, 6, {}),
  );

function mark(line, x, y, attributes) {
  return s("path", {
    d: SHAPES[line.marker] ?? SHAPES.o,
    transform: `translate(${x.toFixed(1)},${y.toFixed(1)})`,
    class: "mark",
    fill: line.is_variant ? "var(--paper)" : colourOf(line),
    stroke: line.is_variant ? colourOf(line) : "var(--paper)",
    "stroke-width": line.is_variant ? 1.4 : 0.7,
    ...attributes,
  });
}

/** A point that can be reached by keyboard and tells its numbers. */
function point(line, x, y, told, attributes) {
  return mark(line, x, y, {
    "data-point": true,
    "data-line": line.label,
    tabindex: 0,
    role: "img",
    "aria-label": told.join(", "),
    ...attributes,
    ...tipping(told),
  });
}

const tipping = (told) => ({
  onpointerenter: (event) => tip(event.currentTarget, told),
  onpointerleave: () => tip(null),
  onfocus: (event) => tip(event.currentTarget, told),
  onblur: () => tip(null),
});

function tip(element, told) {
  const box = $("#tip");
  box.hidden = element === null;
  if (element === null) return;
  box.replaceChildren(h("strong", {}, told[0]), ...told.slice(1).map((text) => h("div", {}, text)));
  const at = element.getBoundingClientRect();
  const width = box.offsetWidth;
  box.style.left =
    Math.max(4, Math.min(at.left + at.width / 2 - width / 2, document.documentElement.clientWidth - width - 4)) +
    scrollX +
    "px";
  box.style.top = (at.top > box.offsetHeight + 12 ? at.top - box.offsetHeight - 8 : at.bottom + 8) + scrollY + "px";
}

/** Lay out axes; `x` and `y` are {ticks: [[value, text], ...], place(value), label}. */
function axes(x, y, title, ...marks) {
  const [w, hgt, left, bottom, top, right] = FRAME;
  return s(
    "svg",
    {viewBox: `0 0 ${w} ${hgt}`, role: "group", "aria-label": title, class: "chart"},
    y.ticks.map(([value, text]) => [
      s("path", {class: "gridline", d: `M${left},${y.place(value)}H${w - right}`}),
      s("text", {x: left - 7, y: y.place(value) + 4, "text-anchor": "end"}, text),
    ]),
    x.ticks.map(([value, text]) => s("text", {x: x.place(value), y: hgt - bottom + 18, "text-anchor": "middle"}, text)),
    s("path", {class: "axis", d: `M${left},${hgt - bottom}H${w - right}`}),
    s("text", {x: left, y: 14, class: "label"}, y.label),
    s("text", {x: (left + w - right) / 2, y: hgt - 6, "text-anchor": "middle", class: "label"}, x.label),
    marks,
  );
}

let FRAME = [720, 430, 52, 44, 28, 16]; // width, height, left, bottom, top, right

/** Fit the frame to the room there is, so that texts keep their size. */
function fitFrame() {
  const room = $("#view").clientWidth - 2 * parseFloat(getComputedStyle($("#view")).paddingLeft);
  const width = Math.max(280, matchMedia("(max-width: 900px)").matches ? room : room - 300);
  FRAME = [width, Math.min(480, Math.max(290, 0.55 * width)), 52, 44, 28, 16];
}

function upward(values, label) {
  const [, height, , bottom, top] = FRAME;
  let [low, high] = [Math.min(...values), Math.max(...values)];
  const pad = (high - low || Math.abs(high) || 1) * 0.05;
  [low, high] = [low - pad, high + pad];
  const step = niceStep((high - low) / 6);
  const ticks = [];
  for (let tick = Math.ceil(low / step); tick * step <= high; tick++)
    ticks.push([tick * step, (tick * step).toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)))]);
  return {label, ticks, place: (value) => top + ((high - value) / (high - low)) * (height - top - bottom)};
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= rough - 1e-12);
}

function along(values, ticks, label) {
  const [width, , left, , , right] = FRAME;
  const [low, high] = [Math.log(Math.min(...values)), Math.log(Math.max(...values))];
  const pad = (high - low || 1) * 0.04;
  return {
    label,
    ticks,
    place: (value) => left + ((Math.log(value) - low + pad) / (high - low + 2 * pad)) * (width - left - right),
  };
}

const toldOf = (cell, ...more) => [
  cell.line.label,
  `${cell.metric.name} ${shown(cell.value)} at ${cell.bits} bits`,
  range(cell),
  cell.nSeeds > 1 ? `${spreadText(cell)} over ${cell.nSeeds} seeds` : "one seed",
  ...cell.papers.map((paper) => `paper ${paper.value} ${MARKS[paper.verdict]}`),
  ...more,
];
const pointAt = (cell, x, y, ...more) =>
  point(cell.line, x, y, toldOf(cell, ...more), {"data-bits": cell.bits});
const polyline = (points) => "M" + points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join("L");
