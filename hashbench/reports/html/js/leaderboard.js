// The leaderboard: methods by their scores at each code length, each with its tie range, spread and the papers' values.

/** Say which cell of each column is the best, baselines aside, and which tie ranges meet its. */
function compared(some) {
  const best = new Map(); // cells of one value, by metric and length
  for (const cell of some) {
    if (cell.line.group === "baseline" || cell.value === null) continue;
    const key = cell.metric.name + " " + cell.bits;
    const first = best.get(key)?.[0];
    if (!first || isBetter(cell.metric, cell.value, first.value)) best.set(key, [cell]);
    else if (cell.value === first.value) best.get(key).push(cell);
  }
  return (cell) => {
    const firsts = best.get(cell.metric.name + " " + cell.bits) ?? [];
    const isBest = firsts.includes(cell);
    return {isBest, isOpen: !isBest && firsts.some((first) => overlap(first, cell))};
  };
}

/** Say in a sentence which two methods come first, and whether ties could turn them. */
function verdict(some, bits, where = "") {
  const metric = some[0]?.metric;
  const [first, second] = some
    .filter((cell) => cell.bits === bits && cell.line.group !== "baseline" && cell.value !== null)
    .sort((a, b) => (isBetter(metric, a.value, b.value) ? -1 : isBetter(metric, b.value, a.value) ? 1 : 0));
  if (!first) return null;
  const named = (cell) => [h("strong", {}, cell.line.label), ` (${shown(cell.value)}; ${range(cell)})`];
  if (!second)
    return h("p", {"data-test": "verdict"}, `At ${bits} bits there is one method alone${where}: `, named(first), ".");
  const isOpen = overlap(first, second);
  const isUnknown = first.low === null || second.low === null;
  return h(
    "p",
    {"data-test": "verdict", class: isOpen ? "verdict open" : "verdict"},
    `At ${bits} bits the first${where} is `,
    named(first),
    ", then ",
    named(second),
    ". ",
    isUnknown
      ? "Whether ties could swap the two is not known."
      : isOpen
        ? h("em", {}, "Their tie ranges meet: an evaluator that breaks ties by luck may swap the two.")
        : h("em", {}, "Their tie ranges do not meet: no way of breaking ties swaps the two."),
  );
}

const scaleOf = (some) => {
  const rivals = some.filter((cell) => cell.line.group !== "baseline");
  const ends = (rivals.length ? rivals : some)
    .flatMap((cell) => [cell.low, cell.high, cell.value])
    .filter((value) => value !== null);
  return ends.length ? [Math.min(...ends), Math.max(...ends)] : [0, 1];
};

function tieBar(cell, [from, to]) {
  if (cell.low === null || cell.low < from || cell.high > to) return null; // a baseline off the scale of the others
  const place = (value) => 100 * (to > from ? (value - from) / (to - from) : 0.5);
  return h(
    "span",
    {class: "ties", title: range(cell), role: "img", "aria-label": range(cell)},
    h("i", {style: {left: place(cell.low) + "%", width: Math.max(place(cell.high) - place(cell.low), 0.8) + "%"}}),
    h("b", {style: {left: place(cell.value) + "%"}}),
  );
}

const spreadText = (cell) => (cell.nSeeds > 1 && cell.spread !== null ? `± ${shown(cell.spread)}` : "");
const paperText = (cell) => unique(cell.papers.map((paper) => `${paper.value} ${MARKS[paper.verdict]}`)).join(", ");

function scoreNode(cell, scale, marks) {
  if (!cell) return "–";
  const papers = unique(cell.papers.map((paper) => paper.value)).map((value) => {
    const same = cell.papers.filter((paper) => paper.value === value);
    const title = same
      .map(
        (paper) =>
          `${paper.source}: ${VERDICTS[paper.verdict]}` +
          (paper.differs ? `. The set-up differs: ${paper.differs}` : ""),
      )
      .join("\n");
    return h(
      "span",
      {class: "paper", title},
      `paper ${value} ${MARKS[same[0].verdict]}`,
      h("span", {class: "hidden"}, ` (${same[0].verdict})`),
    );
  });
  return h(
    "div",
    {class: "score"},
    h(
      "span",
      {class: "value"},
      shown(cell.value),
      marks.isOpen ? h("abbr", {title: "its tie range meets that of the best"}, "†") : "",
    ),
    h("span", {class: "spread"}, spreadText(cell)),
    tieBar(cell, scale),
    papers,
  );
}

