"use strict";

// Four bytes as five characters; the inverse of bundle.py.
function decode(text, alphabet) {
  const values = new Uint8Array(128);
  for (let i = 0; i < alphabet.length; i++) values[alphabet.charCodeAt(i)] = i;
  const groups = Math.ceil(text.length / 5);
  const bytes = new DataView(new ArrayBuffer(groups * 4));
  for (let group = 0, at = 0; group < groups; group++) {
    let word = 0;
    for (let i = 0; i < 5; i++, at++) {
      word = word * 85 + (at < text.length ? values[text.charCodeAt(at)] : 84);
    }
    bytes.setUint32(group * 4, word);
  }
  return bytes.buffer.slice(0, groups * 4 - (groups * 5 - text.length));
}

// In a notebook one report carries plotly.js for all: the others ask every frame of the window for it.
const WANTED = "tfdoctor: plotly.js?";
const WAIT_MS = 10000;

function* framesIn(win) {
  yield win;
  for (let at = 0; at < win.length; at++) yield* framesIn(win[at]);
}

function carry(packed) {
  addEventListener("message", ({ data, source }) => {
    if (data === WANTED) source.postMessage({ plotly: packed }, "*");
  });
  return packed;
}

function fromAnotherReport() {
  return new Promise((resolve, reject) => {
    const ask = () => [...framesIn(top)].forEach((frame) => frame.postMessage(WANTED, "*"));
    const asking = setInterval(ask, 500);
    const missing = new Error("the first report of this notebook has plotly.js, and is not shown: run its cell again");
    setTimeout(() => (clearInterval(asking), reject(missing)), WAIT_MS);
    addEventListener("message", ({ data }) => {
      if (!data?.plotly) return;
      clearInterval(asking);
      resolve(carry(data.plotly));
    });
    if (top === window) reject(missing);
    else ask();
  });
}

// The page's policy knows the hash of the script, so that no other text can run in its place.
async function loadPlotly() {
  const element = document.getElementById("plotly");
  const packed = element.textContent.trim();
  const bytes = decode(packed ? carry(packed) : await fromAnotherReport(), element.dataset.alphabet);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.head.append(script);
  if (!window.Plotly) throw new Error("the browser refused the embedded plotly.js");
}

// What the page's own style says at this moment, so that charts follow light, dark and print.
function themed(layout) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = { gridcolor: colour("--line"), linecolor: colour("--line"), zeroline: false };
  const text = { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("--quiet") };
  const hover = { bgcolor: colour("--raised"), bordercolor: colour("--line") };
  return {
    ...layout,
    font: text,
    xaxis: { ...layout.xaxis, ...axis },
    yaxis: { ...layout.yaxis, ...axis },
    hoverlabel: { ...layout.hoverlabel, ...hover, font: { ...text, color: colour("--ink") } },
  };
}

// Pixels of a chart from which the labels of its points lie apart.
const LABELS_FROM = 560;

// A chart in a folded element has no width: it is drawn when it is unfolded.
function draw() {
  const config = { responsive: true, displaylogo: false, displayModeBar: false };
  const charts = [...document.querySelectorAll("details[open] > figure > .chart")];
  return Promise.all(charts.map((chart) => {
    const figure = JSON.parse(document.getElementById(chart.dataset.figure).textContent);
    if (chart.clientWidth < LABELS_FROM) for (const trace of figure.data) trace.mode = trace.mode?.replace("+text", "");
    return window.Plotly.react(chart, figure.data, themed(figure.layout), config);
  }));
}

// A browser that cannot inflate shows the tables instead.
function showTables(reason) {
  for (const chart of document.querySelectorAll(".chart")) {
    chart.hidden = true;
    for (const details of [chart.closest("details"), chart.parentElement.querySelector("details")]) details.open = true;
  }
  const told = document.createElement("p");
  told.textContent = `Charts are not drawn: ${reason.message}.`;
  document.getElementById("pictures").after(told);
  console.warn(told.textContent);
}

// Paper cannot unfold: everything is open while it prints.
function unfoldForPrint() {
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const details of folded) details.open = true;
    if (window.Plotly) draw();
  });
  addEventListener("afterprint", () => {
    for (const details of folded) details.open = false;
    if (window.Plotly) draw();
  });
}

// Pixels from which a bar has its name on it.
const LABELLED = 40;

