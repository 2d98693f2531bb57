// Plots in SVG: the metric against the code length, tie ranges, time against quality; the legend filters.

const MOST_LINES = 8; // shown at first
const KINDS = {bits: "metric against bits", ties: "tie ranges", times: "time against quality"};
const SHAPES = { // around (0, 0)
  o: "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0Z", s: "M-3.6,-3.6h7.2v7.2h-7.2Z", "^": "M0,-4.6L4.4,3.4H-4.4Z", v: "M0,4.6L4.4,-3.4H-4.4Z",
  D: "M0,-4.8L4.8,0L0,4.8L-4.8,0Z", "<": "M-4.6,0L3.4,-4.4V4.4Z", ">": "M4.6,0L-3.4,-4.4V4.4Z", P: "M-1.5,-4.4h3v2.9h2.9v3h-2.9v2.9h-3v-2.9h-2.9v-3h2.9Z",
  X: "M-4.2,-2.4L-2.4,-4.2L0,-1.8L2.4,-4.2L4.2,-2.4L1.8,0L4.2,2.4L2.4,4.2L0,1.8L-2.4,4.2L-4.2,2.4L-1.8,0Z",
  p: "M0,-4.6L4.4,-1.4L2.7,3.8H-2.7L-4.4,-1.4Z", h: "M0,-4.6L4,-2.3V2.3L0,4.6L-4,2.3V-2.3Z",
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

views.plots = {
  title: "Plots",
  fields() {
    const block = blockOf.get(choose([FIELDS.data()]).data);
    const some = block.cells.filter((cell) => cell.metric.name === choose([FIELDS.metric(block.cells)]).metric);
    const kinds = Object.entries(KINDS).filter(([kind]) => kind !== "times" || timesOf(block).length);
    return [FIELDS.data(), FIELDS.metric(block.cells), {name: "kind", label: "Plot", kind: "select", options: kinds}, FIELDS.text(), FIELDS.group(some), FIELDS.bits(some), FIELDS.variants()];
  },
  body(chosen) {
    const block = blockOf.get(chosen.data);
    const order = linesOf(ranked(block));
    const some = filtered(block.cells.filter((cell) => cell.metric.name === chosen.metric && cell.value !== null), chosen);
    const isTimed = new Set(timesOf(block).map((time) => time.line));
    const lines = order.filter((line) => some.some((cell) => cell.line === line) && (chosen.kind !== "times" || isTimed.has(line)));
    if (!lines.length) return [nothing()];
    const given = state.params.getAll("line");
    const isShown = new Set(given.length ? lines.filter((line) => given.includes(line.label)) : lines.slice(0, MOST_LINES));
    const figure = h("figure", {"data-test": "plot"});
    const redraw = () => {
      tellApart(lines.filter((line) => isShown.has(line)));
      figure.replaceChildren(...drawPlot(chosen, block, some.filter((cell) => isShown.has(cell.line))));
    };
    const show = (wanted) => {
      isShown.clear();
      wanted.forEach((line) => isShown.add(line));
      state.params.delete("line");
      (isShown.size ? [...isShown].map((line) => line.label) : [""]).forEach((label) => state.params.append("line", label));
      keepLink();
      redraw();
      legend.querySelectorAll("button[data-line]").forEach((button) => {
        button.setAttribute("aria-pressed", isShown.has(lineOf.get(button.dataset.line)));
        button.firstChild.replaceWith(sample(lineOf.get(button.dataset.line)));
      });
    };
    redraw();
    const legend = h("div", {class: "legend", role: "group", "aria-label": "Lines shown"},
      h("div", {}, h("button", {type: "button", onclick: () => show(lines)}, "All"), h("button", {type: "button", onclick: () => show([])}, "None")),
      lines.map((line) => h("button", {type: "button", "data-line": line.label, "aria-pressed": String(isShown.has(line)), onclick: () =>
        show(isShown.has(line) ? [...isShown].filter((one) => one !== line) : [...isShown, line])}, sample(line), h("span", {}, lineName(line)))));

    return [h("div", {class: "plot"}, figure, legend), plotTable(chosen, some)];
  },
};

const sample = (line) => s("svg", {width: 26, height: 12, viewBox: "0 0 26 12", "aria-hidden": "true"},
  s("path", {d: "M1,6H25", stroke: colourOf(line), "stroke-width": 1.6, "stroke-dasharray": line.dash || null}), mark(line, 13, 6, {}));

function mark(line, x, y, attributes) {
  return s("path", {d: SHAPES[line.marker] ?? SHAPES.o, transform: `translate(${x.toFixed(1)},${y.toFixed(1)})`, class: "mark",
    fill: line.is_variant ? "var(--paper)" : colourOf(line), stroke: line.is_variant ? colourOf(line) : "var(--paper)", "stroke-width": line.is_variant ? 1.4 : 0.7, ...attributes});
}

/** A point that can be reached by keyboard and tells its numbers. */
function point(line, x, y, told, attributes) {
  return mark(line, x, y, {"data-point": true, "data-line": line.label, tabindex: 0, role: "img", "aria-label": told.join(", "), ...attributes,
    onpointerenter: (event) => tip(event.currentTarget, told), onpointerleave: () => tip(null), onfocus: (event) => tip(event.currentTarget, told), onblur: () => tip(null)});
}

function tip(element, told) {
  const box = $("#tip");
  box.hidden = element === null;
  if (element === null) return;
  box.replaceChildren(h("strong", {}, told[0]), ...told.slice(1).map((text) => h("div", {}, text)));
  const at = element.getBoundingClientRect();
  const width = box.offsetWidth;
  box.style.left = Math.max(4, Math.min(at.left + at.width / 2 - width / 2, document.documentElement.clientWidth - width - 4)) + scrollX + "px";
  box.style.top = (at.top > box.offsetHeight + 12 ? at.top - box.offsetHeight - 8 : at.bottom + 8) + scrollY + "px";
}

function drawPlot(chosen, block, some) {
  if (!some.length) return [nothing("No line is chosen: press its name.")];
  fitFrame();
  const drawing = {bits: bitsPlot, ties: tiesPlot, times: timesPlot}[chosen.kind];
  const [caption, ...parts] = drawing(some, block);
  return [h("figcaption", {}, caption), ...parts];
}

/** Lay out axes; `x` and `y` are {ticks: [[value, text], ...], place(value), label}. */
function axes(x, y, title, ...marks) {
  const [w, hgt, left, bottom, top, right] = FRAME;
  return s("svg", {viewBox: `0 0 ${w} ${hgt}`, role: "group", "aria-label": title, class: "chart"},
    y.ticks.map(([value, text]) => [s("path", {class: "gridline", d: `M${left},${y.place(value)}H${w - right}`}), s("text", {x: left - 7, y: y.place(value) + 4, "text-anchor": "end"}, text)]),
    x.ticks.map(([value, text]) => s("text", {x: x.place(value), y: hgt - bottom + 18, "text-anchor": "middle"}, text)),
    s("path", {class: "axis", d: `M${left},${hgt - bottom}H${w - right}`}), s("text", {x: left, y: 14, class: "label"}, y.label),
    s("text", {x: (left + w - right) / 2, y: hgt - 6, "text-anchor": "middle", class: "label"}, x.label), marks);
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
  for (let tick = Math.ceil(low / step); tick * step <= high; tick++) ticks.push([tick * step, (tick * step).toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)))]);
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
  return {label, ticks, place: (value) => left + ((Math.log(value) - low + pad) / (high - low + 2 * pad)) * (width - left - right)};
}

