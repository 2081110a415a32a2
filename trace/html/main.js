/* Puts the page together. */

function chip(colour) {
  const node = make("span", { class: "chip", "aria-hidden": "true" });
  node.style.background = colour;
  return node;
}

/* A row of buttons of which one is pressed. */
function choice(id, options, now, onChoose) {
  const buttons = options.map(([value, label]) => {
    const button = make("button", { type: "button", text: label, "aria-pressed": String(value === now) });
    button.addEventListener("click", () => {
      buttons.forEach((other, i) => other.setAttribute("aria-pressed", String(options[i][0] === value)));
      onChoose(value);
    });
    return button;
  });
  element(id).replaceChildren(...buttons);
}

function showLegend() {
  const view = state.view;
  const onDevice = make("span", { class: "chip line", "aria-hidden": "true" });
  onDevice.style.borderColor = "var(--ink)";
  const line = view.resident ? [make("li", {}, onDevice, make("span", { text: "on the device" }))] : [];
  element("legend").replaceChildren(...line, ...seriesLabels(view).filter((row) => row.bytes > 0).map((row) =>
    make("li", {}, chip(row.colour), make("span", { text: row.name, title: row.name }), make("em", { text: size(row.bytes) }))));
}

function showKinds() {
  const view = state.view;
  const rows = data.kinds.map((name, kind) => ({ name, kind, bytes: view.kindBytes[kind] })).filter((row) => row.bytes > 0)
    .sort((a, b) => b.bytes - a.bytes);
  element("kinds").replaceChildren(...rows.map((row) => {
    const part = make("i", { title: row.name + " " + size(row.bytes) });
    part.style.flex = row.bytes / view.peakBytes + " 0 0";
    part.style.background = kindColour(row.kind);
    return part;
  }));
  element("kinds").setAttribute("aria-label", rows.map((row) => row.name + " " + percent(row.bytes / view.peakBytes)).join(", "));
  element("kindlist").replaceChildren(...rows.map((row) =>
    make("li", {}, chip(kindColour(row.kind)), make("span", { text: row.name }),
      make("em", { text: size(row.bytes) + "  " + percent(row.bytes / view.peakBytes) }))));
}

function showSummary() {
  const view = state.view, analysed = data.views.find((v) => v.id === "iteration");
  const most = view.sites.findIndex((site) => site[2] !== OWN);
  let sentence = view.id === "run" ? "The program held at most " + size(view.peakBytes) + ", " + time(view.clock[view.peak]) + " into the run"
    : "The iteration holds at most " + size(view.peakBytes) + ", at operation " + count(view.peakOperation) + " of " + count(view.positionsRecorded);
  if (most >= 0 && view.peakBytes) sentence += "; " + percent(view.sites[most][5] / view.peakBytes) + " of it by " + siteName(view, most);
  sentence += ".";
  element("sentence").textContent = sentence;
  const tiles = [[size(view.peakBytes), "peak" + (view.peakBytes && data.deviceBytes ? ", of " + size(data.deviceBytes) + " on the device" : "")],
    [data.cap ? size(data.cap) : "none", "cap of this run"]];
  if (analysed) tiles.push([size(analysed.verdictBytes[0]), "of the iteration\u2019s peak can be recomputed"],
    [time(analysed.clock[analysed.positions]), "one iteration, " + count(analysed.positionsRecorded) + " operations"]);
  tiles.push([count(view.spanTotal), (view.id === "run" ? "allocations" : "tensors") + " over this time"]);
  if (data.iterations.length) tiles.push([count(data.iterations.length), "iterations recorded"]);
  element("tiles").replaceChildren(...tiles.map(([value, label]) => make("div", { class: "tile" }, make("b", { text: value }), make("span", { text: label }))));
}

function showView(id) {
  state.view = data.views.find((view) => view.id === id);
  memoryCursor = null;
  say("memory-said", "");
  say("lives-said", "");
  element("memory").setAttribute("aria-label", "Memory held over time. Peak " + size(state.view.peakBytes) + ". Left and right move a cursor, plus and minus zoom.");
  element("lives").setAttribute("aria-label", count(state.view.born.length) + " lifetimes as bars. Up and down choose one.");
  showSummary();
  showKinds();
  showLegend();
  buildFlame(state.view);
  showWhole();
  showTable();
  redraw(drawFlame);
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  const isDark = css("--paper") === "#12161d";
  element("theme").textContent = isDark ? "Light" : "Dark";
  element("theme").setAttribute("aria-label", "Change to " + (isDark ? "light" : "dark") + " colours");
  readColours();
  redraw(drawMemory, drawLives, drawCurve, drawFlame);
}

function startCharts() {
  const memory = element("memory"), lives = element("lives");
  dragging(memory, false);
  dragging(lives, true);
  memory.addEventListener("keydown", onKey(memoryKey));
  lives.addEventListener("keydown", onKey(livesKey));
  memory.addEventListener("click", (event) => {
    const position = columnsOf(state.view, memory.clientWidth)[Math.floor(event.offsetX - LEFT)];
    if (position !== undefined) setCursor(position);
  });
  const middle = () => (state.from + state.to) / 2;
  element("zoomin").addEventListener("click", () => zoomAt(middle(), 0.6));
  element("zoomout").addEventListener("click", () => zoomAt(middle(), 1 / 0.6));
  element("reset").addEventListener("click", showWhole);
  element("filter").addEventListener("input", (event) => {
    state.filter = event.target.value;
    choose(null);
    setRows(0, 1);
    const shown = rowsOf(state.view)[0].length;
    say("lives-said", state.filter ? count(shown) + " of " + count(state.view.born.length) + " bars" : "");
  });
  choice("viewgroup", data.views.map((view) => [view.id, view.id === "run" ? "Whole run" : "Analysed iteration"]), state.view.id, showView);
  choice("colourgroup", [["site", "Call site"], ["kind", "Kind"]], state.colour, (colour) => {
    state.colour = colour;
    showLegend();
    redraw(drawMemory, drawLives);
  });
  choice("axisgroup", [["time", "Time"], ["operations", "Operations"]], state.axis, (axis) => { state.axis = axis; showWhole(); });
  choice("ordergroup", [["born", "By birth"], ["weight", "By bytes \u00d7 time"]], state.order, (order) => { state.order = order; setRows(0, 1); });
}

function start() {
  element("program").textContent = data.program;
  element("program").title = data.program;
  element("device").textContent = data.device;
  document.title = "Reprise: " + data.program;
  const warnings = [];
  if (data.isCut) warnings.push("This recording was cut off at " + time(data.endNs) + ": the program was killed, or was still running.");
  if (data.lost) warnings.push(count(data.lost) + " events are missing; figures may be too low.");
  if (!data.views.length) warnings.push("Nothing was recorded: the program ended before it used the device.");
  element("warning").textContent = warnings.join(" ");
  element("warning").hidden = !warnings.length;
  readColours();
  if (!data.views.length) return;
  startTables();
  startFlame();
  startCharts();
  startCurve();
  showView(state.view.id);
  setTheme();
  element("theme").addEventListener("click", () => setTheme(css("--paper") === "#12161d" ? "light" : "dark"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme());
  new ResizeObserver(() => redraw(drawMemory, drawLives, drawCurve, drawFlame)).observe(document.querySelector("main"));
}

start();