// What may stand for an operation, the longest first: without its kernel, without outer scopes, its layer, its type.
function shortNames(name) {
  const parts = name.replace(/ \(.*\)$/, "").split("/");
  const ends = parts.map((_, at) => parts.slice(at).join("/"));
  return [...ends.slice(0, -1), ...parts.slice(-3)];
}

// The layer of an operation below its model, and the block in whose name layers agree up to a number: "block6a_dwconv"
// of "block6a", "block_1_expand" of "block_1". An optimizer's operations have none, and are between those of layers.
function layerAndBlock(name) {
  const parts = name.replace(/ \(.*\)$/, "").split("/").filter((part) => part !== "gradient_tape");
  const layer = parts.length > 2 ? parts[1] : "";
  return [layer, /^(?:[A-Za-z]+_)*?[^_]*\d[^_]*(?=_)/.exec(layer)?.[0] ?? ""];
}

// The bars of one lane on a canvas; bars are sorted and do not overlap, so those in view are found by bisection.
class Lane {
  constructor(svg, bars, colours, parts, names, once) {
    this.bars = bars;
    this.names = names;
    this.scopes = names.map(layerAndBlock);
    this.once = once; // neighbours of one name have it on the first of them alone
    this.colours = bars.map((bar) => colours[parts[bar[2]]].fill);
    this.inks = bars.map((bar) => colours[parts[bar[2]]].ink);
    this.canvas = document.createElement("canvas");
    for (const name of ["role", "aria-label"]) this.canvas.setAttribute(name, svg.getAttribute(name));
    svg.replaceWith(this.canvas);
  }

