"use strict";
(() => {
const element = (name, attributes = {}, ...children) => {
  const space = name === "svg" || name === "rect" || name === "path" ? "http://www.w3.org/2000/svg" : null;
  const made = space ? document.createElementNS(space, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};
const by = (id) => document.getElementById(id);

// Light and dark: as the system has it, until the button says otherwise.
const isDark = () => (document.documentElement.dataset.theme
  || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const theme = by("theme");
const nameTheme = () => { theme.textContent = isDark() ? "light" : "dark"; };
theme.hidden = false;
theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  nameTheme();
  drawScatter();
});
nameTheme();

let drawScatter = () => {};
if (!by("data")) return;

// ---- What is shown: names, and columns of numbers in the same order.
const data = JSON.parse(by("data").textContent);
const numbers = ([kind, text]) => {
  const characters = atob(text), bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = characters.charCodeAt(i);
  return new globalThis[kind](bytes.buffer);
};
const VERDICTS = ["relevant", "undecided", "irrelevant"];
const names = data.features, lower = names.map((name) => name.toLowerCase());
const columns = data.columns.map((column) => {
  const arrays = Object.fromEntries(Object.entries(column.arrays).map(([key, coded]) => [key, numbers(coded)]));
  const title = (data.several ? `${column.ranking}: ` : "") + column.name;
  return {...column, arrays, title, ...(column.kind === "score" ? extent(arrays) : {})};
});

/** The range of the bars, and how many decimals tell the importances apart. */
function extent({value, error}) {
  let low = 0, high = 0, most = 0;
  for (let i = 0; i < value.length; i += 1) {
    if (!Number.isFinite(value[i])) continue;
    const whisker = error && Number.isFinite(error[i]) ? error[i] : 0;
    low = Math.min(low, value[i] - whisker);
    high = Math.max(high, value[i] + whisker);
    most = Math.max(most, Math.abs(value[i]));
  }
  const magnitude = most > 0 ? Math.floor(Math.log10(most)) : 0;
  const decimals = magnitude > -5 && magnitude < 7 ? Math.min(Math.max(3 - magnitude, 0), 9) : null;
  return {low, span: high - low || 1, decimals};
}
const shown = (value, {decimals}) =>
  Number.isFinite(value) ? (decimals === null ? value.toExponential(3) : value.toFixed(decimals)) : String(value);
// Single precision ends there.
const brief = (value) => value < 1e-10 ? "< 1e-10" : Number(value.toPrecision(2)).toString();
const known = (array, row) => array && Number.isFinite(array[row]);
const interval = ({best, worst}, row) => best[row] === worst[row] ? `${best[row]}` : `${best[row]}–${worst[row]}`;

// ---- Rows: which, in which order.
const state = {sort: -1, down: false, rows: Uint32Array.from(names, (_, row) => row), active: 0};
const compareNames = new Intl.Collator(undefined, {numeric: true}).compare;

function arrange() {
  const words = by("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const verdict = by("verdict").value, verdicts = columns.find(({kind}) => kind === "verdict");
  let rows = [];
  for (let row = 0; row < names.length; row += 1) {
    const fits = words.every((word) => lower[row].includes(word));
    if (fits && (verdict === "" || verdicts.arrays.verdict[row] === Number(verdict))) rows.push(row);
  }
  const {sort, down} = state;
  if (sort === 0) {
    rows.sort((a, b) => compareNames(names[a], names[b]));
    if (down) rows.reverse();
  } else if (sort > 0) {
    const {kind, arrays} = columns[sort - 1];
    const keys = kind === "verdict" ? arrays.q : arrays.value;
    // Missing ones are last in both orders; equal ones stay in the order of the first ranking.
    const key = (row) => Number.isNaN(keys[row]) ? Infinity : down ? -keys[row] : keys[row];
    rows = Uint32Array.from(rows);
    const sorted = Float64Array.from(rows, key);
    rows = Uint32Array.from(rows.keys()).sort((a, b) => sorted[a] - sorted[b] || a - b).map((at) => rows[at]);
  }
  state.rows = Uint32Array.from(rows);
  state.active = 0;
  by("table").scrollTop = 0;
  render();
  tell();
}

function tell() {
  const n = state.rows.length.toLocaleString("en"), all = names.length.toLocaleString("en");
  const whole = data.n_features > names.length
    ? ` The page has the best ${all} of ${data.n_features.toLocaleString("en")}; files of the ranking have all.` : "";
  const order = state.sort < 0 ? "the best first" : `sorted by ${state.sort ? columns[state.sort - 1].title : "name"}`;
  by("status").textContent = `${state.rows.length === names.length ? all : `${n} of ${all}`} features, ${order}.${whole}`;
}

// ---- The table: only the rows in sight are there.
const ROW = 28, MARGIN = 8, PRINTED = 200;
const table = by("table");
const visible = new Set();
const narrow = matchMedia("(max-width: 640px)").matches;
{
  // As many as fit: verdicts, and the main scores.
  let left = narrow ? 1 : 3;
  const first = new Set();
  columns.forEach((column, at) => {
    if (column.kind !== "score") { if (!narrow || column.kind === "verdict") visible.add(at); return; }
    const isFirst = !first.has(column.ranking);
    first.add(column.ranking);
    if (left > 0 && (!data.several || isFirst)) { visible.add(at); left -= 1; }
  });
}
const head = element("tr"), body = element("tbody", {id: "rows"});

function heads() {
  head.replaceChildren(heading(0, "feature", "", "feature"));
  head.firstChild.setAttribute("aria-rowindex", "1");
  for (const at of visible) {
    const {kind, name, ranking} = columns[at];
    head.append(heading(at + 1, name, data.several ? ranking : "", kind));
  }
}
function heading(sort, name, above, kind) {
  const button = element("button", {type: "button"}, ...(above ? [element("small", {}, above)] : []), name);
  button.addEventListener("click", () => {
    const best = kind === "score";
    state.down = state.sort === sort ? !state.down : best;
    state.sort = sort;
    for (const other of head.children) other.removeAttribute("aria-sort");
    cell.setAttribute("aria-sort", state.down ? "descending" : "ascending");
    arrange();
  });
  const cell = element("th", {scope: "col", class: kind}, button);
  if (state.sort === sort) cell.setAttribute("aria-sort", state.down ? "descending" : "ascending");
  return cell;
}

function bar(column, row) {
  const {arrays: {value, error}, low, span} = column;
  const place = (number) => 100 * (number - low) / span;
  const zero = place(0), end = place(Number.isFinite(value[row]) ? value[row] : 0);
  const drawn = element("svg", {viewBox: "0 0 100 14", preserveAspectRatio: "none", "aria-hidden": "true"},
    element("rect", {x: Math.min(zero, end), y: 2, width: Math.abs(end - zero), height: 10}),
    element("path", {class: "zero", d: `M${zero} 0V14`, "vector-effect": "non-scaling-stroke"}));
  if (known(error, row)) {
    const [from, to] = [place(value[row] - error[row]), place(value[row] + error[row])];
    drawn.append(element("path", {class: "whisker", "vector-effect": "non-scaling-stroke",
      d: `M${from} 7H${to}M${from} 4.5V9.5M${to} 4.5V9.5`}));
  }
  return drawn;
}

function line(at) {
  const row = state.rows[at];
  const made = element("tr", {"aria-rowindex": at + 2});
  made.dataset.at = at;
  made.append(element("th", {scope: "row", class: "feature", tabindex: at === state.active ? 0 : -1}, names[row]));
  for (const number of visible) {
    const column = columns[number], {arrays} = column;
    if (column.kind === "verdict") {
      const code = arrays.verdict[row];
      made.append(element("td", {class: `verdict v${code}`}, VERDICTS[code], element("small", {class: "soft"}, `  q ${brief(arrays.q[row])}`)));
      continue;
    }
    if (column.kind === "cluster") {
      made.append(element("td", {}, known(arrays.value, row) ? String(arrays.value[row]) : ""));
      continue;
    }
    const cell = element("td", {class: "value"}, element("small", {}, `${arrays.rank[row]}.  `), shown(arrays.value[row], column));
    if (known(arrays.error, row)) cell.append(element("small", {}, ` ± ${shown(arrays.error[row], column)}`));
    cell.append(bar(column, row));
    made.append(cell);
  }
  return made;
}

// Whatever makes the page draw anew while it is printed must leave the printed rows.
let printing = false;

function render() {
  const everything = printing;
  const hadFocus = body.contains(document.activeElement), place = table.scrollTop;
  const n = everything ? Math.min(state.rows.length, PRINTED) : state.rows.length;
  const first = everything ? 0 : Math.max(0, Math.floor(place / ROW) - MARGIN);
  const last = everything ? n : Math.min(n, Math.ceil((place + table.clientHeight) / ROW) + MARGIN);
  const space = (rows) => {
    const made = element("tr", {class: "space", "aria-hidden": "true"}, element("td", {colspan: visible.size + 1}));
    made.style.height = `${rows * ROW}px`;
    return made;
  };
  const lines = [];
  for (let at = first; at < last; at += 1) lines.push(line(at));
  body.replaceChildren(...(first ? [space(first)] : []), ...lines, ...(n > last ? [space(n - last)] : []));
  body.parentNode.setAttribute("aria-rowcount", state.rows.length + 1);
  // A browser may lay out the table in between, without rows, when the row with the focus goes.
  if (!everything) table.scrollTop = place;
  if (hadFocus) focusActive(false);
}

function focusActive(scroll = true) {
  const headHeight = head.offsetHeight, top = state.active * ROW;
  if (scroll) {
    if (top < table.scrollTop) table.scrollTop = top;
    const bottom = top + ROW + headHeight - table.clientHeight;
    if (bottom > table.scrollTop) table.scrollTop = bottom;
    render();
  }
  const cell = body.querySelector(`tr[data-at="${state.active}"] .feature`);
  if (cell) cell.focus({preventScroll: true});
}

// ---- What is pointed at, or has the focus, in full.
const tip = by("tip");
function explain(target, x, y) {
  const made = target.closest("tr[data-at]");
  if (!made) { tip.hidden = true; return; }
  const row = state.rows[made.dataset.at];
  tip.replaceChildren(element("strong", {}, names[row]));
  for (const column of columns) {
    const {arrays} = column;
    if (column.kind === "cluster") {
      if (known(arrays.value, row)) tip.append(element("span", {}, `${column.title} ${arrays.value[row]}`));
      continue;
    }
    const parts = column.kind === "verdict"
      ? [`${column.title}: ${VERDICTS[arrays.verdict[row]]}, p ${brief(arrays.p[row])}, q ${brief(arrays.q[row])}`]
      : [`${column.title}: ${shown(arrays.value[row], column)}`];
    if (column.kind === "score") {
      if (known(arrays.error, row)) parts.push(`± ${shown(arrays.error[row], column)} (standard error)`);
      if (known(arrays.monte_carlo, row)) parts.push(`± ${shown(arrays.monte_carlo[row], column)} (Monte Carlo error)`);
      parts.push(`rank ${arrays.rank[row]}${arrays.best ? `, of ${interval(arrays, row)} at 95 %` : ""}`);
    }
    tip.append(element("span", {}, parts.join("; ")));
  }
  tip.hidden = false;
  const {width, height} = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 4))}px`;
  tip.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 10) : y + 18}px`;
}
body.addEventListener("pointermove", (event) => explain(event.target, event.clientX, event.clientY));
body.addEventListener("pointerleave", () => { tip.hidden = true; });
body.addEventListener("focusin", (event) => {
  const box = event.target.getBoundingClientRect();
  if (event.target.matches(":focus-visible")) explain(event.target, box.left, box.top);
});
body.addEventListener("focusout", () => { tip.hidden = true; });
body.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { tip.hidden = true; return; }
  const page = Math.max(1, Math.floor(table.clientHeight / ROW) - 2);
  const to = {ArrowDown: state.active + 1, ArrowUp: state.active - 1, PageDown: state.active + page,
    PageUp: state.active - page, Home: 0, End: state.rows.length - 1}[event.key];
  if (to === undefined) return;
  event.preventDefault();
  state.active = Math.max(0, Math.min(to, state.rows.length - 1));
  focusActive();
});
body.addEventListener("click", (event) => {
  const made = event.target.closest("tr[data-at]");
  if (made) { state.active = Number(made.dataset.at); render(); focusActive(false); }
});

