// Methods: a list, a page of each, and every row there is.

views.methods = {
  fields: () => [FIELDS.text(), FIELDS.group(cells)],
  body(chosen) {
    const rows = new Map(); // by method
    for (const {line, n_rows} of filtered(cells, chosen)) {
      if (!rows.has(line.method)) rows.set(line.method, {line, name: line.method, n_rows: 0});
      rows.get(line.method).n_rows += n_rows;
    }
    const columns = [
      textual("method", "Method", (row) => row.name, {
        node: (row) => h("a", {href: link("method", {method: row.name})}, row.name),
      }),
      textual("group", "Group", (row) => groupName(row.line)),
      textual("supervision", "Supervision", (row) => supervisionName(row.line)),
      numeric("rows", "Rows", (row) => row.n_rows, undefined, {node: (row) => grouped(row.n_rows)}),
      textual("about", "About", (row) => data.methods[row.name].about),
    ];
    const inOrder = Object.keys(data.methods).filter((name) => rows.has(name)).map((name) => rows.get(name));
    const [caption, keyOf] = ["Methods with results", (row) => row.name];
    return [table({name: "methods", caption, columns, rows: inOrder, isLinked: true, keyOf})];
  },
};

views.method = {
  title: "Method",
  fields() {
    const method = FIELDS.one("method", "Method", pairs(Object.keys(data.methods)));
    const some = cells.filter((cell) => cell.line.method === choose([method]).method);
    return [
      {...method, resets: ["sort", "desc", "bits", "metric", "place"]},
      FIELDS.allOr("place", "Dataset and features", unique(some.map((cell) => cell.block.name))),
      FIELDS.allOr("metric", "Metric", namesOf(metricsOf(some))),
      FIELDS.bits(some),
      FIELDS.flag("seeds", "Each seed separately"),
    ];
  },
  body(chosen) {
    const some = filtered(cells, chosen).filter((cell) => cell.line.method === chosen.method);
    const overSeeds = [
      numeric("spread", "Spread", (cell) => (cell.n_rows > 1 ? cell.spread : null), 6),
      numeric("seeds", "Seeds", (cell) => cell.n_rows),
      textual("paper", "Paper", paperText),
    ];
    return [
      cardOf(chosen.method),
      usageOf(chosen.method),
      h("h2", {}, "Results"),
      table({
        name: "rows",
        caption: `Results of ${chosen.method}`,
        columns: [COLUMNS.data, ...SCORES.filter((column) => column !== COLUMNS.data), ...(chosen.seeds ? [COLUMNS.seed] : overSeeds)],
        rows: chosen.seeds ? rowsOf(some) : some,
        isLinked: true,
        keyOf: (row) => row.i,
      }),
    ];
  },
};

views.rows = {
  fields: () => [
    FIELDS.text(),
    FIELDS.allOr("place", "Dataset and features", namesOf(data.data)),
    FIELDS.allOr("metric", "Metric", namesOf(data.metrics)),
    FIELDS.group(cells),
    FIELDS.bits(cells),
  ],
  body(chosen) {
    const [rows, columns] = [rowsOf(filtered(cells, chosen)), [...SCORES, COLUMNS.seed]];
    const caption = "Results, one row per seed";
    return [table({name: "rows", caption, columns, rows, isLinked: true, keyOf: (row) => row.i})];
  },
};

/** Take a copy of a method's card. */
function cardOf(method) {
  const cards = [...document.querySelectorAll("template[data-method]")];
  return cards.find((card) => card.dataset.method === method).content.cloneNode(true);
}

/** Show how often codes are used, as far as the codes were kept where the page was made. */
function usageOf(method) {
  const rows = objectsOf(data.usage)
    .map((row, i) => ({...row, i, block: {name: row.data}, line: lineOf.get(row.label)}))
    .filter((row) => row.line?.method === method);
  if (!rows.length) return fixed("no-usage");
  const columns = [
    ...[COLUMNS.line, COLUMNS.data, COLUMNS.bits, COLUMNS.seed],
    numeric("items", "Items", (row) => row.n_items),
    numeric("distinct", "Distinct codes", (row) => row.n_distinct),
    numeric("largest", "Items of the most frequent code", (row) => row.curve[1]),
    numeric("curve", "Items of each code", (row) => row.curve[1] / row.n_items, 4, {node: sparkline}),
  ];
  const caption = `How often ${method} uses each code`;
  return fixed("usage", {table: table({name: "usage", caption, columns, rows, keyOf: (row) => row.i})});
}

/** Draw how many items share each code, the most frequent first; both axes are logarithmic. */
function sparkline({curve, n_items, n_distinct}) {
  const [width, height] = [80, 18];
  const share = (n) => Math.log(n) / Math.log(Math.max(n_items, 2));
  const ranks = curve.filter((_, k) => k % 2 === 0);
  const points = ranks.map((rank, k) => [width * share(rank), height * (1 - share(curve[2 * k + 1]))]);
  const told = `${n_distinct} distinct codes, the most frequent of ${curve[1]} items`;
  const viewBox = `-1 -1 ${width + 2} ${height + 2}`;
  const frame = {class: "spark", width, height: height + 2, viewBox, role: "img", "aria-label": told};
  return s("svg", frame, s("polyline", {points: points.join(" ")}));
}
