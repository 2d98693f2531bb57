// Filters: fields described as values, the form they make, and what is chosen in it.

/** A field is {name, label, kind: select | checks | flag | search, options: [[value, text], ...], usual}. */
function choose(fields) {
  const chosen = {};
  for (const field of fields) {
    const given = state.params.getAll(field.name);
    const known = new Set((field.options || []).map(([value]) => String(value)));
    if (field.kind === "select")
      chosen[field.name] = known.has(given[0]) ? given[0] : String(field.usual ?? field.options[0]?.[0]);
    else if (field.kind === "checks")
      chosen[field.name] = given.length ? given.filter((value) => known.has(value)) : [...known];
    else if (field.kind === "flag") chosen[field.name] = given[0] === "1";
    else chosen[field.name] = given[0] ?? "";
  }
  return chosen;
}

function filters(fields) {
  const chosen = choose(fields);
  const isWide = matchMedia("(min-width: 760px)").matches;
  const isFirst = (field) => field.kind === "select" || field.kind === "search";
  const rest = fields.filter((field) => !isFirst(field));
  return h(
    "form",
    {
      id: "filters",
      "aria-label": "Filters",
      onsubmit: (event) => event.preventDefault(),
      oninput: (event) => changed(event, fields),
    },
    h(
      "div",
      {class: "fields"},
      fields.filter(isFirst).map((field) => control(field, chosen)),
    ),
    rest.length
      ? h(
          "details",
          {open: isWide || rest.some((field) => state.params.has(field.name))},
          h("summary", {}, "More filters"),
          h(
            "div",
            {class: "fields"},
            rest.map((field) => control(field, chosen)),
          ),
        )
      : null,
    fields
      .filter((field) => field.kind === "select" && (state.params.get(field.name) || chosen[field.name]) !== chosen[field.name])
      .map((field) =>
        h(
          "p",
          {class: "muted", "data-test": "lost"},
          `${field.label}: "${state.params.get(field.name)}" of the address is not here; what is shown is "${chosen[field.name]}".`,
        ),
      ),
  );
}

function control(field, chosen) {
  const value = chosen[field.name];
  if (field.kind === "select") {
    const options = field.options.map(([key, text]) =>
      h("option", {value: key, selected: String(key) === value}, text),
    );
    return h("label", {}, field.label, h("select", {name: field.name}, options));
  }
  if (field.kind === "search")
    return h("label", {}, field.label, h("input", {type: "search", name: field.name, value, autocomplete: "off"}));
  if (field.kind === "flag")
    return h("label", {class: "check"}, h("input", {type: "checkbox", name: field.name, checked: value}), field.label);
  return h(
    "fieldset",
    {},
    h("legend", {}, field.label),
    field.options.map(([key, text]) =>
      h(
        "label",
        {class: "check"},
        h("input", {type: "checkbox", name: field.name, value: key, checked: value.includes(String(key))}),
        text,
      ),
    ),
  );
}

function changed(event, fields) {
  const form = event.currentTarget;
  const field = fields.find((one) => one.name === event.target.name);
  for (const one of fields) {
    state.params.delete(one.name);
    const inputs = [...form.querySelectorAll("select, input")].filter((input) => input.name === one.name);
    if (one.kind === "checks") {
      const checked = inputs.filter((input) => input.checked).map((input) => input.value);
      if (checked.length < inputs.length)
        (checked.length ? checked : [""]).forEach((value) => state.params.append(one.name, value));
    } else if (one.kind === "flag") {
      if (inputs[0].checked) state.params.set(one.name, "1");
    } else if (inputs[0].value !== String(one.usual ?? (one.kind === "select" ? one.options[0]?.[0] : ""))) {
      state.params.set(one.name, inputs[0].value);
    }
  }
  if (field.resets) field.resets.forEach((name) => state.params.delete(name));
  keepLink();
  if (field.kind !== "select") return update();
  draw();
  $(`#filters [name="${field.name}"]`)?.focus();
}

const FIELDS = {
  data: (blocks = data.data) => ({
    name: "data",
    label: "Dataset and features",
    kind: "select",
    resets: ["bits", "line", "sort", "desc", "a", "b"],
    usual: usualBlock(blocks).name,
    options: blocks.map((block) => [block.name, block.name]),
  }),
  metric: (some) => ({
    name: "metric",
    label: "Metric",
    kind: "select",
    usual: usualMetric(metricsOf(some))?.name,
    resets: ["sort", "desc"],
    options: metricsOf(some).map((metric) => [metric.name, metric.name]),
  }),
  allOr: (name, label, names) => ({
    name,
    label,
    kind: "select",
    usual: "",
    options: [["", "all"], ...names.map((one) => [one, one])],
  }),
  bits: (some) => ({name: "bits", label: "Bits", kind: "checks", options: bitsOf(some).map((bits) => [bits, bits])}),
  group: (some) => checks("group", "Group", linesOf(some).map(groupName), [...data.groups, "not installed"]),
  supervision: (some) =>
    checks("supervision", "Supervision", linesOf(some).map(supervisionName), ["none", "labels", "affinity", "unknown"]),
  variants: () => ({name: "variants", label: "All settings of a method", kind: "flag"}),
  text: () => ({name: "text", label: "Method or settings", kind: "search"}),
};

function checks(name, label, values, order) {
  const rank = (value) => order.indexOf(value);
  return {
    name,
    label,
    kind: "checks",
    options: unique(values)
      .sort((a, b) => rank(a) - rank(b))
      .map((value) => [value, value]),
  };
}

/** The dataset with the most results is shown first. */
function usualBlock(blocks) {
  return blocks.reduce((a, b) => (b.cells.length > a.cells.length ? b : a));
}

/** Keep the cells that the filters let through. */
function filtered(some, chosen) {
  const words = (chosen.text || "").toLowerCase().split(/\s+/).filter(Boolean);
  return some.filter(
    (cell) =>
      (!("variants" in chosen) || chosen.variants || cell.isMain) &&
      (!chosen.group || chosen.group.includes(groupName(cell.line))) &&
      (!chosen.supervision || chosen.supervision.includes(supervisionName(cell.line))) &&
      (!chosen.bits || chosen.bits.includes(String(cell.bits))) &&
      words.every((word) => cell.line.label.toLowerCase().includes(word)),
  );
}
