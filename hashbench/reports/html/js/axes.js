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
const looks = {colour: new Map(), marker: new Map()}; // of the lines shown, by line; of others their own
const OF_THEME = {"#000000": "var(--ink)", "#882255": "var(--wine)"}; // too dark for dark paper
const lookOf = (line, kind) => looks[kind].get(line) ?? line[kind];
const colourOf = (line) => OF_THEME[lookOf(line, "colour")] ?? lookOf(line, "colour");

/** Tell the lines shown apart, as far as colours and markers go: a line keeps its own unless one before it has that. */
function tellApart(lines) {
  const isFree = (line) => line.group !== "baseline";
  for (const [kind, given] of Object.entries(looks)) {
    const free = kind === "marker" ? Object.keys(SHAPES) : unique(data.lines.filter(isFree).map((line) => line.colour));
    given.clear();
    for (const line of lines.filter(isFree).slice(0, free.length)) {
      const look = free.includes(line[kind]) ? line[kind] : free[0];
      free.splice(free.indexOf(look), 1);
      given.set(line, look);
    }
  }
}

function sample(line) {
  const frame = {width: 26, height: 12, viewBox: "0 0 26 12", "aria-hidden": "true"};
  return s("svg", frame, curve(line, "M1,6H25"), mark(line, 13, 6));
}

const curve = (line, d) =>
  s("path", {class: "curve", d, stroke: colourOf(line), "stroke-dasharray": line.dash || null});

function mark(line, x, y, more) {
  const [inside, around] = ["var(--paper)", colourOf(line)];
  return s("path", {
    d: SHAPES[lookOf(line, "marker")] ?? SHAPES.o,
    transform: `translate(${x.toFixed(1)},${y.toFixed(1)})`,
    class: "mark",
    fill: line.is_variant ? inside : around,
    stroke: line.is_variant ? around : inside,
    "stroke-width": line.is_variant ? 1.4 : 0.7,
    ...more,
  });
}

/** Make the point of a cell, which can be reached by keyboard and shows its numbers. */
function pointAt(cell, x, y, ...more) {
  const told = [...numbersOf(cell), ...more, ...originOf(cell)];
  const names = {"data-point": true, "data-line": cell.line.label, "data-bits": cell.bits};
  return mark(cell.line, x, y, {...names, role: "img", "aria-label": told.join(", "), ...tipping(told)});
}

const numbersOf = (cell) => [
  cell.line.label,
  `${cell.metric.name} ${shown(cell.value)} at ${cell.bits} bits`,
  range(cell),
  cell.n_rows > 1 ? `${spreadText(cell)} over ${count(cell.n_rows, cell.unit ?? "seed")}` : "one seed",
  ...cell.papers.map((paper) => `paper ${paper.value}: ${VERDICTS[paper.verdict]}`),
];
const originOf = (cell) => at(data.rows.made, cell.row)?.split("\n").filter(Boolean) ?? []; // of its first seed

const tipping = (told) => ({
  tabindex: 0,
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
  const [over, room] = [element.getBoundingClientRect(), document.documentElement.clientWidth];
  const left = Math.min(over.left + over.width / 2 - box.offsetWidth / 2, room - box.offsetWidth - 4);
  const top = over.top > box.offsetHeight + 12 ? over.top - box.offsetHeight - 8 : over.bottom + 8;
  Object.assign(box.style, {left: Math.max(4, left) + scrollX + "px", top: top + scrollY + "px"});
}

const FRAME = {width: 720, height: 430, left: 52, right: 16, top: 28, bottom: 44};

/** Fit the frame to the room there is, so that texts keep their size. */
function fitFrame() {
  const room = $("#view").clientWidth - 2 * parseFloat(getComputedStyle($("#view")).paddingLeft);
  FRAME.width = Math.max(280, matchMedia("(max-width: 900px)").matches ? room : room - 300);
  FRAME.height = Math.min(480, Math.max(290, 0.55 * FRAME.width));
}

/** Lay out axes; `x` and `y` are {ticks: [[value, text], ...], place(value), label}. */
function axes(x, y, title, ...marks) {
  const {width, height, left, right, bottom} = FRAME;
  const writing = (x, y, anchor, text, kind = null) => s("text", {x, y, "text-anchor": anchor, class: kind}, text);
  return s(
    "svg",
    {viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": title, class: "chart"},
    y.ticks.map(([value]) => s("path", {class: "gridline", d: `M${left},${y.place(value)}H${width - right}`})),
    y.ticks.map(([value, text]) => writing(left - 7, y.place(value) + 4, "end", text)),
    x.ticks.map(([value, text]) => writing(x.place(value), height - bottom + 18, "middle", text)),
    s("path", {class: "axis", d: `M${left},${height - bottom}H${width - right}`}),
    writing(left, 14, "start", y.label, "label"),
    writing((left + width - right) / 2, height - 6, "middle", x.label, "label"),
    marks,
  );
}

/** Make the axis of the metric; with `isRanged` it has room for tie ranges. */
function upward(some, isRanged) {
  const {height, bottom, top} = FRAME;
  const values = some.flatMap((cell) => [cell.value, ...(isRanged && cell.low !== null ? [cell.low, cell.high] : [])]);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const pad = (most - least || Math.abs(most) || 1) * 0.05;
  const [low, high] = [least - pad, most + pad];
  const power = 10 ** Math.floor(Math.log10((high - low) / 6));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= (high - low) / 6 - 1e-12);
  const n_digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) ticks.push([k * step, (k * step).toFixed(n_digits)]);
  const place = (value) => top + ((high - value) / (high - low)) * (height - top - bottom);
  return {label: some[0].metric.name, ticks, place};
}

/** Make a logarithmic axis. */
function along(values, ticks, label) {
  const {width, left, right} = FRAME;
  const [low, high] = [Math.log(Math.min(...values)), Math.log(Math.max(...values))];
  const pad = (high - low || 1) * 0.04;
  const place = (value) => left + ((Math.log(value) - low + pad) / (high - low + 2 * pad)) * (width - left - right);
  return {label, ticks, place};
}

const polyline = (points) => "M" + points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join("L");
