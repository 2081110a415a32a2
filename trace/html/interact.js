/* Moving, zooming and pointing in the two charts of time. */

const tip = element("tip");

function showTip(lines, x, y) {
  tip.replaceChildren(...lines.map(([tag, value, name]) => make(tag, { text: value, class: name || "" })));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(6, Math.min(x + 14, window.innerWidth - box.width - 6)) + "px";
  tip.style.top = (y + 18 + box.height > window.innerHeight ? Math.max(6, y - box.height - 12) : y + 18) + "px";
}
const hideTip = () => { tip.hidden = true; };

/* A live region says the same thing, for those who do not point. */
function say(id, value) {
  if (element(id).textContent !== value) element(id).textContent = value;
}

function setRange(from, to) {
  const end = axisEnd(state.view), least = state.axis === "time" ? end / 1e7 : 2;
  const width = Math.min(end, Math.max(least, to - from));
  state.from = Math.max(0, Math.min(from, end - width));
  state.to = state.from + width;
  redraw(drawMemory, drawLives);
}

function zoomAt(x, factor) {
  setRange(x - (x - state.from) * factor, x + (state.to - x) * factor);
}

function setRows(top, bottom) {
  const rows = rowsOf(state.view)[0].length || 1, height = Math.min(1, Math.max(4 / rows, bottom - top));
  state.top = Math.max(0, Math.min(top, 1 - height));
  state.bottom = state.top + height;
  redraw(drawLives);
}

function showWhole() {
  state.top = 0;
  state.bottom = 1;
  chosenRow = null;
  setRange(0, axisEnd(state.view));
}

/* At a position: what is held, and by whom most. */
function linesAt(view, position) {
  const bySeries = buildSeries(view);
  const rows = seriesLabels(view).map((row) => [row.name, bySeries[row.series][position]])
    .filter((row) => row[1] > 0).sort((a, b) => b[1] - a[1]).slice(0, 6);
  return [["b", size(view.held[position]) + " at " + axisText(axisOf(view, position))],
    ...(view.resident ? [["div", size(view.resident[position]) + " on the device"]] : []),
    ["div", text(view.operation[position]) + (view.place[position] ? " \u2014 " + text(view.place[position]) : "")],
    ...rows.map(([name, bytes]) => ["div", size(bytes) + "  " + name])];
}

function linesOf(view, span) {
  const life = view.clock[view.ends[span]] - view.clock[view.born[span]];
  const lines = [["b", text(view.name[span])],
    ["div", size(view.bytes[span]) + ", " + data.kinds[view.kind[span]] + ", held " + time(life) +
      ", from " + axisText(axisOf(view, view.born[span])) + " to " + axisText(axisOf(view, view.ends[span]))]];
  if (view.id === "iteration")
    lines.push(["div", view.verdict[span] === 0 ? "can be recomputed" : (view.verdict[span] === 1 ? "can be swapped; " : "must be held; ") +
      "not recomputed: " + text(view.reason[span])]);
  for (const [name, place] of framesOf(view.stack[span], 10)) lines.push(["div", name + (place ? "  " + place : ""), "frame"]);
  return lines;
}

function setCursor(position) {
  memoryCursor = position;
  const view = state.view;
  const lines = linesAt(view, position);
  say("memory-said", lines.map((line) => line[1]).join(" \u00b7 "));
  redraw(drawMemory, drawLives);
}

function choose(span) {
  chosenRow = span;
  if (span === null) { say("lives-said", ""); redraw(drawLives); return; }
  say("lives-said", linesOf(state.view, span).map((line) => line[1]).join(" \u00b7 "));
  redraw(drawLives);
}

