// The overview: the best methods of each dataset as a picture, by what they learn from; below it what each dataset is.

const N_BEST = 5; // methods shown at first of those that learn from one thing
const LEARNS = {none: "items only", affinity: "similarity", labels: "labels", unknown: "unknown"};

views.overview = {
  fields() {
    const lengths = bitsOf(cells.filter((cell) => cell.is_main));
    const options = lengths.map((bits) => [bits, `${bits} bits`]);
    const length = FIELDS.one("length", "Code length", options, nearest(lengths, 32));
    return [FIELDS.metric(cells), length, FIELDS.flag("all", "All methods")];
  },
  body({metric, length, all}) {
    const isRun = (cell) => cell.is_main && isRival(cell) && cell.metric.name === metric;
    const isShown = (cell) => isRun(cell) && cell.bits === +length;
    const ofFolds = foldCells.filter(isShown);
    const whole = namesOf(data.data.filter((block) => !block.is_fold));
    const panels = unique([...whole, ...foldCells.map((cell) => cell.base)]).map((name) => {
      const run = blockOf.get(name)?.cells.filter(isRun) ?? [];
      const own = groupsIn(run.filter(isShown), all, run);
      const folds = ofFolds.filter((cell) => cell.base === name);
      const inScope = (scope) => groupsIn(folds.filter((cell) => cell.scope === scope), all);
      const scopes = unique(folds.map((cell) => cell.scope)).map((scope) => [scope, inScope(scope)]);
      return {name, own, scopes};
    });
    const [drawn, absent] = [panels.filter(isDrawn), namesOf(panels.filter((panel) => !isDrawn(panel)))];
    const groups = drawn.flatMap(({own, scopes}) => [...own, ...scopes.flatMap(([, some]) => some)]);
    if (!groups.length) return [nothing(), fixed("datasets")];
    const learns = Object.values(LEARNS).filter((text) => groups.some((group) => group.learns === text));
    const columns = [
      ...[COLUMNS.data, textual("learns", "Learns from", (row) => row.learns), COLUMNS.link],
      ...[numeric("value", metric, (row) => row.value, 4, {cellClass: () => "lead"}), COLUMNS.low, COLUMNS.high],
      textual("ties", "With the best, under a shuffle", (row) => row.answer),
    ];
    const rows = groups.flatMap(rowsIn);
    const numbers = {name: "best", caption: `Best methods in ${metric} at ${length} bits`, columns, rows};
    return [
      fixed("dots", {metric, bits: length}),
      h("div", {"data-test": "dots"}, drawn.map((panel) => panelOf(panel, metric, learns))),
      absent.length > 0 && h("p", {class: "muted"}, `Without ${metric} at ${length} bits: ${absent.join(", ")}.`),
      h("details", {}, h("summary", {}, "The numbers as a table"), table(numbers)),
      fixed("datasets"),
    ];
  },
};

const isDrawn = ({own, scopes}) => own.length + scopes.length > 0;

/** Sort cells into groups by what their methods learn from, each with the best first. */
function groupsIn(some, all, run = some) {
  const ofKind = ([kind, learns]) => {
    const isOfKind = (cell) => supervisionName(cell.line) === kind;
    const own = some.filter(isOfKind).sort(bestFirst);
    return {learns, n: own.length, nMethods: linesOf(run.filter(isOfKind)).length, cells: all ? own : own.slice(0, N_BEST)};
  };
  return Object.entries(LEARNS).map(ofKind).filter((group) => group.n);
}

const rowsIn = ({learns, cells}) =>
  cells.map((cell) => ({...cell, learns, answer: cell === cells[0] ? "" : ANSWERS[ties(cells[0], cell)]}));

function panelOf({name, own, scopes}, metric, learns) {
  const title = h("h2", {}, h("a", {href: link("leaderboard", {data: name, metric})}, name));
  const scale = scaleOf([...own, ...scopes.flatMap(([, groups]) => groups)].flatMap(({cells}) => cells));
  const folds = scopes.map(([scope, groups]) => [h("h3", {}, scope), dotsOf(groups, learns, scale)]);
  const words = `Classes that training does not see, mean over folds ${scopes[0]?.[1][0].cells[0].folds}`;
  const unseen = folds.length > 0 && h("details", {open: !own.length}, h("summary", {}, words), folds);
  return h("article", {class: "panel"}, title, dotsOf(own, learns, scale), unseen);
}

const endsOf = ({value, spread}) => [value - (spread ?? 0), value + (spread ?? 0)]; // over seeds, or folds

/** Make the scale that all cells share, with ticks at round numbers. */
function scaleOf(some) {
  const ends = some.flatMap(endsOf);
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  const pad = (most - least || Math.abs(most) || 1) / 20;
  const [low, high] = [least - pad, most + pad];
  const [step, textOf] = roundStep((high - low) / 5);
  const place = (value) => (100 * (value - low)) / (high - low) + "%";
  const first = Math.ceil(low / step);
  const ticks = Array.from({length: Math.floor(high / step) - first + 1}, (_, i) => (first + i) * step);
  return {place, ticks: ticks.map((tick) => [place(tick), textOf(tick)])};
}

/** Draw a row per method, the best first, and a column per group, each with the same scale below it. */
function dotsOf(groups, learns, {place, ticks}) {
  const isKnown = ({n, nMethods}) => isWhole(n, nMethods);
  const [best] = groups.every(isKnown) ? groups.map(({cells}) => cells[0]).sort(bestFirst) : [];
  const lines = () => ticks.map(([left]) => h("u", {style: {left}}));
  const row = (cell, group) => {
    const marks = marksOf(cell, group.cells, isKnown(group));
    const [left, right] = endsOf(cell).map(place);
    const bar = cell.spread > 0 && h("i", {style: {left, width: `calc(${right} - ${left})`}});
    return h(
      "li",
      {class: [marks.isBest && "first", cell.value === best?.value && "best"].filter(Boolean).join(" ")},
      ...[sign(cell.line), lineLink(cell.line)],
      h("span", {class: "track", ...pointing(cell)}, lines(), bar, h("b", {style: {left: place(cell.value)}})),
      h("span", {class: "value"}, h("span", {}, shown(cell.value)), signsOf(cell, marks)),
      h("span", {class: "spread"}, spreadText(cell)),
    );
  };
  const about = ({learns, n, nMethods, cells}) => {
    const here = `${count(n, "method", "methods")} run`;
    const run = isWhole(n, nMethods) ? here : `${here}, of ${nMethods} at other lengths`;
    return `learn from ${learns}: ${n > cells.length ? `the best ${cells.length} of ` : ""}${run}`;
  };
  const column = (group) => [
    h("p", {class: "muted"}, about(group)),
    h("ol", {}, group.cells.map((cell) => row(cell, group))),
    h("div", {class: "scale", "aria-hidden": "true"}, h("span", {}, ticks.map(([left, text]) => h("span", {style: {left}}, text)))),
  ];
  const columns = learns.map((text) => groups.filter((group) => group.learns === text).map(column));
  return groups.length > 0 && h("div", {class: "dots"}, columns.map((inside) => h("div", {}, inside)));
}
