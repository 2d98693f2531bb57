// What all views share: the data, elements that hold text alone, numbers, and the permalink.
"use strict";

const scriptStart = performance.now();

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (selector, within = document) => within.querySelector(selector);
const SVG = "http://www.w3.org/2000/svg";
const MILLION = 1e6; // numbers of six decimals travel as whole ones
const MARKS = {within: "≈", above: "↑", below: "↓"};
const VERDICTS = {
  within: "the paper's value lies within our spread and tie range",
  above: "ours lies above the paper's value",
  below: "ours lies below the paper's value",
};

/** Make an element; texts become text nodes, so that no name is ever read as HTML. */
function h(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

function s(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [name, text] of Object.entries(value)) element.style.setProperty(name, text);
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(key, value === true ? "" : value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

const at = (column, i) => (column.of ? column.of[column.at[i]] : column[i]);
const number = (whole) => (whole === null || whole === undefined ? null : whole / MILLION);
const shown = (value, digits = 4) => (value === null ? "–" : value.toFixed(digits));
const grouped = (n) => n.toLocaleString("en");
const count = (n, one, many = one + "s") => `${grouped(n)} ${n === 1 ? one : many}`;
const range = (cell) =>
  cell.low === null ? "range over ties unknown" : `ties: ${shown(cell.low)} to ${shown(cell.high)}`;
const unique = (values) => [...new Set(values)];
const overlap = (a, b) => a.low !== null && b.low !== null && a.low <= b.high && b.low <= a.high;
const swappable = (a, b) => (a.low === null || b.low === null ? "unknown" : overlap(a, b) ? "yes" : "no");
const isBetter = (metric, a, b) => (metric.is_error ? a < b : a > b);
const nearest = (numbers, wanted) => numbers.reduce((a, b) => (Math.abs(b - wanted) < Math.abs(a - wanted) ? b : a));

// ---- results: blocks and lines by number, cells (means over seeds) as objects, by block
data.data.forEach((block, i) => Object.assign(block, {i, cells: []}));
data.lines.forEach((line, i) => Object.assign(line, {i}));
const blockOf = new Map(data.data.map((block) => [block.name, block]));
const lineOf = new Map(data.lines.map((line) => [line.label, line]));
const methodOf = new Map(data.methods.map((method) => [method.name, method]));
const cells = unpackCells();

function unpackCells() {
  const c = data.cells;
  const made = [];
  let row = 0;
  for (let i = 0; i < c.value.length; i++) {
    const cell = {
      i,
      block: data.data[c.data[i]],
      metric: data.metrics[c.metric[i]],
      line: data.lines[c.line[i]],
      bits: c.bits[i],
      isMain: c.is_main[i] === 1,
      value: number(c.value[i]),
      low: number(c.low[i]),
      high: number(c.high[i]),
      spread: number(c.spread[i]),
      row,
      nSeeds: c.n_rows[i],
      papers: [],
    };
    row += c.n_rows[i];
    cell.block.cells.push(cell);
    made.push(cell);
  }
  const p = data.published;
  p.cell.forEach((i, k) =>
    made[i].papers.push({
      value: at(p.value, k),
      verdict: at(p.verdict, k),
      source: at(p.source, k),
      differs: at(p.differs, k),
    }),
  );
  return made;
}

/** Give the rows, one a seed, behind cells. */
function rowsOf(some) {
  const r = data.rows;
  return some.flatMap((cell) =>
    Array.from({length: cell.nSeeds}, (_, k) => ({
      i: cell.row + k,
      block: cell.block,
      metric: cell.metric,
      line: cell.line,
      bits: cell.bits,
      seed: r.seed[cell.row + k],
      value: number(r.value[cell.row + k]),
      low: number(r.low[cell.row + k]),
      high: number(r.high[cell.row + k]),
    })),
  );
}

const groupName = (line) => line.group || "not installed";
const supervisionName = (line) => line.supervision || "unknown";
const metricsOf = (some) => data.metrics.filter((metric) => some.some((cell) => cell.metric === metric));
const bitsOf = (some) => unique(some.map((cell) => cell.bits)).sort((a, b) => a - b);
const namesOf = (some) => some.map((one) => one.name);
const linesOf = (some) => unique(some.map((cell) => cell.line));
const usualMetric = (metrics) => metrics.find((metric) => metric.name === "AP") || metrics[0];

const views = {}; // by name: title, fields() of the filters, body(chosen)

// ---- the permalink: #view?name=value&...; a value that is the default is left out
const state = {view: "overview", params: new URLSearchParams()};

function readLink() {
  const [view, query = ""] = location.hash.slice(1).split(/\?(.*)/s);
  state.view = Object.hasOwn(views, view) ? view : "overview";
  state.params = new URLSearchParams(query);
}

const link = (view, params = {}) => {
  const query = new URLSearchParams(params).toString();
  return "#" + view + (query ? "?" + query : "");
};

function keepLink() {
  const query = state.params.toString();
  history.replaceState(null, "", "#" + state.view + (query ? "?" + query : ""));
}

/** Show a label: the method's name, and its settings smaller. */
function named(label) {
  const [name, settings] = label.split(/ (.*)/s);
  return [
    h("span", {class: "name"}, name),
    settings && h("span", {class: "settings", title: settings}, " " + settings),
  ];
}

const lineName = (line) => named(line.label);
const lineLink = (line) => h("a", {href: link("method", {method: line.method})}, lineName(line));
const tell = (text) => {
  $("#status").textContent = text;
};
