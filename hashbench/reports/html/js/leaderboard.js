// The leaderboard: methods by their scores at each code length, each with its tie range, spread and the papers' values.

/** Say which methods may be the best of all in a column, whether they are shown or not. */
function mayBeBest(block, metric, bits) {
  const main = block.cells.filter((cell) => cell.is_main && cell.metric === metric && isRival(cell));
  const here = main.filter((cell) => cell.bits === bits);
  const all = linesOf(main).length;
  if (!isWhole(here.length, all)) return `Only ${here.length} of ${all} methods were run at ${bits} bits: no best is named.`;
  const best = here.filter((cell) => cell.marks.includes("★")).sort(bestFirst);
  if (!best.length) return "Too few methods could be tested to say which may be the best.";
  const names = best.map((cell) => cell.line.label).join(", ");
  const tested = here.filter((cell) => cell.is_tested);
  return `★ May be the best of ${count(tested.length, "method", "methods")}, with about 95 % confidence, ${data.about_best}: ${names}.`;
}

/** Say in sentences which two methods come first, which may be the best, and what a shuffle could do. */
function verdict([first, second], bits, best) {
  if (!first) return "";
  const told = (cell) => [h("strong", {}, cell.line.label), ` (${shown(cell.value)})`];
  const answer = second && ties(first, second);
  return h(
    "p",
    {"data-test": "verdict", class: answer === "open" ? "verdict open" : "verdict"},
    ...[`At ${bits} bits the first is `, told(first)],
    second
      ? [", then ", told(second), ". ", h("em", {}, data.ties.about[answer]), " ", best]
      : "; there is no other.",
  );
}

/** Measure how far ties reach from the mean, at most. */
const reachOf = (some) =>
  Math.max(0, ...some.filter((cell) => cell.low !== null).map(({low, value, high}) => Math.max(value - low, high - value)));

/** Draw the worst case of ties around the mean, which stands in the middle, where it fits the scale. */
function tieBar(cell, reach) {
  if (cell.low === null || reachOf([cell]) > reach) return null; // a baseline off the scale of the others
  const place = (value) => 50 + 50 * (reach && (value - cell.value) / reach);
  const [left, width] = [place(cell.low) + "%", place(cell.high) - place(cell.low) + "%"];
  const names = {class: "ties", title: range(cell), role: "img", "aria-label": range(cell)};
  return h("span", names, h("i", {style: {left, width}}), h("b", {style: {left: "50%"}}));
}

const spreadText = (cell) => (cell.n_rows > 1 && cell.spread !== null ? `± ${shown(cell.spread)}` : "");
const gapText = (cell, paper) => `${paper.value} (${signed(less(cell.value, +paper.value), 3)})`;
const paperText = (cell) => unique(cell.papers.map((paper) => gapText(cell, paper))).join(", ");

function scoreText(cell, marks) {
  if (!cell) return "–";
  const worst = cell.low !== null && cell.low < cell.high && `[${shown(cell.low)}, ${shown(cell.high)}]`;
  const paper = cell.papers.length > 0 && `paper ${paperText(cell)}`;
  const value = shown(cell.value) + signsText(cell, marks);
  return [value, spreadText(cell) || "1 seed", worst, paper].filter(Boolean).join(" ");
}

function scoreNode(cell, reach, marks) {
  if (!cell) return "–";
  const tipped = {"aria-describedby": "tip", ...tipping([...numbersOf(cell), ...originOf(cell.row)])};
  const [paper, ...others] = unique(cell.papers.map((paper) => paper.value));
  return h(
    "div",
    {class: "score"},
    h("span", {class: "value", ...tipped}, shown(cell.value), signsOf(cell, marks)),
    h("span", {class: "spread"}, spreadText(cell) || "1 seed"),
    tieBar(cell, reach),
    paper && h("span", {class: "paper"}, `paper ${paper}${others.length ? " …" : ""}`),
  );
}

