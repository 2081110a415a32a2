/* Memory against time: what the planner found for a row of caps. */

const curveColours = { alone: "#0072b2", swapping: "#e69f00", bound: others };

/* The point of the curve for a cap: the last one whose cap is no greater (a plan for less memory fits too). */
function pointAt(cap) {
  let found = null;
  for (const point of data.curve.points) if (point[0] <= cap) found = point;
  return found;
}

const times = (ratio) => ratio > 0 ? ratio.toFixed(ratio < 1.1 ? 3 : 2) + "\u00d7" : "no plan";

function drawCurve() {
  if (!data.curve) return;
  const { context, width, height } = begin(element("curve")), points = data.curve.points;
  const right = data.curve.peak * 1.03, ratios = points.flatMap((p) => [p[1], p[2]]).filter((r) => r > 0);
  const top = 1 + Math.max(0.05, 1.1 * (Math.max(1, ...ratios.filter((r) => r < 8)) - 1));
  const toX = (cap) => LEFT + cap / right * (width - LEFT - RIGHT);
  const toY = (ratio) => height - BOTTOM - 8 - (Math.min(ratio, top) - 1) / (top - 1) * (height - TOP - BOTTOM - 14);
  curveAxes(context, width, height, right, top, toX, toY);
  context.fillStyle = colours.grid;
  context.fillRect(LEFT, TOP, toX(data.curve.floor) - LEFT, height - TOP - BOTTOM);
  curveLine(context, points, 3, curveColours.bound, [4, 4], toX, toY);
  if (data.curve.hasSwaps) curveLine(context, points, 2, curveColours.swapping, [], toX, toY);
  curveLine(context, points, 1, curveColours.alone, [], toX, toY);
  drawMarks(context, width, right, top, toX, toY);
  if (state.cap) {
    const x = toX(state.cap), point = pointAt(state.cap);
    context.strokeStyle = colours.cap;
    context.lineWidth = 2;
    context.setLineDash([7, 4]);
    context.beginPath();
    context.moveTo(x, TOP);
    context.lineTo(x, height - BOTTOM);
    context.stroke();
    context.setLineDash([]);
    context.lineWidth = 1;
    if (point) for (const [way, colour] of [[2, curveColours.swapping], [1, curveColours.alone]]) {
      if (!(point[way] > 0) || (way === 2 && !data.curve.hasSwaps)) continue;
      context.fillStyle = colour;
      context.beginPath();
      context.arc(x, toY(point[way]), 5, 0, 7);
      context.fill();
    }
  }
}

function curveAxes(context, width, height, right, top, toX, toY) {
  const step = stepOf(top - 1, 4, false), across = stepOf(right, Math.max(2, width / 110), true);
  context.textAlign = "right";
  for (let ratio = 1; ratio <= top; ratio += step) {
    const y = Math.round(toY(ratio)) + 0.5;
    context.strokeStyle = colours.grid;
    context.beginPath();
    context.moveTo(LEFT, y);
    context.lineTo(width - RIGHT, y);
    context.stroke();
    context.fillStyle = colours.soft;
    context.fillText(ratio.toFixed(step < 0.1 ? 2 : 1) + "\u00d7", LEFT - 8, y);
  }
  context.textAlign = "center";
  for (let cap = 0; cap <= right; cap += across)
    context.fillText(cap ? size(cap) : "0", Math.max(LEFT, Math.min(toX(cap), width - 28)), height - BOTTOM + 13);
}

/* Plans of the literature, for comparison: small crosses with their names where there is room. */
function drawMarks(context, width, right, top, toX, toY) {
  const taken = [];
  for (const [name, bytes, ratio] of data.curve.marks) {
    if (bytes > right || ratio > top) continue;
    const x = toX(bytes), y = toY(ratio);
    context.strokeStyle = colours.soft;
    context.beginPath();
    context.moveTo(x - 3, y - 3);
    context.lineTo(x + 3, y + 3);
    context.moveTo(x - 3, y + 3);
    context.lineTo(x + 3, y - 3);
    context.stroke();
    const wide = context.measureText(name).width, isLate = x + wide + 10 > width;
    const box = [isLate ? x - wide - 8 : x + 7, y - 8, wide, 16];
    if (taken.some((other) => box[0] < other[0] + other[2] && other[0] < box[0] + box[2] && Math.abs(box[1] - other[1]) < 15)) continue;
    taken.push(box);
    drawLabel(context, name, box[0], y, colours.soft, "left");
  }
}

