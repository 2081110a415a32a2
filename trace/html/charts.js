/* The two charts that share the horizontal axis, and what all canvases need. */

const LEFT = 74, RIGHT = 12, BOTTOM = 24, TOP = 10;

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
let colours = {};
function readColours() {
  for (const name of ["ink", "soft", "line", "grid", "sheet", "accent", "cap", "focus"]) colours[name] = css("--" + name);
}

/* The canvas in device pixels; the context draws in CSS pixels. */
function begin(canvas) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "12px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
  context.textBaseline = "middle";
  return { context, width, height };
}

/* A drawing is made once per frame, however often it is asked for. */
const wanted = new Set();
const frameTimes = [];
function redraw(...drawings) {
  if (!wanted.size) requestAnimationFrame(() => {
    const begun = performance.now(), now = [...wanted];
    wanted.clear();
    for (const draw of now) draw();
    frameTimes.push(performance.now() - begun);
    if (frameTimes.length > 1000) frameTimes.splice(0, 500);
  });
  for (const draw of drawings) wanted.add(draw);
}

const scaleX = (width) => {
  const factor = (width - LEFT - RIGHT) / (state.to - state.from);
  return { to: (x) => LEFT + (x - state.from) * factor, from: (pixel) => state.from + (pixel - LEFT) / factor };
};

function drawTimeAxis(context, width, height) {
  const scale = scaleX(width), step = stepOf(state.to - state.from, Math.max(2, width / 130), false);
  context.strokeStyle = colours.grid;
  context.fillStyle = colours.soft;
  context.textAlign = "center";
  for (let x = Math.ceil(state.from / step) * step; x <= state.to; x += step) {
    const at = Math.round(scale.to(x)) + 0.5;
    context.beginPath();
    context.moveTo(at, TOP);
    context.lineTo(at, height - BOTTOM);
    context.stroke();
    if (at < width - 24)
      context.fillText(state.axis === "time" ? time(x) : count(Math.round(x)), at, height - BOTTOM + 13);
  }
}

function drawBytesAxis(context, width, height, most, toY) {
  const step = stepOf(most, Math.max(2, height / 60), true);
  context.textAlign = "right";
  for (let bytes = 0; bytes <= most; bytes += step) {
    const y = Math.round(toY(bytes)) + 0.5;
    context.strokeStyle = bytes ? colours.grid : colours.line;
    context.beginPath();
    context.moveTo(LEFT, y);
    context.lineTo(width - RIGHT, y);
    context.stroke();
    context.fillStyle = colours.soft;
    context.fillText(bytes ? size(bytes) : "0", LEFT - 8, y);
  }
}

/* Per column of pixels the position at which most was held in it. */
function columnsOf(view, width) {
  const scale = scaleX(width), columns = [];
  let before = positionAt(view, state.from);
  for (let pixel = LEFT; pixel < width - RIGHT; pixel++) {
    const x = scale.from(pixel + 1);
    if (scale.from(pixel) >= axisEnd(view)) break;
    const last = positionAt(view, x);
    columns.push(highest(view, before, Math.max(last, before) + 1));
    before = last;
  }
  return columns;
}

let memoryCursor = null; /* a position */

function drawMemory() {
  const canvas = element("memory"), view = state.view;
  const { context, width, height } = begin(canvas);
  const most = 1.06 * Math.max(view.peakBytes, state.cap && state.cap < 2 * view.peakBytes ? state.cap : 0, 1);
  const toY = (bytes) => height - BOTTOM - bytes / most * (height - TOP - BOTTOM);
  drawTimeAxis(context, width, height);
  drawBytesAxis(context, width, height, most, toY);
  const bySeries = buildSeries(view), columns = columnsOf(view, width);
  const base = new Float64Array(columns.length);
  for (const series of drawingOrder(view)) {
    const values = bySeries[series];
    context.fillStyle = state.colour === "kind" ? (series < data.kinds.length ? kindColour(series) : others) : seriesColour(series);
    context.beginPath();
    for (let i = 0; i < columns.length; i++) {
      const y = toY(base[i] + values[columns[i]]);
      context.lineTo(LEFT + i, y);
      context.lineTo(LEFT + i + 1, y);
    }
    for (let i = columns.length; i-- > 0;) {
      const y = toY(base[i]);
      context.lineTo(LEFT + i + 1, y);
      context.lineTo(LEFT + i, y);
      base[i] += values[columns[i]];
    }
    context.fill();
  }
  if (view.resident) drawResident(context, width, toY);
  drawCap(context, width, toY, most);
  drawPeak(context, width, toY);
  if (memoryCursor !== null) drawCursor(context, width, height, memoryCursor);
}

function drawLabel(context, label, x, y, colour, align) {
  context.textAlign = align;
  context.lineWidth = 4;
  context.strokeStyle = colours.sheet;
  context.lineJoin = "round";
  context.strokeText(label, x, y);
  context.lineWidth = 1;
  context.fillStyle = colour;
  context.fillText(label, x, y);
}

/* What the job took of the device: the most within each column of pixels. */
function drawResident(context, width, toY) {
  const view = state.view, scale = scaleX(width);
  context.lineWidth = 2;
  context.strokeStyle = colours.ink;
  context.beginPath();
  let before = positionAt(view, state.from);
  for (let pixel = LEFT; pixel < width - RIGHT; pixel++) {
    const last = positionAt(view, scale.from(pixel + 1));
    let most = 0;
    for (let p = before; p <= last; p++) if (view.resident[p] > most) most = view.resident[p];
    const y = toY(most);
    context.lineTo(pixel, y);
    context.lineTo(pixel + 1, y);
    before = last;
    if (scale.from(pixel) >= axisEnd(view)) break;
  }
  context.stroke();
  context.lineWidth = 1;
}

