/* Bytes at the peak by call stack: outermost calls on top, what made the bytes at the bottom. */

const FLAME_ROW = 20;
let flame = null;

function addPath(root, path, bytes, kind) {
  let node = root;
  node.bytes += bytes;
  for (const part of path) {
    let child = node.children.get(part);
    if (!child) {
      child = { name: part, bytes: 0, children: new Map(), parent: node, depth: node.depth + 1, kinds: new Map() };
      node.children.set(part, child);
    }
    child.bytes += bytes;
    child.kinds.set(kind, (child.kinds.get(kind) || 0) + bytes);
    node = child;
  }
}

/* Without stacks the kinds stand for the outer calls. */
function buildFlame(view) {
  const root = { name: "held at the peak", bytes: 0, children: new Map(), parent: null, depth: 0, kinds: new Map() };
  const paths = new Map();
  for (let i = 0; i < view.born.length; i++) {
    if (view.born[i] > view.peak || view.ends[i] <= view.peak) continue;
    const key = view.stack[i] + ":" + view.kind[i] + ":" + view.name[i];
    paths.set(key, { span: i, bytes: (paths.get(key)?.bytes || 0) + view.bytes[i] });
  }
  for (const { span, bytes } of paths.values()) {
    const frames = framesOf(view.stack[span]).map(([name, place]) => name + (place ? "  " + place : "")).reverse();
    const path = frames.length ? frames : [data.kinds[view.kind[span]]];
    const name = text(view.name[span]);
    addPath(root, path.at(-1) === name ? path : [...path, name], bytes, view.kind[span]);
  }
  /* A single outermost chain says nothing: begin where it parts. */
  let top = root;
  while (top.children.size === 1 && [...top.children.values()][0].children.size) top = [...top.children.values()][0];
  flame = { root: top, zoom: top, focus: top, all: root.bytes, boxes: [] };
}

const mainKind = (node) => [...node.kinds.entries()].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
const childrenOf = (node) => [...node.children.values()].sort((a, b) => b.bytes - a.bytes);

function layFlame(node, x, width, depth, height) {
  if (width < 1.5 || (depth + 1) * FLAME_ROW > height) return;
  flame.boxes.push({ node, x, width, y: depth * FLAME_ROW });
  let at = x;
  for (const child of childrenOf(node)) {
    const wide = width * child.bytes / node.bytes;
    layFlame(child, at, wide, depth + 1, height);
    at += wide;
  }
}

function drawFlame() {
  const { context, width, height } = begin(element("flame"));
  flame.boxes = [];
  layFlame(flame.zoom, 0, width, 0, height);
  context.textAlign = "left";
  for (const { node, x, width: wide, y } of flame.boxes) {
    const colour = node === flame.root ? others : kindColour(mainKind(node));
    context.globalAlpha = node.children.size ? 0.35 : 0.6;
    context.fillStyle = colour;
    context.fillRect(x, y, Math.max(1, wide - 1), FLAME_ROW - 1);
    context.globalAlpha = 1;
    if (node === flame.focus && document.activeElement === element("flame")) {
      context.strokeStyle = colours.ink;
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, Math.max(2, wide - 3), FLAME_ROW - 3);
      context.lineWidth = 1;
    }
    if (wide > 34) {
      context.save();
      context.beginPath();
      context.rect(x + 4, y, wide - 9, FLAME_ROW);
      context.clip();
      context.fillStyle = colours.ink;
      context.fillText(node.name + "  " + size(node.bytes), x + 6, y + FLAME_ROW / 2);
      context.restore();
    }
  }
}

const flameText = (node) => node.name + ": " + size(node.bytes) + ", " + percent(node.bytes / flame.all) + " of the peak";

function zoomFlame(node) {
  flame.zoom = node;
  focusFlame(node);
}

function focusFlame(node) {
  flame.focus = node;
  say("flame-said", flameText(node));
  redraw(drawFlame);
}

function flameAt(event) {
  const hit = flame.boxes.find((box) => event.offsetX >= box.x && event.offsetX < box.x + box.width &&
    event.offsetY >= box.y && event.offsetY < box.y + FLAME_ROW);
  return hit ? hit.node : null;
}

function flameKey(event) {
  const node = flame.focus, around = node.parent ? childrenOf(node.parent) : [node], at = around.indexOf(node);
  switch (event.key) {
    case "ArrowDown": if (node.children.size) focusFlame(childrenOf(node)[0]); return true;
    case "ArrowUp": if (node !== flame.root) { if (node === flame.zoom) flame.zoom = node.parent; focusFlame(node.parent); } return true;
    case "ArrowRight": if (node !== flame.zoom && at + 1 < around.length) focusFlame(around[at + 1]); return true;
    case "ArrowLeft": if (node !== flame.zoom && at > 0) focusFlame(around[at - 1]); return true;
    case "Enter": case " ": zoomFlame(node); return true;
    case "Escape": case "Backspace": zoomFlame(flame.zoom === flame.root ? flame.root : flame.zoom.parent); return true;
    case "Home": zoomFlame(flame.root); return true;
    default: return false;
  }
}

function startFlame() {
  const canvas = element("flame");
  canvas.addEventListener("click", (event) => { const node = flameAt(event); if (node) zoomFlame(node === flame.zoom && node !== flame.root ? node.parent : node); });
  canvas.addEventListener("pointermove", (event) => {
    const node = flameAt(event);
    if (!node) { hideTip(); return; }
    const kinds = [...node.kinds.entries()].sort((a, b) => b[1] - a[1]).slice(0, 4);
    showTip([["b", node.name], ["div", size(node.bytes) + ", " + percent(node.bytes / flame.all) + " of the peak"],
      ...kinds.map(([kind, bytes]) => ["div", size(bytes) + "  " + data.kinds[kind]])], event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("keydown", onKey(flameKey));
  canvas.addEventListener("focus", () => { say("flame-said", flameText(flame.focus)); redraw(drawFlame); });
  canvas.addEventListener("blur", () => redraw(drawFlame));
  element("flameout").addEventListener("click", () => zoomFlame(flame.root));
}
