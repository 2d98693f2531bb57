// The overview: the best methods of each dataset as a picture, by what they learn from; below it what each dataset is.

const N_BEST = 5; // methods shown at first of those that learn from one thing
const LEARNS = {none: "items only", affinity: "which items are similar", labels: "labels", unknown: "unknown"};

views.overview = {
  fields() {
    const lengths = bitsOf(cells.filter((cell) => cell.is_main));
    const options = lengths.map((bits) => [bits, `${bits} bits`]);
    const length = FIELDS.one("length", "Code length", options, nearest(lengths, 32));
    return [FIELDS.metric(cells), length, FIELDS.flag("all", "All methods")];
  },
  body({metric, length, all}) {
    const isShown = (cell) => cell.is_main && isRival(cell) && cell.metric.name === metric && cell.bits === +length;
    const ofFolds = foldCells.filter(isShown);
    const whole = namesOf(data.data.filter((block) => !block.is_fold));
    const panels = unique([...whole, ...foldCells.map((cell) => cell.base)]).map((name) => {
      const own = groupsIn(blockOf.get(name)?.cells.filter(isShown) ?? [], all);
      const folds = ofFolds.filter((cell) => cell.base === name);
      const inScope = (scope) => groupsIn(folds.filter((cell) => cell.scope === scope), all);
      const scopes = unique(folds.map((cell) => cell.scope)).map((scope) => [scope, inScope(scope)]);
      return {name, own, scopes};
    });
    const drawn = panels.filter(({own, scopes}) => own.length + scopes.length);
    const rows = drawn.flatMap(({own, scopes}) => [...own, ...scopes.flatMap(([, groups]) => groups)].flatMap(rowsIn));
    if (!rows.length) return [nothing(), fixed("datasets")];
    const columns = [
      ...[COLUMNS.data, textual("learns", "Learns from", (row) => row.learns), COLUMNS.link],
      ...[numeric("value", metric, (row) => row.value, 4, {cellClass: () => "lead"}), COLUMNS.low, COLUMNS.high],
      textual("ties", "With the best, under a shuffle", (row) => row.answer),
    ];
    const numbers = {name: "best", caption: `Best methods in ${metric} at ${length} bits`, columns, rows};
    return [
      fixed("dots", {metric, bits: length}),
      h("div", {class: "cards", "data-test": "dots"}, drawn.map((panel) => panelOf(panel, metric))),
      h("details", {}, h("summary", {}, "The numbers as a table"), table(numbers)),
      fixed("datasets"),
    ];
  },
};

/** Sort cells into groups by what their methods learn from, each with the best first. */
function groupsIn(some, all) {
  const ofKind = ([kind, learns]) => {
    const own = some.filter((cell) => supervisionName(cell.line) === kind).sort(bestFirst);
    return {learns, n: own.length, best: own[0], cells: all ? own : own.slice(0, N_BEST)};
  };
  return Object.entries(LEARNS).map(ofKind).filter((group) => group.n);
}

const rowsIn = ({learns, best, cells}) =>
  cells.map((cell) => ({...cell, learns, answer: cell === best ? "" : ANSWERS[ties(best, cell)]}));

function panelOf({name, own, scopes}, metric) {
  const title = h("h2", {}, h("a", {href: link("leaderboard", {data: name, metric})}, name));
  const folds = scopes.map(([scope, groups]) => [h("h3", {}, scope), dotsOf(groups)]);
  const words = `Classes that training does not see, mean over folds ${scopes[0]?.[1][0].best.folds}`;
  const unseen = folds.length > 0 && h("details", {open: !own.length}, h("summary", {}, words), folds);
  return h("article", {class: "card"}, title, dotsOf(own), unseen);
}

const deviationOf = (cell) => cell.spread ?? 0; // over seeds, or folds

/** Draw a dot per method, the best first, groups on one scale. */
function dotsOf(groups) {
  const endsOf = (cell) => [cell.value - deviationOf(cell), cell.value + deviationOf(cell)];
  const ends = groups.flatMap((group) => group.cells).flatMap(endsOf);
  const [from, to] = [Math.min(...ends), Math.max(...ends)];
  const place = (value) => (to > from ? 100 * (value - from) / (to - from) : 50) + "%";
  const row = (cell, best) => {
    const [left, right] = endsOf(cell).map(place);
    const bar = h("i", {style: {left, width: `calc(${right} - ${left})`, background: cell.line.colour}});
    const dot = s("svg", {viewBox: "-6 -6 12 12", style: {left: place(cell.value)}}, pointAt(cell, 0, 0));
    const dagger = cell !== best && ties(best, cell) === "open" && h("abbr", {title: ANSWERS.open}, "†");
    const value = h("span", {class: "value"}, shown(cell.value), dagger);
    const track = h("span", {class: "track"}, bar, dot);
    return h("li", {class: cell === best ? "best" : ""}, lineLink(cell.line), track, value);
  };
  return groups.map(({learns, n, best, cells}) => [
    h("p", {class: "muted"}, `learn from ${learns}`, n > cells.length && `: the best ${cells.length} of ${n}`),
    h("ol", {class: "dots"}, cells.map((cell) => row(cell, best))),
  ]);
}
