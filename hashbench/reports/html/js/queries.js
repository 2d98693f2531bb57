// Queries one by one: who gains and loses between two methods, and the tie groups of a query, drawn as boxes.

const ORDERS = {
  loss: "greatest loss first",
  gain: "greatest gain first",
  low: "lowest score first",
  high: "highest score first",
};
const NO_SCORE = 0xffff;
const loaded = new Map(); // of a folder: data that came by script elements, by file

/** What a script of the report's folder calls. */
window.hashbenchData = (file, content) => loaded.set(file, content);

function load(file) {
  if (loaded.has(file)) return Promise.resolve(loaded.get(file));
  return new Promise((resolve, reject) =>
    document.head.append(
      h("script", {
        src: file,
        onload: () => resolve(loaded.get(file)),
        onerror: () => reject(new Error(`${file} is not beside this page.`)),
      }),
    ),
  );
}

/** Read the scores of a line: unsigned 16-bit numbers in base64, ten-thousandths. */
function scoresOf(q, label) {
  const bytes = Uint8Array.from(atob(q.scores[q.labels.indexOf(label)]), (letter) => letter.charCodeAt(0));
  return Array.from({length: bytes.length / 2}, (_, i) => bytes[2 * i] + 256 * bytes[2 * i + 1]).map((score) =>
    score === NO_SCORE ? null : score / 1e4,
  );
}

