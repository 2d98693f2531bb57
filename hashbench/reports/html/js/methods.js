// Methods: a list, a page of each, every row there is, and two methods side by side.

const scoreColumns = () => [
  {key: "data", label: "Dataset and features", isText: true, value: (cell) => cell.block.name},
  {key: "line", label: "Method", isText: true, value: (cell) => cell.line.label, node: (cell) => lineName(cell.line)},
  {key: "metric", label: "Metric", isText: true, value: (cell) => cell.metric.name},
  {key: "bits", label: "Bits", value: (cell) => cell.bits},
  {key: "value", label: "Value", value: (cell) => cell.value, text: (cell) => shown(cell.value, 6)},
  {key: "low", label: "Low", value: (cell) => cell.low, text: (cell) => shown(cell.low, 6)},
  {key: "high", label: "High", value: (cell) => cell.high, text: (cell) => shown(cell.high, 6)},
];

views.methods = {
  title: "Methods",
  fields: () => [FIELDS.text(), FIELDS.group(cells)],
  body(chosen) {
    const some = filtered(cells, chosen);
    const counts = new Map();
    for (const cell of some) counts.set(cell.line.method, (counts.get(cell.line.method) ?? 0) + cell.nSeeds);
    const rows = data.methods.filter((method) => counts.has(method.name));
    const columns = [
      {
        key: "method",
        label: "Method",
        isText: true,
        value: (row) => row.name,
        node: (row) => h("a", {href: link("method", {method: row.name})}, row.name),
      },
      {key: "group", label: "Group", isText: true, value: (row) => row.group || "not installed"},
      {key: "supervision", label: "Supervision", isText: true, value: (row) => row.supervision ?? "unknown"},
      {key: "rows", label: "Rows", value: (row) => counts.get(row.name)},
      {key: "about", label: "About", isText: true, value: (row) => row.summary ?? ""},
    ];
    return [
      table({
        name: "methods",
        caption: "Methods with results",
        columns,
        rows,
        isLinked: true,
        keyOf: (row) => row.name,
      }),
    ];
  },
};

views.method = {
  title: "Method",
  fields() {
    const some = cells.filter((cell) => cell.line.method === (state.params.get("method") ?? data.methods[0].name));
    return [
      {
        name: "method",
        label: "Method",
        kind: "select",
        resets: ["sort", "desc", "bits", "metric", "place"],
        options: data.methods.map((method) => [method.name, method.name]),
      },
      FIELDS.allOr("place", "Dataset and features", unique(some.map((cell) => cell.block.name))),
      FIELDS.allOr("metric", "Metric", namesOf(metricsOf(some))),
      FIELDS.bits(some),
      {name: "seeds", label: "Each seed by itself", kind: "flag"},
    ];
  },
  body(chosen) {
    const method = methodOf.get(chosen.method);
    const some = cells.filter(
      (cell) =>
        cell.line.method === chosen.method &&
        chosen.bits.includes(String(cell.bits)) &&
        (!chosen.place || cell.block.name === chosen.place) &&
        (!chosen.metric || cell.metric.name === chosen.metric),
    );
    const seeds = chosen.seeds
      ? [{key: "seed", label: "Seed", value: (row) => row.seed}]
      : [
          {
            key: "spread",
            label: "Spread",
            value: (cell) => cell.spread,
            text: (cell) => (cell.nSeeds > 1 ? shown(cell.spread, 6) : "–"),
          },
          {key: "seeds", label: "Seeds", value: (cell) => cell.nSeeds},
          {key: "paper", label: "Paper", isText: true, value: (cell) => paperText(cell)},
        ];
    return [
      methodCard(method),
      usageOf(chosen.method),
      h("h2", {}, "Results"),
      table({
        name: "rows",
        caption: `Results of ${chosen.method}`,
        columns: [...scoreColumns(), ...seeds],
        rows: chosen.seeds ? rowsOf(some) : some,
        isLinked: true,
        keyOf: (row) => row.i,
      }),
    ];
  },
};

