// The leaderboard: methods by their scores at each code length, each with its tie range, spread and the papers' values.

const ABOUT_TIES = {
  "every order": "Their ranges do not meet: no order of ties reverses the two.",
  luck: "They are apart under luck: a random order of ties is not expected to reverse the two; an order that depends on the classes might.",
  open: "They are not told apart by luck: a random order of ties may reverse the two.",
  unknown: "Whether luck with ties could reverse the two is unknown: a row is older than the column tie_sd.",
};
const isRival = (cell) => cell.line.group !== "baseline" && cell.value !== null;

/** Say which cell of each column is the best, baselines aside, and which luck with ties does not tell from it. */
function compared(some) {
  const keyOf = (cell) => cell.metric.name + " " + cell.bits;
  const best = new Map(); // cells of one value
  for (const cell of some.filter(isRival).sort(bestFirst)) {
    const firsts = best.get(keyOf(cell)) ?? [];
    if (!firsts.length || firsts[0].value === cell.value) best.set(keyOf(cell), [...firsts, cell]);
  }
  return (cell) => {
    const firsts = best.get(keyOf(cell)) ?? [];
    const isBest = firsts.includes(cell);
    return {isBest, isOpen: !isBest && firsts.some((first) => ties(first, cell) === "open")};
  };
}

/** Say in a sentence which two methods come first, and what ties leave open between them. */
function verdict(some, bits) {
  const [first, second] = some.filter((cell) => cell.bits === bits && isRival(cell)).sort(bestFirst);
  if (!first) return "";
  const told = (cell) => [h("strong", {}, cell.line.label), ` (${shown(cell.value)}; ${range(cell)})`];
  const answer = second && ties(first, second);
  return h(
    "p",
    {"data-test": "verdict", class: answer === "open" ? "verdict open" : "verdict"},
    ...[`At ${bits} bits the first is `, told(first)],
    second ? [", then ", told(second), ". ", h("em", {}, ABOUT_TIES[answer])] : "; there is no other.",
  );
}

function scaleOf(some) {
  const rivals = some.filter(isRival);
  const ends = (rivals.length ? rivals : some).flatMap((cell) => [cell.low, cell.high, cell.value]).filter(isThere);
  return ends.length ? [Math.min(...ends), Math.max(...ends)] : [0, 1];
}

function tieBar(cell, [from, to]) {
  if (cell.low === null || cell.low < from || cell.high > to) return null; // a baseline off the scale of the others
  const place = (value) => 100 * (to > from ? (value - from) / (to - from) : 0.5);
  const [left, width] = [place(cell.low) + "%", Math.max(place(cell.high) - place(cell.low), 0.8) + "%"];
  return h(
    "span",
    {class: "ties", title: range(cell), role: "img", "aria-label": range(cell)},
    h("i", {style: {left, width}}),
    h("b", {style: {left: place(cell.value) + "%"}}),
  );
}

const spreadText = (cell) => (cell.n_rows > 1 && cell.spread !== null ? `± ${shown(cell.spread)}` : "");
const paperText = (cell) => unique(cell.papers.map((paper) => `${paper.value} ${MARKS[paper.verdict]}`)).join(", ");

function scoreText(cell, marks) {
  if (!cell) return "–";
  const paper = paperText(cell) && `(paper ${paperText(cell)})`;
  return [shown(cell.value) + (marks.isOpen ? "†" : ""), spreadText(cell), paper].filter(Boolean).join(" ");
}

function scoreNode(cell, scale, marks) {
  if (!cell) return "–";
  const told = ({source, verdict, differs}) =>
    `${source}: ${VERDICTS[verdict]}${differs ? `. The set-up differs: ${differs}` : ""}`;
  const papers = unique(cell.papers.map((paper) => paper.value)).map((value) => {
    const same = cell.papers.filter((paper) => paper.value === value);
    const [{verdict}] = same;
    const aloud = h("span", {class: "hidden"}, ` (${verdict})`);
    return h("span", {class: "paper", title: same.map(told).join("\n")}, `paper ${value} ${MARKS[verdict]}`, aloud);
  });
  const dagger = marks.isOpen && h("abbr", {title: "not told apart from the best by luck with ties"}, "†");
  return h(
    "div",
    {class: "score"},
    h("span", {class: "value"}, shown(cell.value), dagger),
    h("span", {class: "spread"}, spreadText(cell)),
    tieBar(cell, scale),
    papers,
  );
}

views.leaderboard = {
  fields() {
    const block = blockOf.get(choose([FIELDS.data()]).data);
    const {metric} = choose([FIELDS.metric(block.cells)]);
    const some = block.cells.filter((cell) => cell.metric.name === metric);
    const checked = [FIELDS.group(some), FIELDS.supervision(some), FIELDS.bits(some), FIELDS.variants()];
    return [FIELDS.data(), FIELDS.metric(block.cells), FIELDS.text(), ...checked];
  },
  body(chosen) {
    const block = blockOf.get(chosen.data);
    const some = filtered(block.cells, chosen);
    if (!some.length) return [nothing()];
    const [metric, lengths, scale, marksOf] = [some[0].metric, bitsOf(some), scaleOf(some), compared(some)];
    const rows = linesOf(some).map((line) => ({line, at: {}}));
    const rowOf = new Map(rows.map((row) => [row.line, row]));
    for (const cell of some) rowOf.get(cell.line).at[cell.bits] = cell;
    const scores = lengths.map((bits) => {
      const marks = (row) => (row.at[bits] ? marksOf(row.at[bits]) : {});
      const papers = (row) => row.at[bits]?.papers.map((paper) => paper.value).join(" ");
      return numeric("b" + bits, `${bits} bits`, (row) => row.at[bits]?.value, 4, {
        node: (row) => scoreNode(row.at[bits], scale, marks(row)),
        text: (row) => scoreText(row.at[bits], marks(row)),
        cellClass: (row) => (marks(row).isBest ? "best" : ""),
        cells: [
          ...["low", "high", "spread"].map((key) => [`${bits} bits ${key}`, (row) => row.at[bits]?.[key]]),
          [`${bits} bits paper`, papers],
        ],
      });
    });
    const usual = "b" + nearest(lengths, 32);
    const sentence = h("div", {});
    const judge = (key) => {
      const bits = lengths.find((length) => "b" + length === key) ?? nearest(lengths, 32);
      sentence.replaceChildren(verdict(some, bits));
    };
    judge(state.params.get("sort"));
    const papers = some.flatMap((cell) => cell.papers);
    const list = unique(papers.map(({source, differs}) => source + (differs ? `: ${differs}` : "")));
    const scored = `${grouped(block.n_queries - block.n_undefined)} of ${count(block.n_queries, "query", "queries")}`;
    return [
      sentence,
      table({
        name: "leaderboard",
        caption: `${metric.name} on ${block.name}: ${scored} scored, data ${block.fingerprint}`,
        columns: [COLUMNS.link, textual("group", "Group", (row) => groupName(row.line)), ...scores],
        rows,
        isMatrix: true,
        isLinked: true,
        onSort: (order) => judge(order.key),
        keyOf: (row) => row.line.label,
        sort: {key: usual, desc: !metric.is_error},
      }),
      fixed("scores"),
      list.length > 0 && fixed("differing", {list: list.map((text) => h("li", {}, text))}),
    ];
  },
};
