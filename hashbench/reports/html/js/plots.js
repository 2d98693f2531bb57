// Plots in SVG: the metric against the code length, tie ranges, time against quality; the legend filters.

const MOST_LINES = 8; // shown at first
const KINDS = {bits: "metric against bits", ties: "tie ranges", times: "time against quality"};

views.plots = {
  title: "Plots",
  fields() {
    const block = blockOf.get(choose([FIELDS.data()]).data);
    const some = block.cells.filter((cell) => cell.metric.name === choose([FIELDS.metric(block.cells)]).metric);
    const kinds = Object.entries(KINDS).filter(([kind]) => kind !== "times" || timesOf(block).length);
    return [
      FIELDS.data(),
      FIELDS.metric(block.cells),
      {name: "kind", label: "Plot", kind: "select", options: kinds},
      FIELDS.text(),
      FIELDS.group(some),
      FIELDS.bits(some),
      FIELDS.variants(),
    ];
  },
  body(chosen) {
    const block = blockOf.get(chosen.data);
    const order = linesOf(ranked(block));
    const some = filtered(
      block.cells.filter((cell) => cell.metric.name === chosen.metric && cell.value !== null),
      chosen,
    );
    const isTimed = new Set(timesOf(block).map((time) => time.line));
    const lines = order.filter(
      (line) => some.some((cell) => cell.line === line) && (chosen.kind !== "times" || isTimed.has(line)),
    );
    if (!lines.length) return [nothing()];
    const given = state.params.getAll("line");
    const isShown = new Set(
      given.length ? lines.filter((line) => given.includes(line.label)) : lines.slice(0, MOST_LINES),
    );
    const figure = h("figure", {"data-test": "plot"});
    const redraw = () => {
      tellApart(lines.filter((line) => isShown.has(line)));
      figure.replaceChildren(
        ...drawPlot(
          chosen,
          block,
          some.filter((cell) => isShown.has(cell.line)),
        ),
      );
    };
    const show = (wanted) => {
      isShown.clear();
      wanted.forEach((line) => isShown.add(line));
      state.params.delete("line");
      (isShown.size ? [...isShown].map((line) => line.label) : [""]).forEach((label) =>
        state.params.append("line", label),
      );
      keepLink();
      redraw();
      legend.querySelectorAll("button[data-line]").forEach((button) => {
        button.setAttribute("aria-pressed", isShown.has(lineOf.get(button.dataset.line)));
        button.firstChild.replaceWith(sample(lineOf.get(button.dataset.line)));
      });
    };
    redraw();
    const legend = h(
      "div",
      {class: "legend", role: "group", "aria-label": "Lines shown"},
      h(
        "div",
        {},
        h("button", {type: "button", onclick: () => show(lines)}, "All"),
        h("button", {type: "button", onclick: () => show([])}, "None"),
      ),
      lines.length > MOST_LINES && !given.length
        ? h("p", {class: "muted"}, `The first ${MOST_LINES} of ${lines.length} are drawn; press others to add them.`)
        : null,
      lines.map((line) =>
        h(
          "button",
          {
            type: "button",
            "data-line": line.label,
            "aria-pressed": String(isShown.has(line)),
            onclick: () => show(isShown.has(line) ? [...isShown].filter((one) => one !== line) : [...isShown, line]),
          },
          sample(line),
          h("span", {}, lineName(line)),
        ),
      ),
    );

    return [h("div", {class: "plot"}, figure, legend), plotTable(chosen, some)];
  },
};

function drawPlot(chosen, block, some) {
  if (!some.length) return [nothing("No line is chosen: press its name.")];
  fitFrame();
  const drawing = {bits: bitsPlot, ties: tiesPlot, times: timesPlot}[chosen.kind];
  const [caption, ...parts] = drawing(some, block);
  return [h("figcaption", {}, caption), ...parts];
}

function bitsPlot(some) {
  const [lengths, lines, metric] = [bitsOf(some), linesOf(some), some[0].metric.name];
  const isBanded = lines.length <= 4;
  const y = upward(
    some.flatMap((cell) => (isBanded ? [cell.low ?? cell.value, cell.high ?? cell.value, cell.value] : [cell.value])),
    metric,
  );
  const x = along(
    lengths,
    lengths.map((bits) => [bits, bits]),
    "code length (bits)",
  );
  const drawn = lines.map((line) => {
    const own = some.filter((cell) => cell.line === line).sort((a, b) => a.bits - b.bits);
    const ranged = own.filter((cell) => cell.low !== null);
    const band =
      isBanded &&
      ranged.length > 1 &&
      s("path", {
        class: "band",
        fill: colourOf(line),
        d:
          polyline([
            ...ranged.map((cell) => [x.place(cell.bits), y.place(cell.high)]),
            ...ranged.toReversed().map((cell) => [x.place(cell.bits), y.place(cell.low)]),
          ]) + "Z",
      });
    return s(
      "g",
      {},
      band,
      s("path", {
        class: "curve",
        stroke: colourOf(line),
        "stroke-dasharray": line.dash || null,
        d: polyline(own.map((cell) => [x.place(cell.bits), y.place(cell.value)])),
      }),
      own.map((cell) => pointAt(cell, x.place(cell.bits), y.place(cell.value))),
    );
  });
  return [
    `${metric} on ${some[0].block.name} by code length. Line: mean over all orders of tied items.` +
      (isBanded
        ? " Band: from the lowest to the highest that breaking ties could give."
        : " Of four lines or fewer the tie ranges are drawn, too."),
    axes(x, y, `${metric} by code length`, drawn),
  ];
}

