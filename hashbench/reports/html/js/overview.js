// The overview: which method is best on each dataset; below it what each dataset is.

views.overview = {
  fields() {
    const lengths = bitsOf(cells.filter((cell) => cell.is_main));
    const options = lengths.map((bits) => [bits, `${bits} bits`]);
    return [FIELDS.metric(cells), FIELDS.one("length", "Code length", options, nearest(lengths, 32))];
  },
  body({metric, length}) {
    const kinds = ["unsupervised", "supervised"];
    const rows = data.data
      .flatMap((block) => kinds.map((kind) => ({block, kind, best: bestOf(block, kind, metric, length)})))
      .filter((row) => row.best.length);
    const toLeaderboard = ({block, kind}) => {
      const groups = groupsOf(kind).map((group) => ["group", group]);
      return h("a", {href: link("leaderboard", [["data", block.name], ["metric", metric], ...groups])}, block.name);
    };
    const place = (k, key, label) => {
      const end = (side) => [`${key} ${side}`, (row) => row.best[k]?.[side]];
      return [
        textual(key, label, (row) => row.best[k]?.line.label ?? "–", {
          node: (row) => (row.best[k] ? lineLink(row.best[k].line) : "–"),
        }),
        numeric(`${key}-value`, `${key} ${metric}`, (row) => row.best[k]?.value, 4, {cells: ["low", "high"].map(end)}),
      ];
    };
    const answer = ({best}) => (best[1] ? ANSWERS[ties(...best)] : "–");
    const columns = [
      textual("data", "Dataset and features", (row) => row.block.name, {node: toLeaderboard}),
      textual("kind", "Methods", (row) => row.kind),
      ...place(0, "best", "Best"),
      ...place(1, "second", "Second"),
      textual("ties", "The two, with ties", answer, {cellClass: (row) => (answer(row) === ANSWERS.open ? "open" : "")}),
    ];
    const keyOf = (row) => `${row.block.name} ${row.kind}`;
    const caption = `Best methods in ${metric} at ${length} bits`;
    return [
      rows.length ? table({name: "best", caption, columns, rows, keyOf}) : nothing(),
      h("h2", {}, "Datasets, and how much of each grid has results"),
      fixed("datasets"),
    ];
  },
};

const groupsOf = (kind) =>
  data.groups.filter((group) => group !== "baseline" && (group === "unsupervised") === (kind === "unsupervised"));

function bestOf(block, kind, metric, length) {
  const isOne = (cell) => cell.is_main && cell.metric.name === metric && cell.bits === +length && cell.value !== null;
  const some = block.cells.filter((cell) => isOne(cell) && groupsOf(kind).includes(cell.line.group));
  return some.sort(bestFirst).slice(0, 2);
}