// ---- Tools.
const choices = by("columns").querySelector("fieldset");
columns.forEach((column, at) => {
  const box = element("input", {type: "checkbox"});
  box.checked = visible.has(at);
  box.addEventListener("change", () => {
    const chosen = new Set(visible);
    if (box.checked) chosen.add(at); else chosen.delete(at);
    visible.clear();
    [...chosen].sort((a, b) => a - b).forEach((one) => visible.add(one));
    heads();
    render();
  });
  choices.append(element("label", {}, box, ` ${column.title}`));
});
by("columns").addEventListener("keydown", (event) => { if (event.key === "Escape") by("columns").open = false; });
by("search").addEventListener("input", arrange);
by("verdict").addEventListener("change", arrange);
by("tools").addEventListener("submit", (event) => event.preventDefault());
by("verdicts").hidden = !columns.some(({kind}) => kind === "verdict");

/** The rows as they are sorted and searched, all columns, as a CSV file. */
function csv() {
  const quoted = (text) => /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const parts = columns.flatMap(({title, kind, arrays}) => Object.entries(arrays).map(([key, array]) => ({
    head: key === "value" || key === "verdict" ? title : `${title} ${key}`,
    cell: key === "verdict" && kind === "verdict" ? (row) => VERDICTS[array[row]]
      : (row) => Number.isNaN(array[row]) ? "" : String(Number(array[row].toPrecision(7))),
  })));
  const lines = [["feature", ...parts.map(({head}) => quoted(head))].join(",")];
  for (const row of state.rows) lines.push([quoted(names[row]), ...parts.map(({cell}) => cell(row))].join(","));
  return `${lines.join("\n")}\n`;
}
by("save").addEventListener("click", () => {
  const link = element("a", {href: URL.createObjectURL(new Blob([csv()], {type: "text/csv"})), download: "features.csv"});
  link.click();
  URL.revokeObjectURL(link.href);
});