function methodCard(method) {
  if (!method.is_installed)
    return h(
      "p",
      {class: "card"},
      h("strong", {}, method.name),
      " is not installed where this page was made: nothing but its results is known.",
    );
  return h(
    "article",
    {class: "card"},
    h("h2", {}, method.name),
    h("p", {}, method.summary),
    h(
      "dl",
      {},
      h("dt", {}, "group"),
      h("dd", {}, method.group),
      h("dt", {}, "supervision"),
      h("dd", {}, method.supervision),
      h("dt", {}, "version"),
      h("dd", {}, method.version),
      method.references.map((text) => [h("dt", {}, "reference"), h("dd", {}, text)]),
    ),
    h(
      "details",
      {},
      h("summary", {}, `${count(method.params.length, "parameter")} and their defaults`),
      h(
        "dl",
        {class: "params"},
        method.params.map(([name, value, meaning]) => [
          h("dt", {}, h("code", {}, `${name}=${value}`)),
          h("dd", {}, meaning),
        ]),
        Object.entries(method.presets).map(([name, text]) => [h("dt", {}, `preset ${name}`), h("dd", {}, text)]),
      ),
    ),
  );
}

/** Show how often codes are used, as far as the codes were kept where the page was made. */
function usageOf(method) {
  const u = data.usage;
  const rows = u.bits
    .map((bits, i) => ({
      i,
      bits,
      place: at(u.data, i),
      line: lineOf.get(at(u.label, i)),
      n: u.n_items[i],
      distinct: u.n_distinct[i],
      curve: u.curve[i],
    }))
    .filter((row) => row.line?.method === method);
  if (!rows.length)
    return h(
      "p",
      {class: "muted"},
      "How often each code is used is shown of codes in the data folder where the page is made: ",
      "hashbench encode, then hashbench report.",
    );
  const columns = [
    {key: "data", label: "Dataset and features", isText: true, value: (row) => row.place},
    {key: "line", label: "Method", isText: true, value: (row) => row.line.label, node: (row) => lineName(row.line)},
    {key: "bits", label: "Bits", value: (row) => row.bits},
    {key: "items", label: "Items", value: (row) => row.n},
    {key: "distinct", label: "Distinct codes", value: (row) => row.distinct},
    {key: "largest", label: "Most frequent code", value: (row) => row.curve[1], text: (row) => `${row.curve[1]} items`},
    {
      key: "curve",
      label: "Items of each code",
      value: (row) => row.curve[1] / row.n,
      node: sparkline,
      text: (row) => "",
    },
  ];
  return h(
    "details",
    {class: "usage"},
    h("summary", {}, "Use of codes"),
    table({
      name: "usage",
      caption: `How often ${method} uses each code, of the first seed`,
      columns,
      rows,
      keyOf: (row) => row.i,
    }),
  );
}

/** Draw how many items share each code, the most frequent first; both axes are logarithmic. */
function sparkline(row) {
  const [width, height] = [80, 18];
  const share = (number) => Math.log(number) / Math.log(Math.max(row.n, 2));
  const points = [];
  for (let k = 0; k < row.curve.length; k += 2) {
    points.push(`${width * share(row.curve[k])},${height * (1 - share(row.curve[k + 1]))}`);
  }
  return s(
    "svg",
    {
      class: "spark",
      width,
      height: height + 2,
      viewBox: `-1 -1 ${width + 2} ${height + 2}`,
      role: "img",
      "aria-label": `${row.distinct} distinct codes, the most frequent of ${row.curve[1]} items`,
    },
    s("polyline", {points: points.join(" ")}),
  );
}

views.rows = {
  title: "All rows",
  fields: () => [
    FIELDS.text(),
    FIELDS.allOr("place", "Dataset and features", namesOf(data.data)),
    FIELDS.allOr("metric", "Metric", namesOf(data.metrics)),
    FIELDS.group(cells),
    FIELDS.bits(cells),
  ],
  body(chosen) {
    const some = filtered(cells, chosen).filter(
      (cell) =>
        (!chosen.place || cell.block.name === chosen.place) && (!chosen.metric || cell.metric.name === chosen.metric),
    );
    const columns = [...scoreColumns(), {key: "seed", label: "Seed", value: (row) => row.seed}];
    return [
      table({
        name: "rows",
        caption: "Results, one row a seed",
        columns,
        rows: rowsOf(some),
        isLinked: true,
        keyOf: (row) => row.i,
      }),
    ];
  },
};

