"use strict";
/* What the page shows: decoded once, never changed. */
const data = JSON.parse(document.getElementById("data").textContent);

const element = (id) => document.getElementById(id);

function make(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "text") node.textContent = value;
    else if (name === "class") node.className = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

const types = { u8: Uint8Array, u32: Uint32Array, f64: Float64Array };

function decode(field) {
  let bytes;
  if (Uint8Array.fromBase64) {
    bytes = Uint8Array.fromBase64(field.data);
  } else {
    const text = atob(field.data);
    bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  }
  field.data = "";
  return new types[field.type](bytes.buffer);
}

function decodeAll(fields) {
  for (const name of Object.keys(fields)) fields[name] = decode(fields[name]);
  return fields;
}

const NONE = 0xffffffff;
const stacks = decodeAll(data.stacks);
for (const view of data.views) Object.assign(view, decodeAll(view.arrays));

const text = (number) => data.strings[number] || "";

/* Units. */
const sizeUnits = ["B", "KiB", "MiB", "GiB", "TiB"];
function size(bytes) {
  let unit = 0;
  while (bytes >= 1024 && unit < 4) { bytes /= 1024; unit++; }
  return (unit ? bytes.toFixed(1) : Math.round(bytes)) + "\u00a0" + sizeUnits[unit];
}
const timeUnits = ["ns", "\u00b5s", "ms", "s"];
function time(ns) {
  let unit = 0;
  while (ns >= 999.95 && unit < 3) { ns /= 1000; unit++; }
  return (unit ? ns.toFixed(1) : Math.round(ns)) + "\u00a0" + timeUnits[unit];
}
const percent = (share) => (100 * share).toFixed(1) + "\u00a0%";
const count = (number) => number.toLocaleString("en");

/* Round steps for an axis: 1, 2, 5 times a power of ten, or a power of two for bytes. */
function stepOf(range, most, isBytes) {
  const rough = Math.max(range / most, Number.MIN_VALUE);
  if (isBytes) return Math.max(1, 2 ** Math.ceil(Math.log2(rough)));
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= rough);
}

/* The frames of a stack that a reader wants, innermost first: [function, "file:line"]. */
function framesOf(stack, most = 64) {
  const frames = [];
  if (!stack || stack >= stacks.count.length) return frames;
  const origin = stacks.origin[stack] === NONE ? 0 : stacks.origin[stack];
  for (let i = origin; i < stacks.count[stack] && frames.length < most; i++) {
    const at = stacks.first[stack] + i;
    if (isStart(text(stacks.function[at]))) break;
    const file = text(stacks.file[at]), line = stacks.line[at];
    frames.push([text(stacks.function[at]), file ? file.replace(/^.*\//, "") + (line ? ":" + line : "") : ""]);
  }
  return frames;
}

/* What comes before a program's own main is the same for all. */
const isStart = (name) => /^(_start|__libc_start_.*|start_thread|clone3?|__clone3?)$/.test(name);

/* Colours that people with any colour vision can tell apart (after Okabe and Ito). */
const palette = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6bb1", "#b5a900", "#7f4f24"];
const others = "#9aa3af";
const kindPalette = ["#9aa3af", "#5b6b82", "#8c6bb1", "#009e73", "#b5a900", "#0072b2", "#56b4e9", "#e69f00", "#d55e00", "#7f4f24"];
const kindColour = (kind) => kindPalette[kind % kindPalette.length];

/* Call sites get the colours in the order of what they hold at the peak; Reprise's own is grey, as is the rest. */
const OWN = data.kinds.length - 1, OWN_SERIES = palette.length, REST_SERIES = palette.length + 1;
function siteSeries(view) {
  if (!view.siteSeries) {
    let next = 0;
    view.siteSeries = view.sites.map((site) => site[2] === OWN ? OWN_SERIES : next < palette.length ? next++ : REST_SERIES);
  }
  return view.siteSeries;
}
const seriesColour = (series) => palette[series] || (series === OWN_SERIES ? "#5b6b82" : others);
const siteColour = (view, site) => seriesColour(siteSeries(view)[site] ?? REST_SERIES);

const state = {
  view: data.views[0],
  colour: "site",        /* or "kind" */
  axis: "time",          /* or "operations" */
  order: "born",         /* or "weight" */
  from: 0, to: 1,        /* what is seen, in the axis' units */
  top: 0, bottom: 1,     /* rows of the lifetimes */
  cap: data.cap,
  filter: "",
};

/* Horizontal axis: positions to its units and back. */
const axisOf = (view, position) => state.axis === "time" ? view.clock[position] : position;
const axisEnd = (view) => axisOf(view, view.positions);

/* The last position at or before x. */
function positionAt(view, x) {
  if (state.axis !== "time") return Math.max(0, Math.min(view.positions - 1, Math.floor(x)));
  let low = 0, high = view.positions;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (view.clock[middle] <= x) low = middle + 1; else high = middle;
  }
  return Math.max(0, low - 1);
}

const axisText = (x) => state.axis === "time" ? time(x) : "operation " + count(Math.floor(x));
const siteName = (view, site) => {
  const row = view.sites[site];
  return row ? text(row[0]) + (row[1] ? " \u2014 " + text(row[1]) : "") : "other call sites";
};