const toldOf = (cell, ...more) => [cell.line.label, `${cell.metric.name} ${shown(cell.value)} at ${cell.bits} bits`, range(cell),
  cell.nSeeds > 1 ? `${spreadText(cell)} over ${cell.nSeeds} seeds` : "one seed", ...cell.papers.map((paper) => `paper ${paper.value} ${MARKS[paper.verdict]}`), ...more];
const pointAt = (cell, x, y, ...more) => point(cell.line, x, y, toldOf(cell, ...more), {"data-bits": cell.bits, "data-value": cell.value});
const polyline = (points) => "M" + points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join("L");

function bitsPlot(some) {
  const [lengths, lines, metric] = [bitsOf(some), linesOf(some), some[0].metric.name];
  const isBanded = lines.length <= 4;
  const y = upward(some.flatMap((cell) => (isBanded ? [cell.low ?? cell.value, cell.high ?? cell.value, cell.value] : [cell.value])), metric);
  const x = along(lengths, lengths.map((bits) => [bits, bits]), "code length (bits)");
  const drawn = lines.map((line) => {
    const own = some.filter((cell) => cell.line === line).sort((a, b) => a.bits - b.bits);
    const ranged = own.filter((cell) => cell.low !== null);
    const band = isBanded && ranged.length > 1 && s("path", {class: "band", fill: colourOf(line), d: polyline([...ranged.map((cell) => [x.place(cell.bits), y.place(cell.high)]),
      ...ranged.toReversed().map((cell) => [x.place(cell.bits), y.place(cell.low)])]) + "Z"});
    return s("g", {"data-series": line.label}, band, s("path", {class: "curve", stroke: colourOf(line), "stroke-dasharray": line.dash || null, d: polyline(own.map((cell) => [x.place(cell.bits), y.place(cell.value)]))}),
      own.map((cell) => pointAt(cell, x.place(cell.bits), y.place(cell.value))));
  });
  return [`${metric} on ${some[0].block.name} by code length. Line: mean over all orders of tied items.`
    + (isBanded ? " Band: from the lowest to the highest that breaking ties could give." : " Of four lines or fewer the tie ranges are drawn, too."), axes(x, y, `${metric} by code length`, drawn)];
}

