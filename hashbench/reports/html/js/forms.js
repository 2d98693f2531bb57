// Filters: fields described as values, the form they make, and what is chosen in it.

/**
 * A field is {name, label, kind: select | checks | flag | search, options: [[value, text, isOff], ...], usual, resets};
 * what is off is listed, and cannot be chosen.
 */
const FIELDS = {
  data: (usual = data.data[0]) => ({
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
  group: (some) => checks("group", "Group", linesOf(some).map(groupName), [...data.groups, "other"]),
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

const knownOf = ({options = []}) => options.filter(([, , isOff]) => !isOff).map(([value]) => String(value));

function choose(fields) {
  const valueOf = (field) => {
    const given = state.params.getAll(field.name);
    const known = knownOf(field);
    if (field.kind === "select") return known.includes(given[0]) ? given[0] : String(field.usual);
    const found = given.filter((value) => known.includes(value));
    if (field.kind === "checks") return found.length || given.includes("") ? found : known;
    return field.kind === "flag" ? given[0] === "1" : (given[0] ?? "");
  };
  return Object.fromEntries(fields.map((field) => [field.name, valueOf(field)]));
}

function filters(fields) {
  const chosen = choose(fields);
  const hasChecks = fields.some((field) => field.kind === "checks");
  const isFolded = (field) => field.kind === "checks" || (hasChecks && field.kind === "flag");
  const folded = fields.filter(isFolded);
  const controls = (some) => some.map((field) => control(field, chosen[field.name]));
  const open = folded.some((field) => state.params.has(field.name));
  return h(
    "form",
    {
      id: "filters",
      "aria-label": "Filters",
      onsubmit: (event) => event.preventDefault(),
      oninput: (event) => changed(event, fields),
    },
    controls(fields.filter((field) => !isFolded(field))),
    folded.length > 0 && h("details", {open}, h("summary", {}, "More filters"), controls(folded)),
  );
}

/** Say what the address asks for that is not here, and what of that name is. */
function lostParts(fields) {
  const [view] = location.hash.slice(1).split("?");
  if (view && view !== state.view) return [lost(`There is no view "${view}" on this page; this is the overview.`)];
  const chosen = choose(fields);
  const ofField = (field) => {
    const {name, label, kind, options} = field;
    const known = kind === "flag" ? ["0", "1"] : knownOf(field);
    const isLost = (value) => value !== "" && kind !== "search" && !known.includes(value);
    const given = state.params.getAll(name).filter(isLost);
    return given.map((value) => {
      const near = known.filter((one) => one.startsWith(value)).map((one) => `"${one}"`);
      const shownInstead = options?.find(([key]) => String(key) === chosen[name]);
      const instead = kind === "select" ? `; you see "${shownInstead[1]}"` : "";
      const meant = near.length ? ` Did you mean ${near.join(" or ")}?` : "";
      return lost(`There is no "${value}" under ${label} here${instead}.${meant}`);
    });
  };
  const own = [...namesOf(fields), "sort", "desc", ...(views[state.view].more ?? [])];
  const others = unique([...state.params.keys()]).filter((name) => !own.includes(name));
  return [...fields.map(ofField), others.map((name) => lost(`"${name}" in the address means nothing in this view.`))];
}

function control({kind, name, label, options}, value) {
  const box = (checked, text, key) =>
    h("label", {class: "check"}, h("input", {type: "checkbox", name, value: key, checked}), text);
  const option = ([key, text, isOff]) =>
    h("option", {value: key, selected: String(key) === value, disabled: isOff}, text);
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