views.compare = {
  title: "Compare",
  fields() {
    const block = blockOf.get(choose([FIELDS.data()]).data);
    return [FIELDS.data(), ...twoLines(linesOf(ranked(block))), FIELDS.bits(block.cells)];
  },
  body(chosen) {
    const block = blockOf.get(chosen.data);
    const [a, b] = [chosen.a, chosen.b].map((label) => lineOf.get(label));
    const cellsOf = (line) =>
      new Map(
        block.cells.filter((cell) => cell.line === line).map((cell) => [cell.metric.name + " " + cell.bits, cell]),
      );
    const [ours, theirs] = [cellsOf(a), cellsOf(b)];
    const rows = [...ours]
      .filter(([key]) => theirs.has(key))
      .map(([key, cell]) => [cell, theirs.get(key)])
      .filter(([cell]) => chosen.bits.includes(String(cell.bits)));
    if (!rows.length) return [nothing("The two have no metric and code length in common here.")];
    const difference = ([one, other]) => (one.value === null || other.value === null ? null : one.value - other.value);
    const ahead = (row) =>
      difference(row) === null
        ? "–"
        : difference(row) === 0
          ? "equal"
          : isBetter(row[0].metric, row[0].value, row[1].value)
            ? chosen.a
            : chosen.b;
    const open = (row) => swappable(...row);
    const side = (k, label) => ({
      key: "ab"[k],
      label,
      value: (row) => row[k].value,
      node: (row) => [
        shown(row[k].value),
        " ",
        h("span", {class: "spread"}, spreadText(row[k])),
        tieBar(row[k], scaleOf(row)),
      ],
      text: (row) => `${shown(row[k].value)} ${spreadText(row[k])}`.trim(),
      cells: [
        [`${label} low`, (row) => row[k].low],
        [`${label} high`, (row) => row[k].high],
      ],
    });
    const columns = [
      {key: "metric", label: "Metric", isText: true, value: (row) => row[0].metric.name},
      {key: "bits", label: "Bits", value: (row) => row[0].bits},
      side(0, chosen.a),
      side(1, chosen.b),
      {
        key: "difference",
        label: "Difference",
        value: difference,
        text: (row) => (difference(row) > 0 ? "+" : "") + shown(difference(row)),
      },
      {key: "ahead", label: "Ahead", isText: true, value: ahead},
      {
        key: "ties",
        label: "Could ties swap them?",
        isText: true,
        value: open,
        node: (row) => h("span", {class: open(row) === "yes" ? "open" : ""}, open(row)),
      },
    ];
    const n = rows.filter((row) => ahead(row) === chosen.a).length;
    return [
      h(
        "p",
        {},
        h("strong", {}, chosen.a),
        ` is ahead of `,
        h("strong", {}, chosen.b),
        ` in ${n} of ${count(rows.length, "comparison")}; `,
        `ties could swap them in ${rows.filter((row) => open(row) === "yes").length}. `,
        h("a", {href: link("queries", {data: block.name, a: chosen.a, b: chosen.b})}, "Query by query"),
      ),
      table({
        name: "compare",
        caption: `${chosen.a} and ${chosen.b} on ${block.name}`,
        columns,
        rows,
        isLinked: true,
        keyOf: (row) => row[0].metric.name + " " + row[0].bits,
      }),
    ];
  },
};

/** Order the main cells of a block by how methods do in its usual metric at the usual length, baselines last. */
function ranked(block) {
  const metric = usualMetric(metricsOf(block.cells));
  const here = block.cells.filter((cell) => cell.metric === metric);
  const bits = nearest(bitsOf(here), 32);
  const score = new Map(
    here
      .filter((cell) => cell.bits === bits && cell.value !== null)
      .map((cell) => [cell.line, metric.is_error ? -cell.value : cell.value]),
  );
  const rank = (cell) =>
    (cell.line.group === "baseline" ? -2 : 0) + (cell.isMain ? 0 : -1) + (score.get(cell.line) ?? -1);
  return [...block.cells].sort((x, y) => rank(y) - rank(x));
}

function twoLines(lines) {
  const options = lines.map((line) => [line.label, line.label]);
  return [
    {name: "a", label: "One method", kind: "select", options, usual: options[0][0]},
    {name: "b", label: "Another method", kind: "select", options, usual: (options[1] ?? options[0])[0]},
  ];
}