function tiesPlot(some) {
  const [width, height, left, bottom, top, right] = FRAME;
  const [lengths, lines, metric] = [bitsOf(some), linesOf(some), some[0].metric.name];
  const y = upward(
    some.flatMap((cell) => [cell.low ?? cell.value, cell.high ?? cell.value, cell.value]),
    metric,
  );
  const share = (width - left - right) / lengths.length;
  const placeOf = (cell) =>
    left + share * (lengths.indexOf(cell.bits) + 0.12 + 0.76 * ((lines.indexOf(cell.line) + 0.5) / lines.length));
  const x = {
    label: "code length (bits)",
    ticks: lengths.map((bits) => [bits, bits]),
    place: (bits) => left + share * (lengths.indexOf(bits) + 0.5),
  };
  const shade = lengths
    .filter((_, i) => i % 2 === 0)
    .map((bits) =>
      s("rect", {
        class: "shade",
        x: left + share * lengths.indexOf(bits),
        y: top,
        width: share,
        height: height - top - bottom,
      }),
    );
  return [
    `How far breaking ties could move ${metric} on ${some[0].block.name}. ` +
      "Mark: mean over all orders of tied items; bar: from the lowest to the highest.",
    axes(
      x,
      y,
      `Tie ranges of ${metric}`,
      shade,
      some.map((cell) =>
        s(
          "g",
          {},
          cell.low !== null &&
            s("path", {
              class: "bar",
              stroke: colourOf(cell.line),
              d: `M${placeOf(cell).toFixed(1)},${y.place(cell.low).toFixed(1)}V${y.place(cell.high).toFixed(1)}`,
            }),
          pointAt(cell, placeOf(cell), y.place(cell.value)),
        ),
      ),
    ),
  ];
}

function timesOf(block) {
  const t = data.times;
  return t.bits
    .map((bits, i) => ({
      block: at(t.data, i),
      line: lineOf.get(at(t.label, i)),
      bits,
      fit: number(t.fit_seconds[i]),
      encode: number(t.encode_seconds[i]),
    }))
    .filter((time) => time.block === block.name && time.line);
}

function timesPlot(some, block) {
  const metric = some[0].metric.name;
  const times = new Map(timesOf(block).map((time) => [time.line.i + " " + time.bits, time]));
  const found = some.map((cell) => [cell, times.get(cell.line.i + " " + cell.bits)]).filter(([, time]) => time);
  if (!found.length)
    return [`Time against ${metric}`, nothing("Of the lines chosen no time is known; press others in the legend.")];
  const y = upward(
    found.map(([cell]) => cell.value),
    metric,
  );
  return [
    `Time to fit, and to encode, against ${metric} on ${block.name}; a point a code length. ` +
      "Times are on logarithmic axes.",
    ...["fit", "encode"].map((what) => {
      const seconds = found.map(([, time]) => Math.max(time[what], 1e-4));
      const x = along(seconds, powersOf(seconds), `time to ${what} (s)`);
      return axes(
        x,
        y,
        `Time to ${what} against ${metric}`,
        linesOf(found.map(([cell]) => cell)).map((line) => {
          const own = found
            .filter(([cell]) => cell.line === line)
            .map(([cell, time]) => [cell, time, x.place(Math.max(time[what], 1e-4)), y.place(cell.value)]);
          return s(
            "g",
            {},
            own.map(([cell, time, left, top]) =>
              pointAt(cell, left, top, `fit ${time.fit.toPrecision(3)} s, encode ${time.encode.toPrecision(3)} s`),
            ),
          );
        }),
      );
    }),
  ];
}

function powersOf(seconds) {
  const ticks = [];
  const [low, high] = [Math.log10(Math.min(...seconds)), Math.log10(Math.max(...seconds))];
  for (let power = Math.ceil(low); power <= high; power++)
    ticks.push([10 ** power, power < 0 ? (10 ** power).toFixed(-power) : (10 ** power).toLocaleString("en")]);
  return ticks.length > 1 ? ticks : unique([low, high]).map((power) => [10 ** power, (10 ** power).toPrecision(2)]);
}

const plotTable = (chosen, some) =>
  h(
    "details",
    {},
    h("summary", {}, "The numbers as a table"),
    table({
      name: "points",
      caption: `${chosen.metric} on ${chosen.data}`,
      columns: scoreColumns().slice(1),
      rows: some,
      keyOf: (cell) => cell.i,
    }),
  );
