// Changes against another commit; then the page itself: which view is drawn, when, and in which theme.

if (data.changes)
  views.changes = {
    fields: () => [
      FIELDS.allOr("status", "Rows", ["changed", "not comparable", "new", "gone"]),
      FIELDS.allOr("metric", "Metric", unique(data.changes.metric.of).sort()),
      FIELDS.text(),
    ],
    body(chosen) {
      const metricOf = (row) => data.metrics.find((metric) => metric.name === row.metric.name) ?? row.metric;
      const all = objectsOf(data.changes, "old", "new", "p", "low", "high").map((row) => ({
        ...row,
        ...{block: {name: row.data}, line: lineOf.get(row.label) ?? {label: row.label}, metric: {name: row.metric}},
      }));
      const groupOf = (row) => `${row.data}, ${row.label}`;
      const rows = filtered(all, chosen).filter((row) => !chosen.status || row.status === chosen.status);
      const difference = (row) => (row.status === "changed" ? less(row.new, row.old) : null);
      const isApart = (row, ...answers) =>
        row.ties && (row.ties === ANSWERS.unknown ? "unknown" : answers.includes(row.ties) ? "apart" : "not apart");
      const interval = (row) => (row.low === null ? "" : `, ${signed(row.low)} to ${signed(row.high)}`);
      const tested = (row) => (row.p === null ? "" : `p ${shown(row.p)}${interval(row)}`);
      const isSame = (row) => row.old === row.new; // only its tie range or deviation changed
      const valueOf = (key, row, name) => isThere(row[key]) && h(isSame(row) ? "span" : name, {}, shown(row[key], 6));
      const value = (key, label, name) =>
        numeric(key, label, (row) => row[key], 6, {node: (row) => valueOf(key, row, name)});
      const columns = [
        ...[COLUMNS.line, COLUMNS.data, COLUMNS.metric, COLUMNS.bits, COLUMNS.seed],
        ...[textual("status", "Row", (row) => row.status), value("old", "Old", "del"), value("new", "New", "ins")],
        {...change("change", "Change", difference, metricOf, 6), cellClass: () => "lead"},
        textual("marks", "Marks", (row) => row.marks),
        textual("seeds", "Seeds that agree", (row) => row.seeds),
        textual("queries", "Queries", tested),
        textual("shuffle", "Shuffle", (row) => isApart(row, ANSWERS.shuffle, ANSWERS["every order"])),
        textual("order", "Worst case", (row) => isApart(row, ANSWERS["every order"])),
        textual("other", "Why not comparable", (row) => row.other),
      ];
      const shownTable = rows.length
        ? table({name: "changes", caption: "Rows that differ", columns, rows, isLinked: true, groupOf})
        : all.length > 0 && nothing("There is no such row.");
      return [fixed("changes"), shownTable];
    },
  };

let fields = [];
let out = null;

/** Draw what is below the filters anew; of a wide table the column that it is sorted by is in sight. */
function update() {
  const parts = [lostParts(fields), views[state.view].body(choose(fields))];
  out.replaceChildren(...parts.flat(Infinity).filter(Boolean));
  tip(null);
  for (const head of out.querySelectorAll("table:not(.stacked) th[aria-sort$=ending]")) {
    const region = head.closest(".scroll");
    const isCut = head.offsetLeft + head.offsetWidth > region.clientWidth;
    if (isCut) region.scrollLeft = head.offsetLeft - ($("tbody th", region)?.offsetWidth ?? 0);
  }
}

/** Draw the view that the link names: only this one, from its filters on. */
function draw() {
  const main = $("#view");
  readLink();
  const view = views[state.view];
  main.dataset.ready = "false";
  main.dataset.view = state.view;
  const tab = $(`nav [data-nav=${state.view === "method" ? "methods" : state.view}]`);
  const title = view.title ?? tab.textContent;
  fields = view.fields();
  out = h("div", {class: "out"});
  main.replaceChildren(h("h1", {}, title), filters(fields), out);
  update();
  document.title = `${title} – ${data.title}`;
  $("nav [aria-current]")?.removeAttribute("aria-current");
  tab.setAttribute("aria-current", "page");
  main.dataset.ready = "true";
}

$(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  $("#view").focus();
});
$("#theme").addEventListener("click", () => {
  const theme = document.documentElement.dataset;
  const isDark = theme.theme ? theme.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  theme.theme = isDark ? "light" : "dark";
  tell(`${theme.theme} colours`);
});
addEventListener("hashchange", () => {
  draw();
  scrollTo(0, 0);
  tell($("h1").textContent);
});
let redrawing = 0;
addEventListener("resize", () => {
  // plots and boxes fit the room there is
  clearTimeout(redrawing);
  if (["plots", "queries"].includes(state.view)) redrawing = setTimeout(update, 150);
});
addEventListener("keydown", (event) => event.key === "Escape" && tip(null));
draw();
$("#view").getBoundingClientRect(); // lays out, so that the time below is that until it can be seen
performance.measure("hashbench:start", {start: scriptStart, end: performance.now()});
