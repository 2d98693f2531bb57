// What all views share: the data, elements that hold text alone, templates, numbers, and the permalink.
"use strict";

const scriptStart = performance.now();
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (selector, within = document) => within.querySelector(selector);
const MILLION = 1e6; // numbers of six decimals travel as whole ones
/** Make an element; texts become text nodes, so that no name is ever read as HTML. */
const h = (name, attributes, ...children) => filled(document.createElement(name), attributes, children);
const s = (name, attributes, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

const isThere = (one) => one !== null && one !== undefined && one !== false;

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [name, text] of Object.entries(value)) element.style.setProperty(name, text);
    else if (isThere(value)) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter(isThere));
  return element;
}

/** Take a copy of a template of the page, with texts and elements put into its slots; its id is "t-" and the name. */
function fixed(name, slots = {}) {
  const copy = document.getElementById("t-" + name).content.cloneNode(true);
  for (const [name, inside] of Object.entries(slots))
    for (const slot of copy.querySelectorAll(`[data-slot=${name}]`)) filled(slot, {}, [inside]);
  return copy;
}

const number = (whole) => (isThere(whole) ? whole / MILLION : null);
const shown = (value, digits = 4) => (isThere(value) ? value.toFixed(digits).replace("-", "−") : "–");
const signed = (value, digits) => (value > 0 ? "+" : "") + shown(value, digits);
const less = (a, b) => (isThere(a) && isThere(b) ? a - b : null);
const grouped = (n) => n.toLocaleString("en");
const count = (n, one, many = one + "s") => `${grouped(n)} ${n === 1 ? one : many}`;
const unique = (values) => [...new Set(values)];
const nearest = (numbers, wanted) => numbers.reduce((a, b) => (Math.abs(b - wanted) < Math.abs(a - wanted) ? b : a));
const rising = (a, b) => a - b;

const range = (cell) =>
  (cell.tie_sd === null ? "shuffle deviation unknown" : `shuffle deviation ${shown(cell.tie_sd, 5)}`) +
  (cell.low === null ? "" : `; worst case ${shown(cell.low)} to ${shown(cell.high)}`);

// ---- what ties leave open between two values: whether ranges meet, and how far a shuffle reaches
const ANSWERS = data.ties.answers;
function ties(a, b) {
  if (a.low !== null && b.low !== null && (a.low > b.high || a.high < b.low)) return "every order";
  if (a.reach === null || b.reach === null) return "unknown";
  return Math.round(Math.abs(a.value - b.value) * MILLION) > a.reach + b.reach ? "shuffle" : "open";
}

const isRival = (cell) => cell.line.group !== "baseline" && cell.value !== null && !cell.marks.includes("¶");

/** Say whether so many of some methods have a value in a column that the best of all may be named. */
const isWhole = (n, nMethods) => 3 * n >= 2 * nMethods;

/** Give the marks of a cell among others, which come with the best first, if that is known: it is it, or may be reversed. */
function marksOf(cell, rivals, isKnown) {
  const firsts = isKnown ? rivals.filter((rival) => rival.value === rivals[0].value) : [];
  const isBest = firsts.includes(cell);
  return {isBest, isOpen: !isBest && firsts.some((first) => ties(first, cell) === "open")};
}

const signsText = (cell, marks) => (marks.isOpen ? "†" : "") + cell.marks;
const signsOf = (cell, marks) => [...signsText(cell, marks)].map((sign) => h("abbr", {title: data.signs[sign]}, sign));
const isBetter = (metric, a, b) => (metric.is_error ? a < b : a > b);
const bestFirst = (a, b) => (a.metric.is_error ? a.value - b.value : b.value - a.value);
const gainOrLoss = (metric, change) => (change ? (isBetter(metric, change, 0) ? "gain" : "loss") : null);

// ---- results: cells (means over seeds) as objects, by block; a column is a list, or what there is `of` and which `at`
const at = (column, i) => (column.of ? column.of[column.at[i]] : column[i]);

/** Turn columns into objects; those named hold whole numbers of millionths. */
function objectsOf(columns, ...inMillionths) {
  const named = Object.entries(columns);
  const valueOf = (key, column, i) => (inMillionths.includes(key) ? number(at(column, i)) : at(column, i));
  const [, first] = named[0];
  return Array.from({length: (first.of ? first.at : first).length}, (_, i) =>
    Object.fromEntries(named.map(([key, column]) => [key, valueOf(key, column, i)])),
  );
}