function drawCap(context, width, toY, most) {
  if (!state.cap || state.cap > most) return;
  const y = toY(state.cap);
  context.strokeStyle = colours.cap;
  context.lineWidth = 2;
  context.setLineDash([7, 4]);
  context.beginPath();
  context.moveTo(LEFT, y);
  context.lineTo(width - RIGHT, y);
  context.stroke();
  context.setLineDash([]);
  context.lineWidth = 1;
  drawLabel(context, "cap " + size(state.cap), width - RIGHT - 6, y - 9, colours.cap, "right");
}

function drawPeak(context, width, toY) {
  const view = state.view, x = axisOf(view, view.peak);
  if (x < state.from || x > state.to) return;
  const at = Math.max(LEFT + 4, Math.min(width - RIGHT - 4, scaleX(width).to(x)));
  const y = toY(view.peakBytes);
  context.fillStyle = colours.ink;
  context.beginPath();
  context.arc(at, y, 4, 0, 7);
  context.fill();
  const isLate = at > width * 0.7;
  drawLabel(context, "peak " + size(view.peakBytes), at + (isLate ? -9 : 9), y + 1, colours.ink, isLate ? "right" : "left");
}

function drawCursor(context, width, height, position) {
  const at = Math.round(scaleX(width).to(axisOf(state.view, position))) + 0.5;
  context.strokeStyle = colours.ink;
  context.beginPath();
  context.moveTo(at, TOP);
  context.lineTo(at, height - BOTTOM);
  context.stroke();
}

let chosenRow = null; /* a span */

function rowScale(height) {
  const rows = rowsOf(state.view)[0].length || 1, top = state.top * rows, bottom = state.bottom * rows;
  const each = (height - TOP - BOTTOM) / (bottom - top);
  return { rows, top, bottom, each };
}

function drawLives() {
  const canvas = element("lives"), view = state.view;
  const { context, width, height } = begin(canvas), scale = scaleX(width);
  drawTimeAxis(context, width, height);
  const levels = rowsOf(view), { top, bottom, each } = rowScale(height);
  const level = Math.min(levels.length - 1, Math.max(0, Math.ceil(Math.log2(1.5 / each)))), group = 2 ** level;
  const rows = levels[level], thick = each * group, gap = thick > 5 ? 1 : 0;
  const byColour = new Map();
  for (let row = Math.floor(top / group); row < rows.length && row * group < bottom; row++) {
    const span = rows[row], x0 = axisOf(view, view.born[span]), x1 = axisOf(view, view.ends[span]);
    if (x1 < state.from || x0 > state.to) continue;
    const colour = spanColour(view, span);
    if (!byColour.has(colour)) byColour.set(colour, []);
    byColour.get(colour).push(row, span);
  }
  context.save();
  context.beginPath();
  context.rect(LEFT, TOP, width - LEFT - RIGHT, height - TOP - BOTTOM);
  context.clip();
  for (const [colour, list] of byColour) {
    context.fillStyle = colour;
    for (let i = 0; i < list.length; i += 2) {
      const span = list[i + 1], x0 = Math.max(LEFT - 2, scale.to(axisOf(view, view.born[span])));
      const x1 = Math.min(width, scale.to(axisOf(view, view.ends[span])));
      context.fillRect(x0, TOP + (list[i] * group - top) * each, Math.max(1, x1 - x0), Math.max(1, thick - gap));
      if (span === chosenRow) {
        context.strokeStyle = colours.ink;
        context.lineWidth = 2;
        context.strokeRect(x0, TOP + (list[i] * group - top) * each, Math.max(2, x1 - x0), Math.max(2, thick - gap));
        context.lineWidth = 1;
      }
    }
  }
  if (each > 15) labelRows(context, view, levels[0], top, bottom, each, width, scale);
  context.restore();
  drawRowAxis(context, height, level, group);
  if (memoryCursor !== null) drawCursor(context, width, height, memoryCursor);
}

function labelRows(context, view, rows, top, bottom, each, width, scale) {
  for (let row = Math.floor(top); row < rows.length && row < bottom; row++) {
    const span = rows[row], x = Math.max(LEFT, scale.to(axisOf(view, view.born[span]))) + 5;
    if (x > width - RIGHT - 40) continue;
    drawLabel(context, text(view.name[span]) + "  " + size(view.bytes[span]), x, TOP + (row - top + 0.5) * each, colours.ink, "left");
  }
}

function drawRowAxis(context, height, level, group) {
  const { rows } = rowScale(height);
  context.fillStyle = colours.soft;
  context.textAlign = "right";
  context.fillText(count(rows), LEFT - 8, TOP + 7);
  context.fillText(state.view.id === "run" ? "allocations" : "tensors", LEFT - 8, TOP + 23);
  if (level) {
    context.fillText("1 of " + count(group), LEFT - 8, TOP + 47);
    context.fillText("drawn", LEFT - 8, TOP + 63);
  }
}

/* The span drawn at a pixel, or null. */
function spanAt(pixelX, pixelY) {
  const canvas = element("lives"), height = canvas.clientHeight, view = state.view;
  const levels = rowsOf(view), { top, each } = rowScale(height);
  const level = Math.min(levels.length - 1, Math.max(0, Math.ceil(Math.log2(1.5 / each)))), group = 2 ** level;
  const row = Math.floor((top + (pixelY - TOP) / each) / group), span = levels[level][row];
  if (span === undefined || pixelY < TOP || pixelY > height - BOTTOM) return null;
  const scale = scaleX(canvas.clientWidth);
  const x0 = scale.to(axisOf(view, view.born[span])), x1 = scale.to(axisOf(view, view.ends[span]));
  return pixelX >= x0 - 2 && pixelX <= Math.max(x1, x0 + 1) + 2 ? span : null;
}
