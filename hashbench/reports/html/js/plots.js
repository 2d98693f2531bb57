// Plots in SVG: the metric against the code length, tie ranges, time against quality; the legend filters.

const MOST_LINES = 8; // shown at first
const PLOTS = {bits: "by code length", ties: "tie ranges", times: "by time"};

views.plots = {
  more: ["line"],
  fields() {
    const block = blockOf.get(choose([FIELDS.data()]).data);
    const {metric} = choose([FIELDS.metric(block.cells)]);
    const some = block.cells.filter((cell) => cell.metric.name === metric);
    const isOff = (kind) => kind === "times" && !timesOf(block).size;
    const kinds = Object.entries(PLOTS).map(([kind, text]) =>
      isOff(kind) ? [kind, `${text} (no times)`, true] : [kind, text],
    );
    const checked = [FIELDS.group(some), FIELDS.bits(some), FIELDS.variants()];
    return [FIELDS.data(), FIELDS.metric(block.cells), FIELDS.one("kind", "Plot", kinds), FIELDS.text(), ...checked];
  },
  body(chosen) {
    const block = blockOf.get(chosen.data);
    const times = timesOf(block);
    const isDrawn = (cell) => cell.value !== null && (chosen.kind !== "times" || times.has(timeKey(cell)));
    const some = filtered(block.cells, chosen).filter(isDrawn);
    const lines = linesOf(ranked(block)).filter((line) => some.some((cell) => cell.line === line));
    if (!lines.length) return [nothing()];
    const given = state.params.getAll("line");
    const unknown = given.filter((label) => label && !lines.some((line) => line.label === label));
    let drawn = given.length ? lines.filter((line) => given.includes(line.label)) : lines.slice(0, MOST_LINES);
    const figure = h("figure", {"data-test": "plot"});
    const status = h("span", {class: "muted"});
    const legend = h("div", {class: "legend", role: "group", "aria-label": "Lines shown"});
    const redraw = () => {
      const shownCells = some.filter((cell) => drawn.includes(cell.line));
      const draw = shownCells.length ? DRAWINGS[chosen.kind] : () => [nothing("No line is chosen: press its name.")];
      fitFrame(chosen.kind === "times" ? 2 : 1);
      legend.style.setProperty("--height", FRAME.height + "px");
      status.textContent = `${drawn.length} of ${count(lines.length, "line")}`;
      figure.replaceChildren(...draw(shownCells, times));
      for (const button of legend.querySelectorAll("button[data-line]")) {
        button.setAttribute("aria-pressed", drawn.includes(lineOf.get(button.dataset.line)));
      }
    };
    const show = (wanted) => {
      drawn = wanted;
      state.params.delete("line");
      (drawn.length ? drawn : [{label: ""}]).forEach((line) => state.params.append("line", line.label));
      keepLink();
      redraw();
    };
    const toggle = (line) => show(drawn.includes(line) ? drawn.filter((one) => one !== line) : [...drawn, line]);
    const button = (onclick, more, ...inside) => h("button", {type: "button", onclick, ...more}, ...inside);
    filled(legend, {}, [
      h("div", {}, button(() => show(lines), {}, "All"), button(() => show([]), {}, "None"), status),
      lines.map((line) =>
        button(() => toggle(line), {"data-line": line.label}, sample(line), h("span", {}, named(line.label))),
      ),
    ]);
    redraw();
    const numbers = {name: "points", caption: `${chosen.metric} on ${chosen.data}`, columns: SCORES, rows: some};
    return [
      unknown.map((label) => lost(`There is no line "${label}" here.`)),
      h("div", {class: "plot"}, figure, legend),
      !times.size && fixed("no-times"),
      h("details", {}, h("summary", {}, "The numbers as a table"), table({...numbers, keyOf: (cell) => cell.i})),
    ];
  },
};

/** Order the cells of a block by how methods do in its usual metric at the usual length; baselines come last. */
function ranked(block) {
  const metric = usualMetric(metricsOf(block.cells));
  const here = block.cells.filter((cell) => cell.metric === metric);
  const bits = usualBits(here);
  const isScored = (cell) => cell.bits === bits && cell.value !== null;
  const score = new Map(here.filter(isScored).map((cell) => [cell.line, metric.is_error ? -cell.value : cell.value]));
  const rank = ({line, is_main}) => (line.group === "baseline" ? -2 : 0) + (is_main ? 0 : -1) + (score.get(line) ?? -1);
  return [...block.cells].sort((x, y) => rank(y) - rank(x));
}