const cells = objectsOf(data.cells, "value", "tie_sd", "low", "high", "spread");
const blockOf = new Map(data.data.map((block) => [block.name, block]));
const lineOf = new Map(data.lines.map((line) => [line.label, line]));
data.data.forEach((block) => (block.cells = []));
let nRows = 0;
cells.forEach((cell, i) => {
  const [block, metric, line] = [data.data[cell.data], data.metrics[cell.metric], data.lines[cell.line]];
  Object.assign(cell, {i, block, metric, line, papers: [], row: nRows, n_queries: block.n_queries});
  block.cells.push(cell);
  nRows += cell.n_rows;
});
const foldCells = objectsOf(data.folds, "value", "tie_sd", "low", "high", "spread").map((cell) => ({
  ...{...cell, metric: data.metrics[cell.metric], line: data.lines[cell.line], papers: [], is_main: 1, unit: "fold"},
  ...{n_rows: cell.folds.split(",").length, block: {name: `${cell.base}, ${cell.scope}`}},
}));
objectsOf(data.published).forEach((paper) => cells[paper.cell].papers.push(paper));

/** Write a word for a shell. */
const inShell = (word) => (/^[\w.:@=-]+$/.test(word) ? `${word}` : `'${word.replaceAll("'", "'\\''")}'`);

/** Say which command compares the methods of two cells. */
function comparisonOf(a, b) {
  const dataset = a.block.name.replace(/ \[\w+\]$/, ""); // without the fingerprint of one of two contents
  const words = ["compare", a.line.label, b.line.label, "--dataset", dataset, "--metric", a.metric.name, "--bits", a.bits];
  const command = ["hashbench", ...words.map(inShell)].join(" ");
  return ["Whether another sample would show it: ", h("code", {}, command), "."];
}

/** Say in lines what made a row, as far as that is known. */
const originOf = (i) => [at(data.rows.made, i), at(data.rows.took, i)].join("\n").split("\n").filter(Boolean);

/** Give the rows, one a seed, behind cells. */
function rowsOf(some) {
  const {seed, value, low, high} = data.rows;
  const row = ({block, metric, line, bits}, i) => ({
    ...{i, block, metric, line, bits, seed: seed[i]},
    ...{value: number(value[i]), low: number(low[i]), high: number(high[i]), made: originOf(i)},
  });
  return some.flatMap((cell) => Array.from({length: cell.n_rows}, (_, k) => row(cell, cell.row + k)));
}

const groupName = (line) => line.group || "other";
const supervisionName = (line) => line.supervision || "unknown";
const namesOf = (some) => some.map((one) => one.name);
const metricsOf = (some) => data.metrics.filter((metric) => some.some((cell) => cell.metric === metric));
const bitsOf = (some) => unique(some.map((cell) => cell.bits)).sort(rising);

/** Return the code length of most cells, of several the nearest to 32. */
function usualBits(some) {
  const n = (bits) => some.filter((cell) => cell.bits === bits).length;
  const compare = (a, b) => n(a) - n(b) || Math.abs(b - 32) - Math.abs(a - 32);
  return bitsOf(some).reduce((a, b) => (compare(b, a) > 0 ? b : a));
}
const linesOf = (some) => unique(some.map((cell) => cell.line));
const usualMetric = (metrics) => metrics.find((metric) => metric.name === "AP") || metrics[0];

// ---- the permalink: #view?name=value&...; a value that is the default is left out
const views = {}; // by name: fields() of the filters, body(chosen)
const state = {view: "overview", params: new URLSearchParams()};

function readLink() {
  const [view, query = ""] = location.hash.slice(1).split(/\?(.*)/s);
  state.view = Object.hasOwn(views, view) ? view : "overview";
  state.params = new URLSearchParams(query);
}

const link = (view, params) => `#${view}?${new URLSearchParams(params)}`;
const keepLink = () =>
  history.replaceState(null, "", state.params.size ? link(state.view, state.params) : "#" + state.view);

/** Split a label into the name, which has blanks in users' own codes, and the settings. */
const splitLabel = (label) => label.split(/ ((?:\w+=|\(version ).*)/s);

/** Show a label: the method's name, and its settings smaller. */
function named(label) {
  const [name, settings] = splitLabel(label);
  return [
    h("span", {class: "name"}, name),
    settings && h("span", {class: "settings", title: settings}, " " + settings),
  ];
}

const lineLink = (line) => h("a", {href: link("method", {method: line.method})}, named(line.label));
const lost = (text) => h("p", {class: "muted", "data-test": "lost"}, text);
const nothing = (text = "No results are left; choose other filters.") => h("p", {class: "nothing"}, text);

/** Tell what was done to who hears the page; what is not seen anyway is also shown for two seconds. */
function tell(text, isShown = false) {
  const status = $("#status");
  status.textContent = text;
  status.classList.toggle("hidden", !isShown);
  clearTimeout(hiding);
  if (isShown) hiding = setTimeout(() => status.classList.add("hidden"), 2000);
}
let hiding = 0;
