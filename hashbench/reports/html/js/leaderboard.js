// The leaderboard: methods by their scores at each code length, each with its tie range, spread and the papers' values.

const isRival = (cell) => cell.line.group !== "baseline" && cell.value !== null;

/** Say whether a cell is the best of its column, or a shuffle may reverse both; ``rivals`` come with the best first. */
function marksOf(cell, rivals) {
  const firsts = rivals.filter((rival) => rival.value === rivals[0].value);
  const isBest = firsts.includes(cell);
  return {isBest, isOpen: !isBest && firsts.some((first) => ties(first, cell) === "open")};
}

/** Say in sentences which two methods come first, whether seeds show a difference, and what a shuffle could do. */
function verdict([first, second], bits) {
  if (!first) return "";
  const told = (cell) => [h("strong", {}, cell.line.label), ` (${shown(cell.value)}; ${range(cell)})`];
  const answer = second && ties(first, second);
  return h(
    "p",
    {"data-test": "verdict", class: answer === "open" ? "verdict open" : "verdict"},
    ...[`At ${bits} bits the first is `, told(first)],
    second
      ? [", then ", told(second), ". ", comparisonOf(first, second), " ", h("em", {}, data.shuffle.about[answer])]
      : "; there is no other.",
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
const gapText = (cell, paper) => `${paper.value} (${signed(less(cell.value, +paper.value), 3)})`;
const paperText = (cell) => unique(cell.papers.map((paper) => gapText(cell, paper))).join(", ");

function scoreText(cell, marks) {
  if (!cell) return "–";
  const worst = cell.low !== null && cell.low < cell.high && `[${shown(cell.low)}, ${shown(cell.high)}]`;
  const paper = cell.papers.length > 0 && `paper ${paperText(cell)}`;
  const value = shown(cell.value) + (marks.isOpen ? "†" : "");
  return [value, spreadText(cell) || "1 seed", worst, paper].filter(Boolean).join(" ");
}

function scoreNode(cell, scale, marks) {
  if (!cell) return "–";
  const told = ({source, verdict, differs, value}) =>
    `${value} by ${source}: ${data.verdicts[verdict]}${differs ? `. The set-up differs: ${differs}` : ""}`;
  const [paper, ...others] = cell.papers;
  const more = others.length ? ` and ${others.length} more` : "";
  const title = cell.papers.map(told).join("\n");
  const papers = paper && h("span", {class: "paper", title}, `paper ${gapText(cell, paper)}${more}`);
  const dagger = marks.isOpen && h("abbr", {title: "a shuffle of the database may reverse it and the best"}, "†");
  const tipped = {"aria-describedby": "tip", ...tipping([...numbersOf(cell), ...originOf(cell)])};
  return h(
    "div",
    {class: "score"},
    h("span", {class: "value", ...tipped}, shown(cell.value), dagger),
    h("span", {class: "spread"}, spreadText(cell) || "1 seed"),
    tieBar(cell, scale),
    papers,
  );
}

/** Show a method by its name, its mark, and its settings on demand. */
function shortName(line) {
  const [name, settings] = line.label.split(/ ((?:\w+=|\(version ).*)/s); // the name of users' own codes may have blanks
  const told = settings && [`settings of ${name}`, ...settings.split(/ (?=\w+=)/)];
  const button = {type: "button", class: "settings", "aria-describedby": "tip", ...tipping(told)};
  return [
    s("svg", {class: "sign", viewBox: "-6 -6 12 12", "aria-hidden": "true"}, mark(line, 0, 0)),
    h("a", {href: link("method", {method: line.method})}, h("span", {class: "name"}, name)),
    settings && h("button", button, "settings"),
  ];
}

function paperLinks({venue, url, code}) {
  const away = (href, text) => (href ? h("a", {href, rel: "noreferrer"}, text) : text);
  return [venue && away(url, venue), venue && code && ", ", code && away(code, "code")];
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
    const [metric, lengths, scale] = [some[0].metric, bitsOf(some), scaleOf(some)];
    const rivalsAt = (bits) => some.filter((cell) => cell.bits === bits && isRival(cell)).sort(bestFirst);
    const rows = linesOf(some).map((line) => ({line, at: {}}));
    const rowOf = new Map(rows.map((row) => [row.line, row]));
    for (const cell of some) rowOf.get(cell.line).at[cell.bits] = cell;
    const scores = lengths.map((bits) => {
      const rivals = rivalsAt(bits);
      const marks = (row) => (row.at[bits] ? marksOf(row.at[bits], rivals) : {});
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
    let inRank = []; // at the length that is sorted by, or the usual one
    const judge = (key) => {
      const bits = lengths.find((length) => "b" + length === key) ?? nearest(lengths, 32);
      inRank = rivalsAt(bits);
      sentence.replaceChildren(verdict(inRank, bits));
    };
    judge(state.params.get("sort"));
    const rankOf = ({line}) => {
      const own = inRank.find((cell) => cell.line === line);
      return own ? 1 + inRank.findIndex((cell) => cell.value === own.value) : null;
    };
    const method = {...COLUMNS.link, node: ({line}) => (chosen.variants ? lineLink(line) : shortName(line))};
    const paperOf = (row) => data.methods[row.line.method];
    const about = [
      ...[numeric("rank", "Rank", rankOf), method, textual("group", "Group", (row) => groupName(row.line))],
      numeric("year", "Year", (row) => paperOf(row).year),
      textual("paper", "Paper", (row) => paperOf(row).venue ?? "", {node: (row) => paperLinks(paperOf(row))}),
    ];
    const papers = some.flatMap((cell) => cell.papers);
    const list = unique(papers.map(({source, differs}) => source + (differs ? `: ${differs}` : "")));
    const n = metric.name.endsWith(":skip") ? "some" : grouped(block.n_queries - block.n_undefined); // each line its own
    const scored = `${n} of ${count(block.n_queries, "query", "queries")}`;
    return [
      sentence,
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
        sort: {key: usual, desc: !metric.is_error},
      }),
      fixed("scores"),
      list.length > 0 && fixed("differing", {list: list.map((text) => h("li", {}, text))}),
    ];
  },
};