function tiesPlot(some) {
  const [width, height, left, bottom, top, right] = FRAME;
  const [lengths, lines, metric] = [bitsOf(some), linesOf(some), some[0].metric.name];
  const y = upward(some.flatMap((cell) => [cell.low ?? cell.value, cell.high ?? cell.value, cell.value]), metric);
  const share = (width - left - right) / lengths.length;
  const placeOf = (cell) => left + share * (lengths.indexOf(cell.bits) + 0.12 + 0.76 * ((lines.indexOf(cell.line) + 0.5) / lines.length));
  const x = {label: "code length (bits)", ticks: lengths.map((bits) => [bits, bits]), place: (bits) => left + share * (lengths.indexOf(bits) + 0.5)};
  const shade = lengths.filter((_, i) => i % 2 === 0).map((bits) => s("rect", {class: "shade", x: left + share * lengths.indexOf(bits), y: top, width: share, height: height - top - bottom}));
  return [`How far breaking ties could move ${metric} on ${some[0].block.name}. Mark: mean over all orders of tied items; bar: from the lowest to the highest.`,
    axes(x, y, `Tie ranges of ${metric}`, shade, some.map((cell) => s("g", {"data-series": cell.line.label},
      cell.low !== null && s("path", {class: "bar", stroke: colourOf(cell.line), d: `M${placeOf(cell).toFixed(1)},${y.place(cell.low).toFixed(1)}V${y.place(cell.high).toFixed(1)}`}), pointAt(cell, placeOf(cell), y.place(cell.value)))))];
}

function timesOf(block) {
  const t = data.times;
  return t.bits.map((bits, i) => ({block: at(t.data, i), line: lineOf.get(at(t.label, i)), bits, fit: number(t.fit_seconds[i]), encode: number(t.encode_seconds[i])}))
    .filter((time) => time.block === block.name && time.line);
}

function timesPlot(some, block) {
  const metric = some[0].metric.name;
  const times = new Map(timesOf(block).map((time) => [time.line.i + " " + time.bits, time]));
  const found = some.map((cell) => [cell, times.get(cell.line.i + " " + cell.bits)]).filter(([, time]) => time);
  if (!found.length) return [`Time against ${metric}`, nothing("Of the lines chosen no time is known; press others in the legend.")];
  const y = upward(found.map(([cell]) => cell.value), metric);
  return [`Time to fit, and to encode, against ${metric} on ${block.name}; a point a code length. Times are on logarithmic axes.`, ...["fit", "encode"].map((what) => {
    const seconds = found.map(([, time]) => Math.max(time[what], 1e-4));
    const x = along(seconds, powersOf(seconds), `time to ${what} (s)`);
    return axes(x, y, `Time to ${what} against ${metric}`, linesOf(found.map(([cell]) => cell)).map((line) => {
      const own = found.filter(([cell]) => cell.line === line).map(([cell, time]) => [cell, time, x.place(Math.max(time[what], 1e-4)), y.place(cell.value)]);
      return s("g", {"data-series": line.label}, own.map(([cell, time, left, top]) => pointAt(cell, left, top, `fit ${time.fit.toPrecision(3)} s, encode ${time.encode.toPrecision(3)} s`)));
    }));
  })];
}

function powersOf(seconds) {
  const ticks = [];
  const [low, high] = [Math.log10(Math.min(...seconds)), Math.log10(Math.max(...seconds))];
  for (let power = Math.ceil(low); power <= high; power++) ticks.push([10 ** power, power < 0 ? (10 ** power).toFixed(-power) : (10 ** power).toLocaleString("en")]);
  return ticks.length > 1 ? ticks : unique([low, high]).map((power) => [10 ** power, (10 ** power).toPrecision(2)]);
}

const plotTable = (chosen, some) => h("details", {}, h("summary", {}, "The numbers as a table"),
  table({name: "points", caption: `${chosen.metric} on ${chosen.data}`, columns: scoreColumns().slice(1), rows: some, keyOf: (cell) => cell.i}));
