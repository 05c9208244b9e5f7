"use strict";

const SHOWN = 100;
const NAMED = 3;
// A row has the texts of its cells, and numbers to sort by: see view.py.
const [
  PLACE, LINK, JOB, RECORDED, USER, DEVICE, SAVED, OF_RUN, PART, TIME, RULES, HOURS, DEVICES, RUN_SHARE, SHARE, STEP,
] = [...Array(16).keys()];

const data = JSON.parse(document.getElementById("data").textContent);
const table = document.getElementById("runs");

function cells(row) {
  const rest = row[RULES].length > NAMED ? ` and ${row[RULES].length - NAMED} more` : "";
  const rules = row[RULES].slice(0, NAMED).map((rule) => data.rules[rule]).join(", ") + rest;
  return [row[SAVED], row[OF_RUN], row[PART], row[TIME], rules, data.devices[row[DEVICE]], row[RECORDED]];
}

// Where the length of a run is unknown, it comes after those where it is known, by its devices.
function waste(row) {
  if (row[HOURS] !== null) return 1e9 + row[HOURS];
  return row[DEVICES] !== null ? row[DEVICES] : -1;
}
const KEYS = [
  (row) => data.jobs[row[JOB]] + row[PLACE], waste, (row) => row[RUN_SHARE] ?? -1, (row) => row[SHARE] ?? -1, (row) => row[STEP] ?? -1,
  (row) => row[RULES].map((rule) => data.rules[rule]).join(), (row) => data.devices[row[DEVICE]], (row) => row[RECORDED],
];
const ASCENDING = [true, false, false, false, false, true, true, false];

const texts = data.rows.map((row) => [
  row[PLACE], data.jobs[row[JOB]], row[USER], data.devices[row[DEVICE]], row[RECORDED],
  ...row[RULES].map((rule) => data.rules[rule]),
].join(" ").toLowerCase());

let order = data.rows.map((_, at) => at);
let shown = SHOWN;
let chosen = null; // says which runs a link leads to, until something is searched

function line(row) {
  const made = document.createElement("tr");
  const first = made.insertCell();
  const name = document.createElement(row[LINK] ? "a" : "span");
  name.textContent = data.jobs[row[JOB]];
  if (row[LINK]) name.setAttribute("href", row[LINK]);
  const place = document.createElement("small");
  place.textContent = row[PLACE];
  first.append(name, place);
  cells(row).forEach((text, at) => {
    const cell = made.insertCell();
    cell.textContent = text;
    if (at <= 3) cell.className = "number";
  });
  return made;
}

function update() {
  const words = document.getElementById("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const isFound = chosen ? (at) => chosen(data.rows[at]) : (at) => words.every((word) => texts[at].includes(word));
  const found = order.filter(isFound);
  table.tBodies[0].replaceChildren(...found.slice(0, shown).map((at) => line(data.rows[at])));
  document.getElementById("count").textContent = words.length
    ? `${found.length.toLocaleString("en")} of ${data.rows.length.toLocaleString("en")} runs`
    : `${data.rows.length.toLocaleString("en")} ${data.rows.length === 1 ? "run" : "runs"}`;
  document.getElementById("more").hidden = found.length <= shown;
}

function sort(column) {
  const heads = [...table.tHead.rows[0].cells];
  const now = heads[column].getAttribute("aria-sort");
  const ascending = now ? now !== "ascending" : ASCENDING[column];
  heads.forEach((head) => head.removeAttribute("aria-sort"));
  heads[column].setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const keys = data.rows.map(KEYS[column]);
  const sign = ascending ? 1 : -1;
  order = data.rows.map((_, at) => at).sort((a, b) => (keys[a] < keys[b] ? -sign : keys[a] > keys[b] ? sign : a - b));
  shown = SHOWN;
  update();
}

// The name of a fault or of a job becomes a link to its runs, by the texts of these columns.
function linked(section, columns, isOfIt) {
  document.querySelectorAll(`section[aria-labelledby="${section}"] tbody tr`).forEach((row) => {
    const cell = row.cells[columns[0]];
    const wanted = columns.map((column) => row.cells[column].textContent);
    const link = document.createElement("a");
    link.textContent = cell.textContent;
    link.href = "#all";
    link.addEventListener("click", () => {
      document.getElementById("search").value = wanted.join(" ");
      chosen = (run) => isOfIt(run, ...wanted);
      shown = SHOWN;
      update();
    });
    cell.replaceChildren(link);
  });
}

if (table) {
  document.querySelector(".controls").hidden = false;
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sort(column));
    head.replaceChildren(button);
  });
  document.getElementById("search").addEventListener("input", () => { chosen = null; shown = SHOWN; update(); });
  document.getElementById("more").addEventListener("click", () => { shown += SHOWN; update(); });
  linked("faults", [1], (run, rule) => run[RULES].some((at) => data.rules[at] === rule));
  linked("jobs", [0, 1], (run, job, device) =>
    data.jobs[run[JOB]] === job && data.devices[run[DEVICE]].endsWith(device));
  update();
}
