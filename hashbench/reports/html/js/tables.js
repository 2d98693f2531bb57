// Tables: sorted by their heads, drawn in parts, taken along as CSV, LaTeX and Markdown.

const FIRST_ROWS = 200;
const MORE_ROWS = 1000; // at a time: browsers lay out some ten thousand cells in a second

/**
 * A column is {key, label, head?, isText, value(row), text(row)?, node(row)?, cells?, cellClass?}: `value` sorts and
 * goes into CSV, `text` into LaTeX and Markdown, `head` and `node` are seen; `cells` are more columns of the CSV,
 * [[label, value], ...].
 */
const textual = (key, label, value, more) => ({key, label, isText: true, value, ...more});
const numeric = (key, label, value, digits, more) => ({
  ...{key, label, value, text: digits && ((row) => shown(value(row), digits))},
  ...more,
});
const change = (key, label, value, metricOf, digits) => {
  const text = (row) => signed(value(row), digits);
  return {key, label, value, text, node: (row) => h("span", {class: gainOrLoss(metricOf(row), value(row))}, text(row))};
};

const COLUMNS = {
  line: textual("line", "Method", (row) => row.line.label, {node: (row) => named(row.line.label)}),
  link: textual("method", "Method", (row) => row.line.label, {node: (row) => lineLink(row.line)}),
  data: textual("data", "Dataset and features", (row) => row.block.name),
  metric: textual("metric", "Metric", (row) => row.metric.name),
  bits: numeric("bits", "Bits", (row) => row.bits),
  seed: numeric("seed", "Seed", (row) => row.seed, undefined, {node: seedOf}),
  value: numeric("value", "Value", (row) => row.value, 6, {cellClass: () => "lead"}),
  low: numeric("low", "Low", (row) => row.low, 6),
  high: numeric("high", "High", (row) => row.high, 6),
};
const SCORES = ["line", "data", "metric", "bits", "value", "low", "high"].map((key) => COLUMNS[key]);

/** A seed; what made its row is told to whom points at it. */
function seedOf(row) {
  if (!row.made?.length) return String(row.seed);
  const told = [`seed ${row.seed}`, ...row.made];
  return h("abbr", {role: "note", "aria-label": told.join(", "), ...tipping(told)}, String(row.seed));
}

/**
 * Make a table of the columns that hold anything; with `isLinked` the link keeps its order. On a phone rows are stacked,
 * but not those of a matrix.
 */
function table({name, caption, columns: all, rows, keyOf, sort, isLinked, onSort, isMatrix, groupOf, isLast = () => false}) {
  const columns = all.filter((column) => !rows.length || rows.some((row) => (column.value(row) ?? "") !== ""));
  const isAsked = isLinked && columns.some((column) => column.key === state.params.get("sort"));
  const unknown = isLinked && !isAsked && state.params.get("sort");
  let order = isAsked ? {key: state.params.get("sort"), desc: state.params.get("desc") === "1"} : sort;
  let left = []; // rows still to be drawn, in order
  const note = unknown && lost(`There is no column "${unknown}" here to sort by.`);
  const made = fixed("table", {note, caption, count: count(rows.length, "row")});
  const [head, body, more] = ["thead tr", "tbody", "[data-more]"].map((selector) => $(selector, made));
  $(".scroll", made).setAttribute("aria-label", caption);
  filled($("table", made), {"data-test": name, "aria-label": caption, class: isMatrix ? "" : "stacked"}, []);
  const button = (column) =>
    h("button", {type: "button", "data-sort": column.key, onclick: () => sortBy(column)}, column.head ?? column.label);
  const headOf = (column) => h("th", {scope: "col", role: "columnheader", class: kindOf(column)}, button(column));
  head.append(...columns.map(headOf));
  const copied = $("[data-slot=copied]", made);
  const taken = {
    csv: () => save(`${name}.csv`, csvOf(columns, inOrder())),
    latex: () => copy(latexOf(columns, inOrder()), "LaTeX", copied),
    markdown: () => copy(markdownOf(columns, inOrder()), "Markdown", copied),
  };
  for (const [kind, take] of Object.entries(taken)) $(`[data-copy=${kind}]`, made).addEventListener("click", take);
  more.addEventListener("click", () => addRows(MORE_ROWS));
  drawRows();
  return made;

  function sortBy(column) {
    order = {key: column.key, desc: order?.key === column.key ? !order.desc : !column.isText};
    if (isLinked) {
      state.params.set("sort", order.key);
      state.params.set("desc", order.desc ? "1" : "0");
      keepLink();
    }
    onSort?.(order);
    drawRows();
    tell(`Sorted by ${column.label}, ${order.desc ? "descending" : "ascending"}.`);
  }

  function inOrder() {
    const sorted = sortedRows();
    return [...sorted.filter((row) => !isLast(row)), ...sorted.filter(isLast)];
  }

  function sortedRows() {
    const column = columns.find((one) => one.key === order?.key);
    if (!column) return rows;
    const sign = order.desc ? -1 : 1;
    const isNone = (value) => value === "" || !isThere(value);
    return rows
      .map((row) => [column.value(row), row])
      .sort(([a], [b]) => (isNone(a) || isNone(b) ? isNone(a) - isNone(b) : sign * (a < b ? -1 : a > b ? 1 : 0)))
      .map(([, row]) => row);
  }

  function drawRows() {
    const sorted = (column) => (column.key !== order?.key ? "none" : order.desc ? "descending" : "ascending");
    [...head.children].forEach((th, i) => th.setAttribute("aria-sort", sorted(columns[i])));
    left = inOrder();
    body.replaceChildren();
    addRows(FIRST_ROWS);
  }

  function addRows(n) {
    const headingOf = (row) =>
      h("tr", {role: "row", class: "heading"}, h("th", {role: "rowheader", colspan: columns.length}, groupOf(row)));
    const drawn = left.slice(0, n).flatMap((row, k, all) => {
      const drawnCells = columns.map((column, i) => cellOf(column, row, i));
      const names = {"data-key": keyOf?.(row), "data-group": row.line?.group || null};
      const isNext = groupOf && groupOf(row) !== (k ? groupOf(all[k - 1]) : null);
      return [isNext && headingOf(row), h("tr", {role: "row", ...names}, drawnCells)];
    });
    body.append(...drawn.filter(Boolean));
    left = left.slice(n);
    more.hidden = !left.length;
    more.textContent = `Show ${grouped(Math.min(MORE_ROWS, left.length))} more of ${grouped(rows.length)} rows`;
  }
}

