// Queries one by one: who gains and loses between two methods, A and B, and the tie groups of a query, drawn as boxes.

const ORDERS = {
  loss: ["B loses most first", "change", false],
  gain: ["B gains most first", "change", true],
  low: ["lowest A first", "a", false],
  high: ["highest A first", "a", true],
};
const NO_SCORE = 0xffff;
const isSplit = () => matchMedia("(min-width: 1001px)").matches; // a query is shown beside the table
const loaded = new Map(); // of a folder: data that came by script elements, by file

/** What a script of the report's folder calls. */
window.hashbenchData = (src, content) => loaded.set(src, content);

function load(src) {
  return new Promise((resolve, reject) => {
    const onerror = () => reject(new Error(`${src} is not beside this page.`));
    document.head.append(h("script", {src, onload: () => resolve(loaded.get(src)), onerror}));
  });
}

/** Read the scores of a line: unsigned 16-bit numbers in base64, ten-thousandths. */
function scoresOf(q, label) {
  const bytes = Uint8Array.from(atob(q.scores[q.labels.indexOf(label)]), (letter) => letter.charCodeAt(0));
  const numbers = Array.from({length: bytes.length / 2}, (_, i) => bytes[2 * i] + 256 * bytes[2 * i + 1]);
  return numbers.map((score) => (score === NO_SCORE ? null : score / 1e4));
}

views.queries = {
  more: ["query"],
  fields() {
    const nLabels = (block) => data.queries[block.name]?.labels?.length ?? 0;
    const place = FIELDS.data(data.data.reduce((a, b) => (nLabels(b) > nLabels(a) ? b : a)));
    const {labels} = data.queries[choose([place]).data] ?? {};
    if (!labels) return [place];
    const orders = Object.entries(ORDERS).map(([key, [text]]) => [key, text]);
    return [
      place,
      FIELDS.one("a", "Method A", pairs(labels)),
      FIELDS.one("b", "Method B", pairs(labels), labels[1] ?? labels[0]),
      {...FIELDS.one("order", "Order", orders), resets: ["sort", "desc"]},
    ];
  },
  body(chosen) {
    const q = data.queries[chosen.data];
    if (!q?.labels) return [nothing(q?.note ?? "Queries of folds are not shown. Choose a whole dataset.")];
    if (!q.file || loaded.has(q.file)) return queryList(chosen, loaded.get(q.file) ?? q);
    const place = h("div", {}, h("p", {class: "muted"}, "Loading ..."));
    load(q.file).then(
      (content) => place.replaceChildren(...queryList(chosen, content)),
      (error) => place.replaceChildren(nothing(error.message)),
    );
    return [place];
  },
};

function queryList(chosen, q) {
  const [a, b] = [chosen.a, chosen.b].map((label) => scoresOf(q, label));
  const metric = data.metrics.find((one) => one.name === q.metric);
  const rows = a.map((_, query) => ({query, a: a[query], b: b[query], change: less(b[query], a[query])}));
  const isOpen = new Set(q.chosen);
  const place = h("div", {class: "opened", "aria-live": "polite"});
  const opener = (query) => {
    const onclick = () => {
      place.replaceChildren(queryPage(chosen, q, query));
      place.scrollIntoView({block: "start"});
      state.params.set("query", query);
      keepLink();
    };
    const names = {"data-open": query, "aria-label": `Open the tie groups of query ${query}`};
    return h("button", {type: "button", onclick, ...names}, "Open");
  };
  const columns = [
    numeric("query", "Query", (row) => row.query),
    numeric("a", `A: ${chosen.a}`, (row) => row.a, 4, {head: "A"}),
    numeric("b", `B: ${chosen.b}`, (row) => row.b, 4, {head: "B"}),
    change("change", "B − A", (row) => row.change, () => metric),
    textual("open", "Tie groups", (row) => (isOpen.has(row.query) ? "here" : "–"), {
      node: (row) => (isOpen.has(row.query) ? opener(row.query) : "–"),
    }),
  ];
  const [, key, desc] = ORDERS[chosen.order];
  const made = table({
    name: "queries",
    caption: `${q.metric} of each query on ${chosen.data} at ${q.bits} bits, seed ${q.seed}`,
    columns,
    rows,
    isLinked: true,
    isMatrix: true,
    sort: {key, desc: desc !== (key === "change" && metric.is_error)},
    keyOf: (row) => row.query,
  });
  const asked = Number(state.params.get("query") ?? NaN);
  if (isOpen.has(asked)) place.append(queryPage(chosen, q, asked));
  else if (asked in a) place.append(nothing(`The tie groups of query ${asked} are not in this page.`));
  else if (state.params.has("query")) place.append(lost(`There is no query "${state.params.get("query")}" here.`));
  else if (isSplit() && $("[data-open]", made)) place.append(queryPage(chosen, q, +$("[data-open]", made).dataset.open));
  const split = h("div", {class: "split"}, made, place);
  const alone = q.labels.length > 1 ? "Choose two methods." : "Only one method has scores.";
  if (chosen.a === chosen.b) return [h("p", {}, alone), split];
  const those = (kind) => rows.filter((row) => gainOrLoss(metric, row.change) === kind);
  const [losing, gaining] = [those("loss"), those("gain")];
  const [worst] = losing.sort((x, y) => Math.abs(y.change) - Math.abs(x.change));
  const most = worst && [
    " The largest loss is that of ",
    h("strong", {"data-test": "most"}, `query ${worst.query}`),
    `: ${shown(worst.a)} in A, ${shown(worst.b)} in B.`,
  ];
  const cellOf = (label) =>
    blockOf
      .get(chosen.data)
      .cells.find((cell) => cell.is_main && cell.metric === metric && cell.bits === q.bits && cell.line.label === label);
  return [
    fixed("queries", {
      comparison: comparisonOf(cellOf(chosen.a), cellOf(chosen.b)),
      ...{bits: q.bits, metric: q.metric, a: chosen.a, b: chosen.b, worst: most, table: split},
      lose: count(losing.length, "query loses", "queries lose"),
      gain: count(gaining.length, "query gains", "queries gain"),
      sign: metric.is_error ? "+" : "−",
      chosen: `${count(q.chosen.length, "query", "queries")} of ${grouped(rows.length)}`,
    }),
  ];
}

