// Tables: sorted by their heads, drawn in parts, taken along as CSV, LaTeX and Markdown.

const FIRST_ROWS = 200;
const MORE_ROWS = 1000; // at a time: browsers lay out some ten thousand cells in a second

/**
 * Make a table. A column is {key, label, isText, value(row), node(row)?, text(row)?, cells?, cellClass?}: `value` sorts
 * and goes into CSV, `text` into LaTeX and Markdown, `node` is what is seen; `cells` are more columns of the CSV,
 * [[label, value(row)], ...]. With `isLinked` the permalink keeps the order.
 */
function table({name, caption, columns, rows, keyOf, sort = null, isLinked = false, onSort = null}) {
  let order =
    isLinked && columns.some((column) => column.key === state.params.get("sort"))
      ? {key: state.params.get("sort"), desc: state.params.get("desc") === "1"}
      : sort;
  let left = []; // rows still to be drawn, in order
  const head = h(
    "tr",
    {},
    columns.map((column) =>
      h(
        "th",
        {scope: "col", class: kindOf(column)},
        h("button", {type: "button", "data-sort": column.key, onclick: () => sortBy(column)}, column.label),
      ),
    ),
  );
  const body = h("tbody");
  const more = h("button", {type: "button", "data-more": true, onclick: () => addRows(MORE_ROWS)});
  const copied = h("div");
  const element = h("table", {"data-test": name}, h("caption", {}, caption), h("thead", {}, head), body);

  function sortBy(column) {
    order = {key: column.key, desc: order?.key === column.key ? !order.desc : !column.isText};
    if (isLinked) {
      state.params.set("sort", order.key);
      if (order.desc) state.params.set("desc", "1");
      else state.params.delete("desc");
      keepLink();
    }
    drawRows();
    onSort?.(order);
    tell(`Sorted by ${column.label}, ${order.desc ? "descending" : "ascending"}.`);
  }

  function inOrder() {
    const column = columns.find((one) => one.key === order?.key);
    if (!column) return rows;
    const sign = order.desc ? -1 : 1;
    const isNone = (value) => value === null || value === undefined || value === "";
    return rows
      .map((row) => [column.value(row), row])
      .sort(([a], [b]) => (isNone(a) || isNone(b) ? isNone(a) - isNone(b) : sign * (a < b ? -1 : a > b ? 1 : 0)))
      .map(([, row]) => row);
  }

  function drawRows() {
    [...head.children].forEach((th, i) =>
      th.setAttribute("aria-sort", columns[i].key === order?.key ? (order.desc ? "descending" : "ascending") : "none"),
    );
    left = inOrder();
    body.replaceChildren();
    addRows(FIRST_ROWS);
  }

  function addRows(n) {
    body.append(
      ...left.slice(0, n).map((row) =>
        h(
          "tr",
          {"data-key": keyOf?.(row), "data-group": row.line?.group || null},
          columns.map((column, i) => {
            const inside = column.node ? column.node(row) : textOf(column, row);
            return i === 0 && column.isText
              ? h("th", {scope: "row"}, inside)
              : h(
                  "td",
                  {
                    class: [kindOf(column), column.cellClass?.(row) ?? ""].join(" ").trim(),
                    "data-sort-value": column.isText ? null : column.value(row),
                  },
                  inside,
                );
          }),
        ),
      ),
    );
    left = left.slice(n);
    more.hidden = !left.length;
    more.textContent = `Show ${grouped(Math.min(MORE_ROWS, left.length))} more of ${grouped(rows.length)} rows`;
  }

  const taken = {
    csv: () => save(`${name}.csv`, csvOf(columns, inOrder())),
    latex: () => copy(latexOf(columns, inOrder()), "LaTeX", copied),
    markdown: () => copy(markdownOf(columns, inOrder()), "Markdown", copied),
  };
  const buttons = Object.entries({csv: "Download CSV", latex: "Copy LaTeX", markdown: "Copy Markdown"}).map(
    ([kind, text]) => h("button", {type: "button", "data-copy": kind, onclick: taken[kind]}, text),
  );
  drawRows();
  return h(
    "div",
    {class: "tabled"},
    h("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": caption}, element),
    h("div", {class: "tools"}, more, h("span", {class: "muted"}, count(rows.length, "row")), buttons),
    copied,
  );
}

const kindOf = (column) => (column.isText ? "" : "number ") + "column-" + column.key;

function textOf(column, row) {
  if (column.text) return column.text(row);
  const value = column.value(row);
  return value === null || value === undefined ? "–" : String(value);
}

function csvOf(columns, rows) {
  const parts = columns.flatMap((column) => [[column.label, column.value], ...(column.cells || [])]);
  const quoted = (value) => {
    const text =
      value === null || value === undefined
        ? ""
        : typeof value === "number" && !Number.isInteger(value)
          ? String(+value.toFixed(6))
          : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [parts.map(([label]) => quoted(label)), ...rows.map((row) => parts.map(([, value]) => quoted(value(row))))]
    .map((line) => line.join(",") + "\n")
    .join("");
}

function markdownOf(columns, rows) {
  const line = (texts) => `| ${texts.map((text) => text.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |\n`;
  return (
    line(columns.map((column) => column.label)) +
    line(columns.map((column) => (column.isText ? "---" : "---:"))) +
    rows.map((row) => line(columns.map((column) => textOf(column, row)))).join("")
  );
}

function latexOf(columns, rows) {
  const escapes = {
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "–": "--",
    "±": "$\\pm$",
    "≈": "$\\approx$",
    "↑": "$\\uparrow$",
    "↓": "$\\downarrow$",
    "†": "$^\\dagger$",
  };
  const special = /[\\~^–±≈↑↓†&%$#_{}]/g;
  const escaped = (text) => text.replace(special, (letter) => escapes[letter] ?? "\\" + letter);
  const line = (texts) => texts.map(escaped).join(" & ") + " \\\\\n";
  const kinds = columns.map((column) => (column.isText ? "l" : "r")).join("");
  return (
    `\\begin{tabular}{${kinds}}\n\\toprule\n${line(columns.map((column) => column.label))}\\midrule\n` +
    rows.map((row) => line(columns.map((column) => textOf(column, row)))).join("") +
    "\\bottomrule\n\\end{tabular}\n"
  );
}

function save(name, text) {
  const url = URL.createObjectURL(new Blob([text], {type: "text/csv"}));
  const anchor = h("a", {href: url, download: name});
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
  tell(`${name} is downloaded.`);
}

/** Copy a text; where the clipboard is denied, as in some browsers for files, show it selected. */
async function copy(text, kind, place) {
  try {
    await navigator.clipboard.writeText(text);
    place.replaceChildren();
    tell(`${kind} is copied.`);
  } catch {
    $("#copied")?.parentElement.remove();
    const area = h("textarea", {id: "copied", rows: 8, readonly: true, spellcheck: "false"});
    area.value = text;
    place.replaceChildren(h("label", {class: "copied"}, `${kind}, to be copied by hand (Ctrl+C):`, area));
    area.focus();
    area.select();
    tell(`The clipboard is denied; the ${kind} is shown and selected.`);
  }
}