  // The first bar that ends after a time.
  first(time) {
    let low = 0;
    let high = this.bars.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.bars[middle][0] + this.bars[middle][1] <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // Bars of which `lit` is true have a line below them, and the others are pale; undefined is all alike.
  draw(start, span, lit, ink) {
    const ratio = devicePixelRatio || 1;
    const { clientWidth, clientHeight } = this.canvas;
    const [width, height] = [Math.round(clientWidth * ratio), Math.round(clientHeight * ratio)];
    if (this.canvas.width !== width) this.canvas.width = width;
    if (this.canvas.height !== height) this.canvas.height = height;
    const context = this.canvas.getContext("2d");
    context.clearRect(0, 0, width, height);
    const scale = width / span;
    this.written = undefined;
    this.taken = [];
    const first = this.first(start);
    for (let at = first; at < this.bars.length && this.bars[at][0] < start + span; at++) {
      const [begin, length] = this.bars[at];
      const wide = length * scale;
      const [left, drawn] = [(begin - start) * scale, Math.max(wide > 3 * ratio ? wide - ratio : wide, ratio)];
      const marked = lit?.[this.bars[at][5]];
      context.globalAlpha = lit && !marked ? 0.3 : 1;
      context.fillStyle = this.colours[at];
      context.fillRect(left, 0, drawn, height);
      if (wide > LABELLED * ratio) this.write(context, at, left, wide, ratio);
      context.fillStyle = ink;
      if (marked) context.fillRect(left, height - 3 * ratio, drawn, 3 * ratio);
    }
    context.globalAlpha = 1;
    for (const level of [0, 1]) this.writeGroups(context, first, start, start + span, scale, level, ratio);
  }

  // The name of a layer (level 0) or of a block (1) over its bars, where none of them has room for its own.
  writeGroups(context, first, start, end, scale, level, ratio) {
    let group;
    const close = () => group?.name && this.writeOver(context, group, start, scale, ratio);
    for (let at = first; at < this.bars.length && this.bars[at][0] < end; at++) {
      const [begin, length, , name] = this.bars[at];
      const scope = this.scopes[name][level];
      if (!this.scopes[name][0]) continue;
      if (group?.name !== scope) {
        close();
        group = { name: scope, begin: Math.max(begin, start), at };
      }
      group.end = Math.min(begin + length, end);
    }
    close();
  }

  writeOver(context, { name, begin, end, at }, start, scale, ratio) {
    context.font = `${10 * ratio}px system-ui, sans-serif`;
    const wide = context.measureText(name).width + 6 * ratio;
    const left = ((begin + end) / 2 - start) * scale - wide / 2;
    if (wide > (end - begin) * scale || this.taken.some(([from, to]) => left < to && from < left + wide)) return;
    this.taken.push([left, left + wide]);
    context.fillStyle = this.colours[at];
    context.fillRect(left, 0, wide, this.canvas.height);
    context.fillStyle = this.inks[at];
    context.textBaseline = "middle";
    context.fillText(name, left + 3 * ratio, this.canvas.height / 2 + ratio / 2);
  }

  // The name on its bar, as far as it fits.
  write(context, at, left, wide, ratio) {
    const name = this.names[this.bars[at][3]];
    if (this.once && name === this.written) return;
    this.written = name;
    context.font = `${10 * ratio}px system-ui, sans-serif`;
    const fits = (text) => context.measureText(text).width <= wide - 8 * ratio;
    const text = shortNames(name).find(fits);
    if (!text) return;
    context.fillStyle = this.inks[at];
    context.textBaseline = "middle";
    const begins = Math.max(left, 0) + 4 * ratio;
    this.taken.push([begins, begins + context.measureText(text).width]);
    context.fillText(text, begins, this.canvas.height / 2 + ratio / 2);
  }
}

// A time as the report writes it.
function milliseconds(us) {
  if (us >= 1e6) return `${(us / 1e6).toPrecision(3)}\u00a0s`;
  if (us >= 1000) return `${(us / 1000).toPrecision(3)}\u00a0ms`;
  if (!us) return "0";
  return us >= 10 ? `${(us / 1000).toFixed(2)}\u00a0ms` : `${us.toPrecision(2)}\u00a0\u00b5s`;
}

// A time on the axis, with as many digits as tell it from the next one, a step later.
function tickTime(us, step) {
  const usual = milliseconds(us);
  const unit = usual.split("\u00a0")[1];
  const scale = { s: 1e6, ms: 1000 }[unit] ?? 1;
  const decimals = Math.max(0, -Math.floor(Math.log10(step / scale) + 1e-9));
  const exact = us ? `${(us / scale).toFixed(decimals)}\u00a0${unit}` : usual;
  return exact.length > usual.length ? exact : usual;
}

// Pixels of the axis for a time on it.
const TICK = 90;

// Zoom with the buttons, + and -, or Ctrl and the wheel; move with a drag or the arrow keys.
class Timeline {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.total = data.total_ms * 1000;
    this.start = 0;
    this.span = this.total;
    this.axis = root.querySelector(".axis");
    this.output = root.querySelector("output");
    const colours = {};
    for (const path of root.querySelectorAll("path")) {
      colours[path.classList[0].slice(5)] = { fill: getComputedStyle(path).fill, ink: path.dataset.ink };
    }
    const pictures = [...root.querySelectorAll(".lane svg")];
    this.lanes = data.lanes.map((lane, at) => new Lane(pictures[at], lane.bars, colours, data.parts, data.names, !at));
    root.querySelector(".controls").hidden = false;
    this.hint = document.querySelector(".marks") ? "Point at a finding to see its bars, or at a bar." : "";
    this.findings = [...document.querySelectorAll("[data-rules]")];
    this.listen();
    this.listenToFindings();
    this.light();
  }