function queryPage(chosen, q, query) {
  const place = q.chosen.indexOf(query);
  const image = q.images ? picture(q.images, q.images.of_query[query], `image of query ${query}`) : null;
  const figures = Object.entries({A: chosen.a, B: chosen.b}).map(([name, label]) => {
    const flat = q.groups[label]?.[place];
    const head = [h("strong", {}, `${name}: ${label}`), `, ${q.metric} ${shown(scoresOf(q, label)[query])}`];
    const absent = `: its codes of seed ${q.seed} are not in the data folder where this page was made.`;
    return flat ? groupBoxes(q, label, place, flat, head) : h("p", {class: "muted"}, head, absent);
  });
  const page = fixed("query", {title: `Query ${query}`, image, figures: chosen.a === chosen.b ? figures[0] : figures});
  $("#query", page).setAttribute("aria-label", `Query ${query}`);
  return page;
}

function groupBoxes(q, label, place, flat, head) {
  const groups = [];
  for (let k = 0; k < flat.length; k += 3) groups.push({distance: flat[k], size: flat[k + 1], relevant: flat[k + 2]});
  const room = $("#view").clientWidth - (isSplit() ? 560 : 80);
  const nLines = Math.ceil((40 * groups.length) / room); // of boxes
  const roots = groups.reduce((sum, group) => sum + Math.sqrt(group.size), 0);
  const scale = Math.max(0, nLines * room - 22 * groups.length) / roots;
  const box = ({distance, size, relevant}) => {
    const told = `distance ${distance}: ${count(size, "item")}, ${grouped(relevant)} relevant`;
    const numbers = {"data-distance": distance, "data-size": size, "data-relevant": relevant};
    const style = {width: (20 + scale * Math.sqrt(size)).toFixed(1) + "px", "--share": (100 * relevant) / size + "%"};
    const names = {class: "box", role: "listitem", "data-test": "group", "aria-label": told, ...numbers};
    return h("div", {...names, style, ...tipping([label, told])}, h("span", {"aria-hidden": "true"}, distance));
  };
  const columns = [
    numeric("distance", "Distance", (group) => group.distance),
    numeric("size", "Items", (group) => group.size),
    numeric("relevant", "Relevant", (group) => group.relevant),
    numeric("share", "Share", (group) => group.relevant / group.size, 3),
  ];
  const caption = `Tie groups of query ${q.chosen[place]} by ${label}`;
  const asTable = table({name: "ties", caption, columns, rows: groups, isMatrix: true});
  return h(
    "figure",
    {"data-test": "groups", "data-line": label},
    h("figcaption", {}, head),
    h("div", {class: "boxes", role: "list", "aria-label": `${caption}, nearest first`}, groups.map(box)),
    samples(q.images, q.images?.nearest[label]?.[place]),
    h("details", {}, h("summary", {}, "As a table"), asTable),
  );
}

/** Show items of the nearest tie groups, as many as were kept, in no order inside a group. */
function samples(images, nearest) {
  if (!nearest) return null;
  const kinds = [["not relevant", ""], ["relevant", "relevant"]];
  const groups = nearest.map(([distance, ...items]) => {
    const told = `distance ${distance}, ${count(items.length, "item")}, in no order`;
    const pictures = items.map(([item, level]) => picture(images, item, ...kinds[level ? 1 : 0]));
    return h("div", {}, h("span", {class: "muted"}, told), h("div", {}, pictures));
  });
  return h("div", {class: "samples"}, groups);
}

function picture(images, position, label, kind = "") {
  const [width, height] = images.size;
  const place = position % images.n_of_file;
  const [x, y] = [(place % images.n_columns) * width, Math.floor(place / images.n_columns) * height];
  const style = {
    ...{width: width + "px", height: height + "px", "background-position": `-${x}px -${y}px`},
    "background-image": `url("${images.files[Math.floor(position / images.n_of_file)]}")`,
  };
  return h("span", {class: `picture ${kind}`, role: "img", "aria-label": label, title: label, style});
}