// ---- Two scores against each other.
function scatter() {
  const place = by("scatter"), scores = columns.filter(({kind}) => kind === "score");
  if (!place || scores.length < 2) return;
  place.hidden = false;
  const choice = (label, selected) => {
    const select = element("select");
    scores.forEach(({title}, at) => select.append(new Option(title, at, at === selected, at === selected)));
    select.addEventListener("change", () => drawScatter());
    place.append(element("label", {}, `${label} `, select), " ");
    return select;
  };
  place.append(element("h3", {}, "Ranks under two scores"));
  const across = choice("across", 0), up = choice("up", 1);
  const canvas = element("canvas", {role: "img", "aria-label": "ranks of all features under two scores, best at the bottom left; logarithmic"});
  const note = element("p", {class: "soft", role: "status"});
  place.append(canvas, note);
  let points = [];
  drawScatter = () => {
    const size = canvas.clientWidth || 400, ratio = devicePixelRatio || 1, edge = 14;
    canvas.width = canvas.height = size * ratio;
    const context = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    context.scale(ratio, ratio);
    const most = Math.log(Math.max(2, data.n_features));
    const at = (rank) => edge + (size - 2 * edge) * Math.log(rank) / most;
    const [x, y] = [scores[across.value].arrays.rank, scores[up.value].arrays.rank];
    points = Array.from(names, (_, row) => [at(x[row]), size - at(y[row])]);
    context.strokeStyle = style.getPropertyValue("--line");
    context.beginPath();
    context.moveTo(edge, size - edge);
    context.lineTo(size - edge, edge);
    context.stroke();
    context.fillStyle = style.getPropertyValue("--bar");
    context.globalAlpha = names.length > 500 ? 0.35 : 0.8;
    for (const [left, top] of points) context.fillRect(left - 2, top - 2, 4, 4);
  };
  canvas.addEventListener("pointermove", ({offsetX, offsetY}) => {
    let nearest = -1, least = 400;
    points.forEach(([left, top], row) => {
      const distance = (left - offsetX) ** 2 + (top - offsetY) ** 2;
      if (distance < least) { least = distance; nearest = row; }
    });
    note.textContent = nearest < 0 ? "" : `${names[nearest]}: ${[across, up].map(({value}) =>
      `${scores[value].arrays.rank[nearest]}. under ${scores[value].title}`).join(", ")}`;
  });
  drawScatter();
}

// ---- Begin.
for (const id of ["tools", "hint"]) by(id).hidden = false;
table.classList.add("live");
table.setAttribute("tabindex", "-1");
heads();
table.replaceChildren(element("table", {"aria-labelledby": "table-title"}, element("thead", {}, head), body));
tell();
render();
let pending = false;
// The table grows when its first rows are there, and when the window does.
new ResizeObserver(() => render()).observe(table);
table.addEventListener("scroll", () => {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => { pending = false; render(); });
});
addEventListener("resize", () => { render(); drawScatter(); });
addEventListener("beforeprint", () => { printing = true; render(); });
addEventListener("afterprint", () => { printing = false; render(); });
scatter();
})();