function cellOf(column, row, i) {
  const inside = column.node ? column.node(row) : textOf(column, row);
  const place = {"aria-colindex": i + 1};
  const isHead = column.isText && (i === 0 || column.key === "method");
  if (isHead) return h("th", {scope: "row", role: "rowheader", ...place}, inside);
  const kind = [kindOf(column), column.cellClass?.(row) ?? ""].join(" ").trim();
  const value = column.isText ? null : column.value(row);
  return h("td", {role: "cell", ...place, class: kind, "data-label": column.label, "data-sort-value": value}, inside);
}

const kindOf = (column) => (column.isText ? "" : "number ") + "column-" + column.key;
const textOf = (column, row) => (column.text ? column.text(row) : String(column.value(row) ?? "–"));

function csvOf(columns, rows) {
  const parts = columns.flatMap((column) => [[column.label, column.value], ...(column.cells ?? [])]);
  const quoted = (value) => {
    const text = String(typeof value === "number" ? +value.toFixed(6) : (value ?? ""));
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [parts.map(([label]) => label), ...rows.map((row) => parts.map(([, value]) => value(row)))];
  return lines.map((line) => line.map(quoted).join(",") + "\n").join("");
}

const labelsOf = (columns) => columns.map((column) => column.label);

/** Give the texts of cells; the value of the best is made bold. */
const textsOf = (columns, rows, escaped, bold) =>
  rows.map((row) =>
    columns.map((column) => {
      const text = escaped(textOf(column, row));
      return column.cellClass?.(row) === "best" ? text.replace(/^[\d.]+/, bold) : text;
    }),
  );

function markdownOf(columns, rows) {
  const escaped = (text) => text.replaceAll("|", "\\|").replaceAll("\n", " ");
  const line = (texts) => `| ${texts.join(" | ")} |\n`;
  const rule = columns.map((column) => (column.isText ? "---" : "---:"));
  const body = textsOf(columns, rows, escaped, "**$&**");
  return [labelsOf(columns).map(escaped), rule, ...body].map(line).join("");
}

function latexOf(columns, rows) {
  const escapes = {
    ...{"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"},
    ...{"–": "--", "−": "$-$", "±": "$\\pm$", "→": "$\\rightarrow$", "†": "$^\\dagger$", "★": "$^\\star$"},
  };
  const escaped = (text) => text.replace(/[\\~^–−±→†★&%$#_{}]/g, (letter) => escapes[letter] ?? "\\" + letter);
  const line = (texts) => texts.join(" & ") + " \\\\\n";
  const kinds = columns.map((column) => (column.isText ? "l" : "r")).join("");
  const head = line(labelsOf(columns).map(escaped));
  const body = textsOf(columns, rows, escaped, "\\textbf{$&}").map(line).join("");
  return `\\begin{tabular}{${kinds}}\n\\toprule\n${head}\\midrule\n${body}\\bottomrule\n\\end{tabular}\n`;
}

function save(name, text) {
  const url = URL.createObjectURL(new Blob([text], {type: "text/csv"}));
  h("a", {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
  tell(`${name} is downloaded.`, true);
}

/** Copy a text; where the clipboard is denied, as in some browsers for files, show it selected. */
async function copy(text, kind, place) {
  try {
    await navigator.clipboard.writeText(text);
    place.replaceChildren();
    tell(`${kind} is copied.`, true);
  } catch {
    $("#copied")?.parentElement.remove();
    const area = h("textarea", {id: "copied", rows: 8, readonly: true, spellcheck: "false"}, text);
    place.replaceChildren(h("label", {class: "copied"}, `${kind}, to copy by hand (Ctrl+C):`, area));
    area.focus();
    area.select();
    tell(`The browser denies the clipboard; the ${kind} is shown and selected.`);
  }
}