views.leaderboard = {
  title: "Leaderboard",
  fields() {
    const block = blockOf.get(choose([FIELDS.data()]).data);
    const metric = choose([FIELDS.metric(block.cells)]).metric;
    const some = block.cells.filter((cell) => cell.metric.name === metric);
    return [
      FIELDS.data(),
      FIELDS.metric(block.cells),
      FIELDS.text(),
      FIELDS.group(some),
      FIELDS.supervision(some),
      FIELDS.bits(some),
      FIELDS.variants(),
    ];
  },
  body(chosen) {
    const block = blockOf.get(chosen.data);
    const some = filtered(
      block.cells.filter((cell) => cell.metric.name === chosen.metric),
      chosen,
    );
    if (!some.length) return [nothing()];
    const [metric, lengths, scale, marksOf] = [some[0].metric, bitsOf(some), scaleOf(some), compared(some)];
    const rows = linesOf(some).map((line) => ({
      line,
      at: Object.fromEntries(some.filter((cell) => cell.line === line).map((cell) => [cell.bits, cell])),
    }));
    const usual = nearest(lengths, 32);
    const sentence = h("div");
    const judge = (order) => {
      const bits = lengths.find((length) => "b" + length === order.key) ?? usual;
      sentence.replaceChildren(...[verdict(some, bits)].filter(Boolean));
    };
    const columns = [
      {key: "method", label: "Method", isText: true, value: (row) => row.line.label, node: (row) => lineLink(row.line)},
      {key: "group", label: "Group", isText: true, value: (row) => groupName(row.line)},
      ...lengths.map((bits) => ({
        key: "b" + bits,
        label: `${bits} bits`,
        value: (row) => row.at[bits]?.value ?? null,
        node: (row) => scoreNode(row.at[bits], scale, row.at[bits] ? marksOf(row.at[bits]) : {}),
        text: (row) => scoreText(row.at[bits], row.at[bits] && marksOf(row.at[bits])),
        cellClass: (row) => (row.at[bits] && marksOf(row.at[bits]).isBest ? "best" : ""),
        cells: ["low", "high", "spread"]
          .map((key) => [`${bits} bits ${key}`, (row) => row.at[bits]?.[key] ?? null])
          .concat([[`${bits} bits paper`, (row) => row.at[bits]?.papers.map((paper) => paper.value).join(" ") ?? ""]]),
      })),
    ];
    const asked = state.params.get("sort");
    judge({key: asked ?? "b" + usual});
    return [
      sentence,
      table({
        name: "leaderboard",
        caption: `${metric.name} on ${block.name}`,
        columns,
        rows,
        isLinked: true,
        onSort: judge,
        keyOf: (row) => row.line.label,
        sort: {key: "b" + usual, desc: !metric.is_error},
      }),
      legendOfScores(block, some),
    ];
  },
};

function scoreText(cell, marks) {
  if (!cell) return "–";
  return [
    shown(cell.value) + (marks.isOpen ? "†" : ""),
    spreadText(cell),
    paperText(cell) && `(paper ${paperText(cell)})`,
  ]
    .filter(Boolean)
    .join(" ");
}

function legendOfScores(block, some) {
  const queries = block.n_undefined
    ? `${block.n_queries - block.n_undefined} of ${count(block.n_queries, "query", "queries")}`
    : count(block.n_queries, "query", "queries");
  const differing = unique(
    some.flatMap((cell) => cell.papers.map((paper) => paper.source + (paper.differs ? `: ${paper.differs}` : ""))),
  );
  return [
    h(
      "p",
      {class: "muted"},
      `Means over ${queries} and over seeds (± their standard deviation). `,
      "Bold: the best shown, sanity baselines aside. ",
      "Bar: from the lowest to the highest value that breaking ties could give, on one scale for the whole table; ",
      "its mark is the mean over all orders of tied items. ",
      "†: its tie range meets that of the best, so that breaking ties by luck may swap the two. ",
      "Paper: the published value lies within our spread and tie range (≈), ours above (↑) or below (↓) it. ",
      `Data ${block.fingerprint}.`,
    ),
    differing.length
      ? h(
          "details",
          {class: "muted"},
          h("summary", {}, "What differs from the papers' set-ups"),
          h(
            "ul",
            {},
            differing.map((text) => h("li", {}, text)),
          ),
        )
      : null,
  ];
}

const nothing = (text = "No results are left; choose other filters.") => h("p", {class: "nothing"}, text);
