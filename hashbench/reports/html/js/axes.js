// Marks, axes and tips, which plots in SVG share.

function sample(line) {
  const frame = {width: 26, height: 12, viewBox: "0 0 26 12", "aria-hidden": "true"};
  return s("svg", frame, curve(line, "M1,6H25"), mark(line, 13, 6));
}

const curve = (line, d) =>
  s("path", {class: "curve", d, stroke: line.colour, "stroke-dasharray": line.dash || null});

function mark(line, x, y, more) {
  const [inside, around] = ["var(--paper)", line.colour];
  return s("path", {
    d: line.shape,
    transform: `translate(${x.toFixed(1)},${y.toFixed(1)})`,
    class: "mark",
    fill: line.is_variant ? inside : around,
    stroke: line.is_variant ? around : inside,
    "stroke-width": line.is_variant ? 1.4 : 0.7,
    ...more,
  });
}

const sign = (line) => s("svg", {class: "sign", viewBox: "-6 -6 12 12", "aria-hidden": "true"}, mark(line, 0, 0));

/** Let what stands for a cell be reached by keyboard, and show its numbers. */
function pointing(cell, ...more) {
  const told = [...numbersOf(cell), ...more, ...originOf(cell.row)];
  const names = {"data-point": true, "data-line": cell.line.label, "data-bits": cell.bits};
  return {...names, role: "img", "aria-label": told.join(", "), ...tipping(told)};
}
const pointAt = (cell, x, y, ...more) => mark(cell.line, x, y, pointing(cell, ...more));

const numbersOf = (cell) => [
  cell.line.label,
  `${cell.metric.name} ${shown(cell.value)} at ${cell.bits} bits`,
  range(cell),
  spreadInWords(cell),
  ...cell.papers.map(
    ({value, source, verdict, differs}) =>
      `paper ${value} (${signed(less(cell.value, +value), 3)}) by ${source}: ${data.verdicts[verdict]}` +
      (differs ? `. The set-up differs: ${differs}` : ""),
  ),
];
function spreadInWords(cell) {
  if (cell.unit) return `standard deviation ${shown(cell.spread)} over ${count(cell.n_rows, cell.unit)}`;
  return cell.n_rows > 1 ? `${spreadText(cell)} over ${count(cell.n_rows, "seed")}` : "one seed";
}

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

/** Fit the frame to the room there is for so many charts, so that texts keep their size. */
function fitFrame(nCharts) {
  const room = $("#view").clientWidth - 2 * parseFloat(getComputedStyle($("#view")).paddingLeft);
  const isNarrow = matchMedia("(max-width: 900px)").matches;
  FRAME.width = Math.max(280, isNarrow ? room : (room - 300) / nCharts);
  FRAME.height = Math.min(Math.max(290, 0.62 * FRAME.width), Math.max(290, innerHeight - 240));
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

/** Give the least of 1, 2, 5, 10, 20, ... (or 0.5, 0.2, ...) that is no less, and how to write its multiples. */
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= least - 1e-12);
  const n_digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return [step, (value) => value.toFixed(n_digits)];
}

/** Make the axis of the metric; with `isRanged` it has room for tie ranges. */
function upward(some, isRanged) {
  const {height, bottom, top} = FRAME;
  const values = some.flatMap((cell) => [cell.value, ...(isRanged && cell.low !== null ? [cell.low, cell.high] : [])]);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const pad = (most - least || Math.abs(most) || 1) * 0.05;
  const [low, high] = [least - pad, most + pad];
  const [step, textOf] = roundStep((high - low) / 6);
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) ticks.push([k * step, textOf(k * step)]);
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