  view(start, span) {
    this.span = this.possible(span);
    this.start = Math.min(this.total - this.span, Math.max(0, start));
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      const ink = getComputedStyle(this.root).color;
      for (const lane of this.lanes) lane.draw(this.start, this.span, this.lit, ink);
      this.label();
    });
  }

  possible(span) {
    return Math.min(this.total, Math.max(this.total / 10000, span));
  }

  // The time at a share of the view stays there, as far as the step's ends allow.
  zoom(factor, at = 0.5) {
    const span = this.possible(this.span / factor);
    this.view(this.start + at * (this.span - span), span);
  }

  label() {
    const rough = this.span / Math.max(2, Math.min(6, this.axis.clientWidth / TICK));
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((length) => length >= rough);
    const ticks = [];
    for (let n = Math.ceil(this.start / step); n * step <= this.start + 0.85 * this.span; n++) {
      const tick = document.createElement("span");
      tick.style.left = `${(100 * (n * step - this.start)) / this.span}%`;
      tick.textContent = tickTime(n * step, step);
      ticks.push(tick);
    }
    this.axis.replaceChildren(...ticks);
  }

  // What lies under a point of the page.
  tell(event) {
    const number = this.lanes.findIndex((lane) => lane.canvas === event.target);
    if (number < 0) return;
    const lane = this.lanes[number];
    const time = this.start + this.share(event) * this.span;
    const near = lane.bars[lane.first(time - this.span / 400)];
    const bar = near && near[0] <= time + this.span / 400 ? near : undefined;
    const findings = this.point(bar && this.data.rules?.[bar[5]]);
    if (!bar) return this.output.replaceChildren(this.hint);
    const more = bar[4] > 1 ? ` and ${bar[4] - 1} more` : "";
    const what = `${this.data.names[bar[3]]}${more}: ${milliseconds(bar[1])}, from ${milliseconds(bar[0])}`;
    this.output.textContent = [what, ...findings.map((finding) => `finding ${finding}`)].join("; ");
  }

  // Mark the findings about a bar; return what the links above the timeline say of them.
  point(rules = []) {
    const about = (one) => one.dataset.rules.split(" ").some((rule) => rules.includes(rule));
    for (const one of this.findings) one.classList.toggle("lit", about(one));
    return this.findings.filter((one) => one.closest(".marks") && about(one)).map((one) => one.textContent);
  }

  // Mark the bars that a finding is about, and say how many there are; without one all are alike again.
  light(finding) {
    const wanted = finding?.dataset.rules.split(" ");
    this.lit = wanted && (this.data.rules || []).map((rules) => rules.some((rule) => wanted.includes(rule)));
    const count = wanted && this.data.lanes.flatMap((lane) => lane.bars).filter((bar) => this.lit[bar[5]]).length;
    if (!count) this.lit = undefined;
    this.output.textContent = count ? `marked: ${count} ${count === 1 ? "bar" : "bars"}` : this.hint;
    this.view(this.start, this.span);
  }

  listenToFindings() {
    for (const finding of this.findings) {
      for (const kind of ["pointerenter", "focusin"]) finding.addEventListener(kind, () => this.light(finding));
      for (const kind of ["pointerleave", "focusout"]) finding.addEventListener(kind, () => this.light());
    }
    this.root.addEventListener("pointerleave", () => {
      this.point();
      this.output.textContent = this.hint;
    });
  }

  share(event) {
    const box = this.lanes[0].canvas.getBoundingClientRect();
    return (event.clientX - box.left) / box.width;
  }

  listen() {
    for (const button of this.root.querySelectorAll("button")) {
      const factor = Number(button.dataset.zoom);
      button.addEventListener("click", () => (factor ? this.zoom(factor) : this.view(0, this.total)));
    }
    const keys = { "+": [2, 0], "=": [2, 0], "-": [0.5, 0], ArrowLeft: [1, -0.25], ArrowRight: [1, 0.25] };
    this.root.addEventListener("keydown", (event) => {
      const change = keys[event.key];
      if (!change || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      if (change[0] !== 1) this.zoom(change[0]);
      else this.view(this.start + change[1] * this.span, this.span);
    });
    this.root.addEventListener("wheel", (event) => {
      if (!event.ctrlKey || event.target.tagName !== "CANVAS") return;
      event.preventDefault();
      this.zoom(2 ** (-event.deltaY / 200), this.share(event));
    }, { passive: false });
    this.root.addEventListener("pointerdown", (event) => {
      if (event.target.tagName !== "CANVAS" || event.button) return;
      this.held = { x: event.clientX, start: this.start };
      event.target.setPointerCapture(event.pointerId);
    });
    this.root.addEventListener("pointermove", (event) => {
      if (!this.held) return this.tell(event);
      const width = this.lanes[0].canvas.clientWidth;
      this.view(this.held.start - ((event.clientX - this.held.x) / width) * this.span, this.span);
    });
    for (const end of ["pointerup", "pointercancel"]) this.root.addEventListener(end, () => (this.held = null));
    new ResizeObserver(() => this.view(this.start, this.span)).observe(this.root);
  }
}

function drawTimeline() {
  const root = document.querySelector(".timeline");
  const data = root && JSON.parse(document.getElementById("diagnosis").textContent).timeline;
  if (data) new Timeline(root, data);
}

// A link to what is folded shows it.
function unfoldTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let details = target?.closest("details"); details; details = details.parentElement.closest("details")) details.open = true;
}

unfoldForPrint();
addEventListener("hashchange", unfoldTarget);
unfoldTarget();
drawTimeline();
if (document.querySelector(".chart")) {
  loadPlotly()
    .then(draw)
    .then(() => {
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
      for (const details of document.querySelectorAll("#pictures ~ details")) details.addEventListener("toggle", draw);
      document.documentElement.dataset.charts = "drawn";
    })
    .catch(showTables);
}
