// The overview: which method is best on each dataset, and how much of each dataset's grid is there.

views.overview = {
  title: "Overview",
  fields() {
    const main = cells.filter((cell) => cell.isMain);
    return [
      FIELDS.metric(cells),
      {
        name: "length",
        label: "Code length",
        kind: "select",
        usual: nearest(bitsOf(main), 32),
        options: bitsOf(main).map((bits) => [bits, `${bits} bits`]),
      },
    ];
  },
  body(chosen) {
    const rows = data.data
      .flatMap((block) => ["unsupervised", "supervised"].map((kind) => bestOf(block, kind, chosen)))
      .filter(Boolean);
    const place = (k, key, label) => [
      {
        key,
        label,
        isText: true,
        value: (row) => row.cells[k]?.line.label ?? "",
        node: (row) => (row.cells[k] ? lineLink(row.cells[k].line) : "–"),
      },
      {
        key: key + "-value",
        label: `${key} ${chosen.metric}`,
        value: (row) => row.cells[k]?.value ?? null,
        text: (row) => shown(row.cells[k]?.value ?? null),
        cells: [
          [`${key} low`, (row) => row.cells[k]?.low ?? null],
          [`${key} high`, (row) => row.cells[k]?.high ?? null],
        ],
      },
    ];
    const columns = [
      {
        key: "data",
        label: "Dataset and features",
        isText: true,
        value: (row) => row.block.name,
        node: (row) => {
          const groups = groupsOf(row.kind).map((group) => ["group", group]);
          const filters = [["data", row.block.name], ["metric", chosen.metric], ...groups];
          return h("a", {href: link("leaderboard", filters)}, row.block.name);
        },
      },
      {key: "kind", label: "Methods", isText: true, value: (row) => row.kind},
      ...place(0, "best", "Best"),
      ...place(1, "second", "Second"),
      {
        key: "ties",
        label: "Could ties swap the two?",
        isText: true,
        value: swapped,
        node: (row) => h("span", {class: swapped(row) === "yes" ? "open" : ""}, swapped(row)),
      },
    ];
    return [
      h(
        "section",
        {"aria-labelledby": "best"},
        h("h2", {id: "best"}, `Best at ${chosen.length} bits`),
        rows.length
          ? h(
              "div",
              {class: "quiet"},
              table({
                name: "best",
                caption: `Best methods in ${chosen.metric} at ${chosen.length} bits`,
                columns,
                rows,
                keyOf: (row) => `${row.block.name} ${row.kind}`,
              }),
            )
          : nothing(),
      ),
      h(
        "section",
        {"aria-labelledby": "grids"},
        h("h2", {id: "grids"}, "Datasets, and how much of each grid is there"),
        h("div", {class: "cards"}, data.data.map(gridCard)),
      ),
    ];
  },
};

const swapped = (row) => (row.cells[1] ? swappable(...row.cells) : "–");
const groupsOf = (kind) =>
  data.groups.filter((group) => group !== "baseline" && (group === "unsupervised") === (kind === "unsupervised"));

function bestOf(block, kind, chosen) {
  const found = block.cells.filter(
    (cell) =>
      cell.isMain &&
      cell.metric.name === chosen.metric &&
      cell.bits === +chosen.length &&
      cell.value !== null &&
      groupsOf(kind).includes(cell.line.group),
  );
  if (!found.length) return null;
  found.sort((a, b) => (isBetter(a.metric, a.value, b.value) ? -1 : isBetter(a.metric, b.value, a.value) ? 1 : 0));
  return {block, kind, cells: found.slice(0, 2)};
}

/** Show a dataset: what it is, and how many lines have values in each metric at each length. */
function gridCard(block) {
  const [metrics, lengths, lines] = [metricsOf(block.cells), bitsOf(block.cells), linesOf(block.cells)];
  const numbers = new Map();
  for (const cell of block.cells)
    numbers.set(cell.metric.name + " " + cell.bits, (numbers.get(cell.metric.name + " " + cell.bits) ?? 0) + 1);
  const box = (metric, bits) => {
    const n = numbers.get(metric.name + " " + bits) ?? 0;
    return h(
      "td",
      {class: "number", style: {"--share": (n / lines.length).toFixed(2)}, title: `${n} of ${lines.length} lines`},
      n || "–",
    );
  };
  const seeds = bitsOf(block.cells.map((cell) => ({bits: cell.nSeeds})));
  return h(
    "article",
    {class: "card"},
    h("h3", {}, h("a", {href: link("leaderboard", {data: block.name})}, block.name)),
    block.summary && h("p", {}, block.summary),
    h(
      "dl",
      {},
      Object.entries(block.about).map(([key, text]) => [h("dt", {}, key), h("dd", {}, text)]),
      h("dt", {}, "queries"),
      h(
        "dd",
        {},
        block.n_queries.toLocaleString("en") +
          (block.n_undefined ? `, ${block.n_undefined} without relevant items` : ""),
      ),
      h("dt", {}, "methods"),
      h(
        "dd",
        {},
        `${unique(lines.map((line) => line.method)).length}, ${count(lines.length, "setting")}, `,
        `${seeds.join(" or ")} ${seeds.join() === "1" ? "seed" : "seeds"}`,
      ),
      h("dt", {}, "fingerprint"),
      h("dd", {}, h("code", {}, block.fingerprint)),
    ),
    h(
      "div",
      {class: "scroll", tabindex: 0, role: "region", "aria-label": `Grid of ${block.name}`},
      h(
        "table",
        {"data-test": "grid", class: "grid"},
        h("caption", {}, `Lines with results, of ${lines.length}`),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", {scope: "col"}, "Metric"),
            lengths.map((bits) => h("th", {scope: "col", class: "number"}, bits)),
          ),
        ),
        h(
          "tbody",
          {},
          metrics.map((metric) =>
            h(
              "tr",
              {},
              h("th", {scope: "row"}, metric.name),
              lengths.map((bits) => box(metric, bits)),
            ),
          ),
        ),
      ),
    ),
  );
}
