// Filters: fields described as values, the form they make, and what is chosen in it.

/** A field is {name, label, kind: select | checks | flag | search, options: [[value, text], ...], usual, resets}. */
const FIELDS = {
  data: (usual = data.data.reduce((a, b) => (b.cells.length > a.cells.length ? b : a))) => ({
    name: "data",
    label: "Dataset and features",
    kind: "select",
    resets: ["bits", "line", "sort", "desc", "a", "b", "query"],
    usual: usual.name,
    options: pairs(namesOf(data.data)),
  }),
  metric: (some) => ({
    name: "metric",
    label: "Metric",
    kind: "select",
    usual: usualMetric(metricsOf(some))?.name,
    resets: ["sort", "desc"],
    options: pairs(namesOf(metricsOf(some))),
  }),
  one: (name, label, options, usual = options[0][0]) => ({name, label, kind: "select", options, usual}),
  allOr: (name, label, names) => FIELDS.one(name, label, [["", "all"], ...pairs(names)]),
  bits: (some) => ({name: "bits", label: "Bits", kind: "checks", options: pairs(bitsOf(some))}),
  group: (some) => checks("group", "Group", linesOf(some).map(groupName), [...data.groups, "not installed"]),
  supervision: (some) =>
    checks("supervision", "Supervision", linesOf(some).map(supervisionName), ["none", "labels", "affinity", "unknown"]),
  flag: (name, label) => ({name, label, kind: "flag"}),
  variants: () => FIELDS.flag("variants", "All settings of a method"),
  text: () => ({name: "text", label: "Method or settings", kind: "search"}),
};

const pairs = (values) => values.map((value) => [value, value]);
const checks = (name, label, values, order) => ({
  ...{name, label, kind: "checks"},
  options: pairs(order.filter((value) => values.includes(value))),
});

function choose(fields) {
  const valueOf = (field) => {
    const given = state.params.getAll(field.name);
    const known = (field.options ?? []).map(([value]) => String(value));
    if (field.kind === "select") return known.includes(given[0]) ? given[0] : String(field.usual);
    if (field.kind === "checks") return given.length ? given.filter((value) => known.includes(value)) : known;
    return field.kind === "flag" ? given[0] === "1" : (given[0] ?? "");
  };
  return Object.fromEntries(fields.map((field) => [field.name, valueOf(field)]));
}

function filters(fields) {
  const chosen = choose(fields);
  const isFirst = (field) => field.kind === "select" || field.kind === "search";
  const [first, rest] = [fields.filter(isFirst), fields.filter((field) => !isFirst(field))];
  const controls = (some) => h("div", {class: "fields"}, some.map((field) => control(field, chosen[field.name])));
  const open = matchMedia("(min-width: 760px)").matches || rest.some((field) => state.params.has(field.name));
  const isLost = ({kind, name}) => kind === "select" && (state.params.get(name) || chosen[name]) !== chosen[name];
  return h(
    "form",
    {
      id: "filters",
      "aria-label": "Filters",
      onsubmit: (event) => event.preventDefault(),
      oninput: (event) => changed(event, fields),
    },
    controls(first),
    rest.length > 0 && h("details", {open}, h("summary", {}, "More filters"), controls(rest)),
    first.filter(isLost).map(({name, label}) => {
      const given = `${label}: "${state.params.get(name)}" of the address is not here; `;
      return h("p", {class: "muted", "data-test": "lost"}, `${given}what is shown is "${chosen[name]}".`);
    }),
  );
}

function control({kind, name, label, options}, value) {
  const box = (checked, text, key) =>
    h("label", {class: "check"}, h("input", {type: "checkbox", name, value: key, checked}), text);
  const option = ([key, text]) => h("option", {value: key, selected: String(key) === value}, text);
  if (kind === "select") return h("label", {}, label, h("select", {name}, options.map(option)));
  if (kind === "search") return h("label", {}, label, h("input", {type: "search", name, value, autocomplete: "off"}));
  if (kind === "flag") return box(value, label, null);
  const boxes = options.map(([key, text]) => box(value.includes(String(key)), text, key));
  return h("fieldset", {}, h("legend", {}, label), boxes);
}

/** Put what the form now says into the link; of a dataset or metric depend the other fields. */
function changed(event, fields) {
  const field = fields.find((one) => one.name === event.target.name);
  const inputs = [...event.currentTarget.querySelectorAll(`[name="${field.name}"]`)];
  const values = {
    select: () => (inputs[0].value === String(field.usual) ? [] : [inputs[0].value]),
    search: () => inputs.map((input) => input.value).filter(Boolean),
    flag: () => (inputs[0].checked ? ["1"] : []),
    checks: () => {
      const checked = inputs.filter((input) => input.checked).map((input) => input.value);
      return checked.length === inputs.length ? [] : checked.length ? checked : [""];
    },
  }[field.kind]();
  [field.name, ...(field.resets ?? [])].forEach((name) => state.params.delete(name));
  values.forEach((value) => state.params.append(field.name, value));
  keepLink();
  if (field.kind !== "select") return update();
  draw();
  $(`#filters [name="${field.name}"]`)?.focus();
}

const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

/** Keep the cells, or rows like them, that the filters let through; a filter that there is not lets all through. */
function filtered(some, chosen) {
  const words = wordsOf(chosen.text ?? "");
  return some.filter(
    ({line, metric, block, bits, is_main}) =>
      (chosen.variants !== false || is_main) &&
      (chosen.group?.includes(groupName(line)) ?? true) &&
      (chosen.supervision?.includes(supervisionName(line)) ?? true) &&
      (chosen.bits?.includes(String(bits)) ?? true) &&
      (!chosen.metric || metric.name === chosen.metric) &&
      (!(chosen.place || chosen.data) || block.name === (chosen.place || chosen.data)) &&
      words.every((word) => line.label.toLowerCase().includes(word)),
  );
}