const DRAWINGS = {
  bits(some) {
    const [lengths, lines, {metric}] = [bitsOf(some), linesOf(some), some[0]];
    const isBanded = lines.length <= 4;
    const [x, y] = [along(lengths, pairs(lengths), "code length (bits)"), upward(some, isBanded)];
    const place = (cell, key = "value") => [x.place(cell.bits), y.place(cell[key])];
    const drawn = lines.map((line) => {
      const own = some.filter((cell) => cell.line === line).sort((a, b) => a.bits - b.bits);
      const ranged = own.filter((cell) => cell.low !== null);
      const [above, below] = ["high", "low"].map((key) => ranged.map((cell) => place(cell, key)));
      const d = isBanded && ranged.length > 1 && polyline([...above, ...below.reverse()]) + "Z";
      return [
        d && s("path", {class: "band", fill: line.colour, d}),
        curve(line, polyline(own.map((cell) => place(cell)))),
        own.map((cell) => pointAt(cell, ...place(cell))),
      ];
    });
    return [captionOf("lines", some[0]), axes(x, y, `${metric.name} by code length`, drawn)];
  },

  ties(some) {
    const {width, height, left, right, top, bottom} = FRAME;
    const [lengths, lines, {metric}, y] = [bitsOf(some), linesOf(some), some[0], upward(some, true)];
    const share = (width - left - right) / lengths.length;
    const start = (bits) => left + share * lengths.indexOf(bits);
    const x = {label: "code length (bits)", ticks: pairs(lengths), place: (bits) => start(bits) + share / 2};
    const frame = {class: "shade", y: top, width: share, height: height - top - bottom};
    const shades = lengths.filter((_, k) => k % 2 === 0).map((bits) => s("rect", {...frame, x: start(bits)}));
    const drawn = some.map((cell) => {
      const across = start(cell.bits) + share * (0.12 + 0.76 * ((lines.indexOf(cell.line) + 0.5) / lines.length));
      const d = `M${across.toFixed(1)},${y.place(cell.low).toFixed(1)}V${y.place(cell.high).toFixed(1)}`;
      return [
        cell.low !== null && s("path", {class: "bar", stroke: cell.line.colour, d}),
        pointAt(cell, across, y.place(cell.value)),
      ];
    });
    return [captionOf("ranges", some[0]), axes(x, y, `Tie ranges of ${metric.name}`, shades, drawn)];
  },

  times(some, times) {
    const [{metric}, y] = [some[0], upward(some, false)];
    const chart = (what) => {
      const secondsOf = (cell) => Math.max(times.get(timeKey(cell))[what + "_seconds"], 1e-4);
      const seconds = some.map(secondsOf);
      const x = along(seconds, secondTicks(seconds), `time to ${what} (s)`);
      const isNumbered = linesOf(some).length <= 4;
      const point = (cell) => {
        const {fit_seconds, encode_seconds} = times.get(timeKey(cell));
        const told = `fit ${fit_seconds.toPrecision(3)} s, encode ${encode_seconds.toPrecision(3)} s`;
        const [across, up] = [x.place(secondsOf(cell)), y.place(cell.value)];
        const bits = isNumbered && s("text", {x: across, y: up - 8, "text-anchor": "middle"}, cell.bits);
        return [pointAt(cell, across, up, told), bits];
      };
      const pathOf = (line) => {
        const own = some.filter((cell) => cell.line === line).sort((a, b) => a.bits - b.bits);
        return curve(line, polyline(own.map((cell) => [x.place(secondsOf(cell)), y.place(cell.value)])));
      };
      return axes(x, y, `Time to ${what} against ${metric.name}`, linesOf(some).map(pathOf), some.map(point));
    };
    return [captionOf("times", some[0]), h("div", {class: "pair"}, chart("fit"), chart("encode"))];
  },
};

const captionOf = (name, {metric, block}) => fixed(name, {metric: metric.name, block: block.name});
const timeKey = (cell) => `${cell.bits} ${cell.line.label}`;

function timesOf(block) {
  const times = objectsOf(data.times, "fit_seconds", "encode_seconds").filter((time) => time.data === block.name);
  return new Map(times.map((time) => [`${time.bits} ${time.label}`, time]));
}

/** Choose round numbers of seconds on a logarithmic axis: as few to a power of ten as give four, else its ends. */
function secondTicks(seconds) {
  const [low, high] = [Math.min(...seconds), Math.max(...seconds)];
  const powers = Array.from({length: 12}, (_, k) => k - 5);
  const fine = [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 4, 6, 8]].map((digits) =>
    powers
      .flatMap((power) => digits.map((digit) => Number(`${digit}e${power}`)))
      .filter((tick) => tick >= low && tick <= high),
  );
  const ticks = fine.find((some) => some.length >= 4) ?? fine.at(-1);
  if (ticks.length > 1) return ticks.map((tick) => [tick, tick.toLocaleString("en", {maximumFractionDigits: 6})]);
  return unique([low, high]).map((tick) => [tick, tick.toPrecision(2)]);
}