views.queries = {
  title: "Queries",
  fields() {
    const place = FIELDS.data();
    const nLabels = (block) => data.queries[block.name]?.labels?.length ?? 0;
    const there = data.data.reduce((a, b) => (nLabels(b) > nLabels(a) ? b : a));
    const fields = [{...place, usual: there.name, resets: ["a", "b", "query", "order", "sort", "desc"]}];
    const q = data.queries[choose(fields).data];
    if (!q?.labels) return fields;
    return [
      ...fields,
      ...twoLines(q.labels.map((label) => lineOf.get(label))),
      {name: "order", label: "Order", kind: "select", options: Object.entries(ORDERS), resets: ["sort", "desc"]},
    ];
  },
  body(chosen) {
    const q = data.queries[chosen.data];
    if (!q?.labels)
      return [
        nothing(
          "Queries are shown of codes and scores in the data folder where the page is made. " +
            (q?.note ?? "Make them with hashbench run, then call hashbench report again."),
        ),
      ];
    if (!q.file || loaded.has(q.file)) return queryList(chosen, q.file ? loaded.get(q.file) : q);
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
  const gain = (i) => (a[i] === null || b[i] === null ? null : b[i] - a[i]);
  const rows = a.map((_, i) => i);
  const order = {
    loss: ["change", metric.is_error],
    gain: ["change", !metric.is_error],
    low: ["a", false],
    high: ["a", true],
  }[chosen.order];
  const place = h("div", {"aria-live": "polite"});
  const isThere = new Set(q.chosen);
  const open = (query) => {
    state.params.set("query", query);
    keepLink();
    place.replaceChildren(queryPage(chosen, q, query));
  };
  const columns = [
    {key: "query", label: "Query", value: (i) => i},
    {key: "a", label: chosen.a, value: (i) => a[i], text: (i) => shown(a[i])},
    {key: "b", label: chosen.b, value: (i) => b[i], text: (i) => shown(b[i])},
    {
      key: "change",
      label: "Gain",
      value: gain,
      text: (i) => (gain(i) > 0 ? "+" : "") + shown(gain(i)),
      node: (i) =>
        h(
          "span",
          {class: gain(i) === 0 ? "" : gain(i) > 0 === !metric.is_error ? "gain" : "loss"},
          (gain(i) > 0 ? "+" : "") + shown(gain(i)),
        ),
    },
    {
      key: "open",
      label: "Tie groups",
      isText: true,
      value: (i) => (isThere.has(i) ? "here" : ""),
      text: () => "",
      node: (i) =>
        isThere.has(i)
          ? h(
              "button",
              {
                type: "button",
                "data-open": i,
                "aria-label": `Open the tie groups of query ${i}`,
                onclick: () => {
                  open(i);
                  place.scrollIntoView({block: "start"});
                },
              },
              "Open",
            )
          : h("span", {class: "muted"}, "–"),
    },
  ];
  const defined = rows.filter((i) => gain(i) !== null);
  const worst = defined.reduce((x, y) => (worse(gain(y), gain(x), metric) ? y : x), defined[0]);
  const n = defined.filter((i) => worse(gain(i), 0, metric)).length;
  const asked = Number(state.params.get("query") ?? NaN);
  if (isThere.has(asked)) place.append(queryPage(chosen, q, asked));
  else if (asked in a) place.append(nothing(`The tie groups of query ${asked} are not in this page.`));
  const missing =
    rows.length > q.chosen.length
      ? ` Of ${q.chosen.length} queries, those that differ most between methods, the tie groups are in this page; ` +
        "make it with --queries N for more, or --output FOLDER."
      : "";
  return [
    chosen.a === chosen.b
      ? h(
          "p",
          {},
          q.labels.length > 1 ? "Choose another method to compare with." : "Of one method alone are there queries.",
        )
      : h(
          "p",
          {},
          `From `,
          h("strong", {}, chosen.a),
          " to ",
          h("strong", {}, chosen.b),
          ` at ${q.bits} bits, ${count(n, "query loses", "queries lose")} ${q.metric} `,
          `and ${defined.filter((i) => worse(0, gain(i), metric)).length} gain it.`,
          n
            ? [
                " Most of all loses ",
                h("strong", {"data-test": "most"}, `query ${worst}`),
                `: ${shown(a[worst])} to ${shown(b[worst])}.`,
              ]
            : null,
          h("span", {class: "muted"}, missing),
        ),
    place,
    h(
      "div",
      {class: "narrow"},
      table({
        name: "queries",
        caption: `${q.metric} of each query on ${chosen.data} at ${q.bits} bits, seed ${q.seed}`,
        columns,
        rows,
        isLinked: true,
        sort: {key: order[0], desc: order[1]},
        keyOf: (i) => i,
      }),
    ),
  ];
}

const worse = (x, y, metric) => isBetter(metric, y, x);

function queryPage(chosen, q, query) {
  const place = q.chosen.indexOf(query);
  const labels = unique([chosen.a, chosen.b]);
  return h(
    "section",
    {id: "query", class: "card", "aria-label": `Query ${query}`},
    h("h2", {}, `Query ${query}`),
    thumbnail(q, query),
    h(
      "p",
      {class: "muted"},
      "Each box is a tie group: the items at one Hamming distance, nearest first. Its width grows with the root of ",
      "its size, the filled part is the share of relevant items. Inside a box there is no order.",
    ),
    labels.map((label) => groupBoxes(q, label, place, query)),
  );
}

function groupBoxes(q, label, place, query) {
  const flat = q.groups[label]?.[place];
  const score = scoresOf(q, label)[query];
  if (!flat)
    return h("p", {class: "muted"}, `The codes of ${label} are not in the data folder where this page was made.`);
  const groups = [];
  for (let k = 0; k < flat.length; k += 3) groups.push({distance: flat[k], size: flat[k + 1], relevant: flat[k + 2]});
  const room = $("#view").clientWidth - 80;
  const nLines = Math.ceil((40 * groups.length) / room); // of boxes
  const scale =
    Math.max(0, nLines * room - 22 * groups.length) / groups.reduce((sum, group) => sum + Math.sqrt(group.size), 0);
  const columns = [
    {key: "distance", label: "Distance", value: (group) => group.distance},
    {key: "size", label: "Items", value: (group) => group.size},
    {key: "relevant", label: "Relevant", value: (group) => group.relevant},
    {
      key: "share",
      label: "Share",
      value: (group) => group.relevant / group.size,
      text: (group) => shown(group.relevant / group.size, 3),
    },
  ];
  return h(
    "figure",
    {"data-test": "groups", "data-line": label},
    h("figcaption", {}, h("strong", {}, label), ` ${q.metric} ${shown(score)}`),
    h(
      "div",
      {class: "boxes", role: "list", "aria-label": `Tie groups of query ${query} by ${label}, nearest first`},
      groups.map((group) => {
        const told = `distance ${group.distance}: ${count(group.size, "item")}, ${grouped(group.relevant)} relevant`;
        return h(
          "div",
          {
            class: "box",
            role: "listitem",
            tabindex: 0,
            "data-test": "group",
            "data-distance": group.distance,
            "data-size": group.size,
            "data-relevant": group.relevant,
            "aria-label": told,
            style: {
              width: (scale * Math.sqrt(group.size)).toFixed(1) + "px",
              "--share": 100 * (group.relevant / group.size) + "%",
            },
            ...tipping([label, told]),
          },
          h("span", {"aria-hidden": "true"}, group.distance),
        );
      }),
    ),
    samples(q, label, place),
    h(
      "details",
      {},
      h("summary", {}, "As a table"),
      table({
        name: "ties",
        caption: `Tie groups of query ${query} by ${label}`,
        columns,
        rows: groups,
        keyOf: (group) => group.distance,
      }),
    ),
  );
}

function thumbnail(q, query) {
  return q.images ? h("p", {}, picture(q.images, q.images.of_query[query], `image of query ${query}`)) : null;
}

/** Show items of the nearest tie groups, as many as were kept, in no order inside a group. */
function samples(q, label, place) {
  const nearest = q.images?.nearest[label]?.[place];
  if (!nearest) return null;
  return h(
    "div",
    {class: "samples"},
    nearest.map(([distance, ...items]) =>
      h(
        "div",
        {},
        h("span", {class: "muted"}, `distance ${distance}, ${count(items.length, "item")} of it, in no order`),
        h(
          "div",
          {},
          items.map(([item, level]) =>
            picture(q.images, item, level ? "relevant" : "not relevant", level ? "relevant" : ""),
          ),
        ),
      ),
    ),
  );
}

function picture(images, position, label, kind = "") {
  const [width, height] = images.size;
  const place = position % images.n_of_file;
  const [x, y] = [(place % images.n_columns) * width, Math.floor(place / images.n_columns) * height];
  return h("span", {
    class: `picture ${kind}`,
    role: "img",
    "aria-label": label,
    title: label,
    style: {
      width: width + "px",
      height: height + "px",
      "background-image": `url("${images.files[Math.floor(position / images.n_of_file)]}")`,
      "background-position": `-${x}px -${y}px`,
    },
  });
}
