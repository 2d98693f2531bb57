// Changes against another commit; then the page itself: which view is drawn, when, and in which theme.

if (data.changes) {
  views.changes = {
    title: "Changes",
    fields: () => [
      FIELDS.allOr("status", "Rows", ["changed", "not comparable", "new", "gone"]),
      FIELDS.allOr("metric", "Metric", unique(data.changes.metric.of).sort()),
      FIELDS.text(),
    ],
    body(chosen) {
      const c = data.changes;
      const names = ["status", "data", "label", "bits", "seed", "metric", "old", "new", "ties", "p", "other"];
      const words = chosen.text.toLowerCase().split(/\s+/).filter(Boolean);
      const rows = c.bits
        .map((_, i) => Object.fromEntries(names.map((name) => [name, at(c[name], i)])))
        .filter(
          (row) =>
            (!chosen.status || row.status === chosen.status) &&
            (!chosen.metric || row.metric === chosen.metric) &&
            words.every((word) => row.label.toLowerCase().includes(word)),
        );
      const millionths = (key, label) => ({
        key,
        label,
        value: (row) => number(row[key]),
        text: (row) => shown(number(row[key]), 6),
      });
      const change = (row) =>
        row.status !== "changed" || row.old === null || row.new === null ? null : number(row.new - row.old);
      const columns = [
        {key: "status", label: "Row", isText: true, value: (row) => row.status},
        {key: "data", label: "Dataset and features", isText: true, value: (row) => row.data},
        {key: "label", label: "Method", isText: true, value: (row) => row.label, node: (row) => named(row.label)},
        {key: "metric", label: "Metric", isText: true, value: (row) => row.metric},
        {key: "bits", label: "Bits", value: (row) => row.bits},
        {key: "seed", label: "Seed", value: (row) => row.seed},
        millionths("old", "Old"),
        millionths("new", "New"),
        {
          key: "change",
          label: "Change",
          value: change,
          text: (row) => (change(row) > 0 ? "+" : "") + shown(change(row), 6),
        },
        {key: "ties", label: "Tie range", isText: true, value: (row) => row.ties},
        {key: "p", label: "p", value: (row) => number(row.p), text: (row) => shown(number(row.p))},
        {key: "other", label: "Why not comparable", isText: true, value: (row) => row.other},
      ];
      return [
        h("p", {}, h("strong", {}, c.title), `: ${c.summary}`),
        rows.length
          ? table({name: "changes", caption: c.title, columns, rows, isLinked: true})
          : c.bits.length
            ? nothing("There is no such row.")
            : null,
        c.notes && h("p", {class: "muted"}, c.notes),
      ];
    },
  };
}

const ORDER = ["overview", "leaderboard", "plots", "methods", "compare", "queries", "changes", "rows"];
let fields = [];
let out = null;

/** Draw what is below the filters anew. */
function update() {
  const chosen = choose(fields);
  out.replaceChildren(...views[state.view].body(chosen).flat(Infinity).filter(Boolean));
  tip(null);
}

/** Draw the view that the link names: only this one, from its filters on. */
function draw() {
  const main = $("#view");
  readLink();
  const view = views[state.view];
  main.dataset.ready = "false";
  main.dataset.view = state.view;
  fields = view.fields();
  out = h("div", {class: "out"});
  main.replaceChildren(h("h1", {}, view.title), filters(fields), out);
  update();
  document.title = `${view.title} – ${data.title}`;
  for (const anchor of document.querySelectorAll("nav a")) {
    const isHere = anchor.dataset.nav === (state.view === "method" ? "methods" : state.view);
    if (isHere) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  main.dataset.ready = "true";
}

$("nav ul").append(
  ...ORDER.filter((name) => views[name]).map((name) =>
    h("li", {}, h("a", {href: "#" + name, "data-nav": name}, views[name].title)),
  ),
);
$(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  $("#view").focus();
});
$("#theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  tell(`${root.dataset.theme} colours`);
});
addEventListener("hashchange", () => {
  draw();
  scrollTo(0, 0);
  tell(views[state.view].title);
});
let redrawing = 0;
addEventListener("resize", () => {
  // a plot fits the room there is
  clearTimeout(redrawing);
  if (state.view === "plots") redrawing = setTimeout(update, 150);
});
addEventListener("keydown", (event) => {
  if (event.key === "Escape") tip(null);
});
draw();
$("#view").getBoundingClientRect(); // lays out, so that the time below is that until it can be seen
performance.measure("hashbench:start", {start: scriptStart, end: performance.now()});