/* Steps, as a plan for less memory is all that is known between two points. */
function curveLine(context, points, way, colour, dashes, toX, toY) {
  context.strokeStyle = colour;
  context.lineWidth = way === 3 ? 1.5 : 2.5;
  context.setLineDash(dashes);
  context.beginPath();
  let before = 0;
  for (const point of points) {
    if (!(point[way] > 0)) continue;
    if (before) context.lineTo(toX(point[0]), toY(before));
    context.lineTo(toX(point[0]), toY(point[way]));
    before = point[way];
  }
  context.stroke();
  context.setLineDash([]);
  context.lineWidth = 1;
}

function sayCap() {
  const curve = data.curve, point = pointAt(state.cap);
  element("capout").textContent = size(state.cap) + ", " + percent(state.cap / curve.peak) + " of the peak";
  element("cap").setAttribute("aria-valuetext", element("capout").textContent);
  let said = "Under " + size(curve.floor) + " no plan is possible.";
  if (point) {
    said = "An iteration takes " + times(point[1]) + " its time by recomputing alone";
    if (curve.hasSwaps) said += ", " + times(point[2]) + " with swapping";
    if (point[3] > 0) said += "; no plan is below " + times(point[3]);
    said += point[4] ? ". Strategy: " + point[4] + "." : ".";
  }
  say("curve-said", said);
}

function setCap(cap) {
  state.cap = cap;
  sayCap();
  redraw(drawMemory, drawCurve);
}

function startCurve() {
  if (!data.curve || !data.curve.points.length) {
    for (const id of ["curve", "caplabel", "cap", "curvelegend"]) element(id).hidden = true;
    say("curve-said", "There is no curve: " + (data.noCurve || "no plan was found") + ".");
    return;
  }
  const slider = element("cap"), { floor, peak } = data.curve, low = floor * 0.9;
  const capOf = (value) => Math.round(low + (peak - low) * value / 1000);
  const valueOf = (cap) => Math.round((cap - low) / (peak - low) * 1000);
  slider.addEventListener("input", () => setCap(capOf(Number(slider.value))));
  const cap = data.cap && data.cap <= peak ? data.cap : Math.round((floor + peak) / 2);
  slider.value = Math.max(0, Math.min(1000, valueOf(cap)));
  element("curve").setAttribute("aria-label", "Time of an iteration against the memory cap, from " + size(floor) + " to " + size(peak) + ". Left and right move the cap.");
  element("curve").addEventListener("keydown", onKey((event) => {
    const step = { ArrowLeft: -5, ArrowDown: -5, ArrowRight: 5, ArrowUp: 5, PageDown: -50, PageUp: 50, Home: -1000, End: 1000 }[event.key];
    if (!step) return false;
    slider.value = Math.max(0, Math.min(1000, Number(slider.value) + step));
    setCap(capOf(Number(slider.value)));
    return true;
  }));
  const point = (event) => {
    const x = (event.offsetX - LEFT) / (element("curve").clientWidth - LEFT - RIGHT) * peak * 1.03;
    slider.value = Math.max(0, Math.min(1000, valueOf(x)));
    setCap(capOf(Number(slider.value)));
  };
  element("curve").addEventListener("pointerdown", (event) => { event.currentTarget.setPointerCapture(event.pointerId); point(event); });
  element("curve").addEventListener("pointermove", (event) => { if (event.buttons & 1) point(event); });
  const entries = [["recomputing alone", curveColours.alone, ""], ["no plan is below", curveColours.bound, "dashed"]];
  if (data.curve.hasSwaps) entries.splice(1, 0, ["with swapping", curveColours.swapping, ""]);
  if (data.curve.marks.length) element("curve").title = "\u00d7 marks: plans of the literature for this iteration";
  element("curvelegend").replaceChildren(...entries.map(([name, colour, dashed]) => {
    const chip = make("span", { class: "chip line " + dashed });
    chip.style.borderColor = colour;
    return make("li", {}, chip, make("span", { text: name }));
  }));
  setCap(cap);
}
