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

async function loadPlotly() {
  const packed = document.getElementById("plotly");
  const bytes = decode(packed.textContent.trim(), packed.dataset.alphabet);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const source = await new Response(stream).blob();
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  await new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.onload = resolve;
    script.onerror = () => reject(new Error("the browser refused the embedded plotly.js"));
    script.src = url;
    document.head.append(script);
  });
  URL.revokeObjectURL(url);
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

function draw() {
  const config = { responsive: true, displaylogo: false, displayModeBar: false };
  const charts = [...document.querySelectorAll(".chart")];
  return Promise.all(charts.map((chart) => {
    const figure = JSON.parse(document.getElementById(chart.dataset.figure).textContent);
    return window.Plotly.react(chart, figure.data, themed(figure.layout), config);
  }));
}

// A browser that cannot inflate shows the tables instead.
function showTables(reason) {
  for (const chart of document.querySelectorAll(".chart")) {
    chart.hidden = true;
    chart.parentElement.querySelector("details").open = true;
  }
  console.warn(`charts are not drawn: ${reason.message}`);
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

unfoldForPrint();
if (document.querySelector(".chart")) {
  loadPlotly()
    .then(draw)
    .then(() => {
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
      document.documentElement.dataset.charts = "drawn";
    })
    .catch(showTables);
}