/** Show a method by its name, its mark, and its settings on demand. */
function shortName(line) {
  const [name, settings] = splitLabel(line.label);
  const told = settings && [`settings of ${name}`, ...settings.split(/ (?=\w+=)/)];
  const button = {type: "button", class: "settings", "aria-describedby": "tip", ...tipping(told)};
  return [
    sign(line),
    h("a", {href: link("method", {method: line.method})}, h("span", {class: "name"}, name)),
    settings && h("button", button, "settings"),
  ];
}

function paperLinks({venue, year, url, code}) {
  const away = (href, text, more) => (href ? h("a", {href, rel: "noreferrer", ...more}, text) : h("span", more, text));
  const named = `${year} ${venue}`;
  return [year && away(url, named, {class: "venue", title: named}), year && code && ", ", code && away(code, "code")];
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
    const [metric, lengths, reach] = [some[0].metric, bitsOf(some), reachOf(some.filter(isRival))];
    const rivalsAt = (bits) => some.filter((cell) => cell.bits === bits && isRival(cell)).sort(bestFirst);
    const rows = linesOf(some).map((line) => ({line, at: {}}));
    const rowOf = new Map(rows.map((row) => [row.line, row]));
    for (const cell of some) rowOf.get(cell.line).at[cell.bits] = cell;
    const scores = lengths.map((bits) => {
      const rivals = rivalsAt(bits);
      const isKnown = isWhole(rivals.length, linesOf(some.filter(isRival)).length);
      const marks = (row) => (row.at[bits] ? marksOf(row.at[bits], rivals, isKnown) : {});
      const papers = (row) => row.at[bits]?.papers.map((paper) => paper.value).join(" ");
      return numeric("b" + bits, `${bits} bits`, (row) => row.at[bits]?.value, 4, {
        node: (row) => scoreNode(row.at[bits], reach, marks(row)),
        text: (row) => scoreText(row.at[bits], marks(row)),
        cellClass: (row) => (marks(row).isBest ? "best" : ""),
        cells: [
          ...["low", "high", "spread"].map((key) => [`${bits} bits ${key}`, (row) => row.at[bits]?.[key]]),
          [`${bits} bits paper`, papers],
        ],
      });
    });
    const usual = usualBits(some);
    const sentence = h("div", {});
    let inRank = []; // at the length that is sorted by, or the usual one
    const judge = (key) => {
      const bits = lengths.find((length) => "b" + length === key) ?? usual;
      inRank = rivalsAt(bits);
      sentence.replaceChildren(verdict(inRank, bits, mayBeBest(block, metric, bits)));
    };
    judge(state.params.get("sort"));
    const rankOf = ({line}) => {
      const own = inRank.find((cell) => cell.line === line);
      return own ? 1 + inRank.findIndex((cell) => cell.value === own.value) : null;
    };
    const method = {...COLUMNS.link, node: ({line}) => (chosen.variants ? lineLink(line) : shortName(line))};
    const paperOf = (row) => data.methods[row.line.method];
    const yearAndVenue = (row) => (paperOf(row).year ? `${paperOf(row).year} ${paperOf(row).venue}` : "");
    const about = [
      ...[numeric("rank", "Rank", rankOf), method, textual("group", "Group", (row) => groupName(row.line))],
      textual("paper", "Paper", yearAndVenue, {node: (row) => paperLinks(paperOf(row))}),
    ];
    const papers = some.flatMap((cell) => cell.papers);
    const list = unique(papers.map(({source, differs}) => source + (differs ? `: ${differs}` : "")));
    const n = metric.name.endsWith(":skip") ? "some" : grouped(block.n_queries - block.n_undefined); // each line its own
    const scored = `${n} of ${count(block.n_queries, "query", "queries")}`;
    return [
      sentence,
      fixed("scores", {list: list.map((text) => h("li", {}, text))}),
      table({
        name: "leaderboard",
        caption: `${metric.name} on ${block.name}: ${scored} scored, data ${block.fingerprint}`,
        columns: [...about, ...scores],
        rows,
        isMatrix: true,
        isLinked: true,
        onSort: (order) => judge(order.key),
        isLast: (row) => row.line.group === "baseline",
        keyOf: (row) => row.line.label,
        sort: {key: `b${usual}`, desc: !metric.is_error},
      }),
    ];
  },
};