function dragging(canvas, isLives) {
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    drag = { x: event.offsetX, y: event.offsetY, from: state.from, to: state.to, top: state.top, bottom: state.bottom, moved: false };
    canvas.setPointerCapture(event.pointerId);
    hideTip();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) { pointing(event, isLives); return; }
    const dx = (event.offsetX - drag.x) / (canvas.clientWidth - LEFT - RIGHT) * (drag.to - drag.from);
    drag.moved = drag.moved || Math.abs(event.offsetX - drag.x) + Math.abs(event.offsetY - drag.y) > 3;
    if (!drag.moved) return;
    if (isLives) {
      const dy = (event.offsetY - drag.y) / (canvas.clientHeight - TOP - BOTTOM) * (drag.bottom - drag.top);
      setRows(drag.top - dy, drag.bottom - dy);
    }
    setRange(drag.from - dx, drag.to - dx);
  });
  const release = (event) => {
    if (drag && !drag.moved && isLives && event.type === "pointerup") choose(spanAt(event.offsetX, event.offsetY));
    drag = null;
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("dblclick", showWhole);
  canvas.addEventListener("wheel", (event) => {
    const factor = Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 150);
    if (event.ctrlKey || event.metaKey) {
      zoomAt(scaleX(canvas.clientWidth).from(event.offsetX), factor);
    } else if (event.shiftKey && isLives) {
      const by = Math.exp(Math.max(-60, Math.min(60, event.deltaY || event.deltaX)) / 150);
      const at = state.top + (event.offsetY - TOP) / (canvas.clientHeight - TOP - BOTTOM) * (state.bottom - state.top);
      setRows(at - (at - state.top) * by, at + (state.bottom - at) * by);
    } else {
      return;
    }
    event.preventDefault();
  }, { passive: false });
}

function pointing(event, isLives) {
  const view = state.view, canvas = event.currentTarget;
  if (isLives) {
    const span = spanAt(event.offsetX, event.offsetY);
    if (span === null) hideTip(); else showTip(linesOf(view, span), event.clientX, event.clientY);
    return;
  }
  if (event.offsetX < LEFT || event.offsetX > canvas.clientWidth - RIGHT) { hideTip(); return; }
  const columns = columnsOf(view, canvas.clientWidth), position = columns[Math.floor(event.offsetX - LEFT)];
  if (position !== undefined) showTip(linesAt(view, position), event.clientX, event.clientY);
}

function commonKey(event) {
  const width = state.to - state.from, middle = (state.from + state.to) / 2;
  switch (event.key) {
    case "+": case "=": zoomAt(memoryCursor === null ? middle : axisOf(state.view, memoryCursor), 0.7); return true;
    case "-": case "_": zoomAt(middle, 1 / 0.7); return true;
    case "Home": case "0": showWhole(); return true;
    case "ArrowLeft": if (!event.shiftKey) return false; setRange(state.from - width / 8, state.to - width / 8); return true;
    case "ArrowRight": if (!event.shiftKey) return false; setRange(state.from + width / 8, state.to + width / 8); return true;
    default: return false;
  }
}

/* Left and right move the cursor by a pixel's worth, and the view with it. */
function memoryKey(event) {
  if (commonKey(event)) return true;
  const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 }[event.key];
  if (!step) return false;
  const view = state.view, canvas = element("memory");
  const unit = Math.max((state.to - state.from) / (canvas.clientWidth - LEFT - RIGHT) * 4, 0);
  const now = memoryCursor === null ? view.peak : memoryCursor;
  let next = positionAt(view, axisOf(view, now) + step * unit);
  if (next === now) next = Math.max(0, Math.min(view.positions - 1, now + Math.sign(step)));
  const x = axisOf(view, next);
  if (x < state.from || x > state.to) setRange(x - (state.to - state.from) / 2, x + (state.to - state.from) / 2);
  setCursor(next);
  return true;
}

function livesKey(event) {
  if (commonKey(event)) return true;
  const view = state.view, rows = rowsOf(view)[0], range = state.bottom - state.top;
  const step = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10 }[event.key];
  if (step) {
    const now = chosenRow === null ? -1 : rows.indexOf(chosenRow);
    const jump = Math.max(1, Math.round(range * rows.length / 40)) * step;
    const next = now < 0 ? Math.round(state.top * rows.length) : Math.max(0, Math.min(rows.length - 1, now + jump));
    const at = (next + 0.5) / rows.length;
    if (at < state.top || at > state.bottom) setRows(at - range / 2, at + range / 2);
    if (rows.length) choose(rows[next]);
    return true;
  }
  if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    const by = (state.to - state.from) / 12 * (event.key === "ArrowLeft" ? -1 : 1);
    setRange(state.from + by, state.to + by);
    return true;
  }
  if (event.key === "Enter" && chosenRow !== null) {
    const from = axisOf(view, view.born[chosenRow]), to = axisOf(view, view.ends[chosenRow]), at = rows.indexOf(chosenRow) / rows.length;
    setRange(from - (to - from) * 0.1, to + (to - from) * 0.1);
    setRows(at - 8 / rows.length, at + 8 / rows.length);
    return true;
  }
  if (event.key === "Escape") { choose(null); return true; }
  return false;
}

const onKey = (handler) => (event) => {
  if (!event.altKey && !event.ctrlKey && !event.metaKey && handler(event)) event.preventDefault();
};
