/* The tables: one is shown at a time; a click on a heading sorts. */

const MOST_ROWS = 500;
const figure = (title, show) => ({ title, show, isFigure: true });
const words = (title, isMono) => ({ title, show: (value) => value, isMono });
const bytesColumn = (title) => figure(title, (value) => value ? size(value) : "");
const timeColumn = (title) => figure(title, (value) => value ? time(value) : "");
const countColumn = (title) => figure(title, (value) => value ? count(value) : "");

const tables = {
  sites: {
    title: "Call sites", sort: 3,
    columns: [words("What", true), words("Where", true), words("Kind"), bytesColumn("At the peak"), countColumn("Pieces then"),
      countColumn("Pieces in all"), timeColumn("Mean life"), figure("Bytes \u00d7 time", (v) => size(v) + "\u00b7s"),
      bytesColumn("Recomputable")],
    rows: (view) => view.sites.map((s) => [text(s[0]), text(s[1]), data.kinds[s[2]], s[5], s[4], s[3], s[8] * 1e9 / s[3], s[7], s[10]]),
  },
  lives: {
    title: "Longest-lived", sort: 6,
    columns: [words("What", true), words("Where", true), words("Kind"), bytesColumn("Size"), timeColumn("From"), timeColumn("Life"),
      figure("Bytes \u00d7 time", (v) => size(v) + "\u00b7s"), words("Plan may")],
    rows: (view) => {
      const spans = [...rowsByWeight(view).slice(0, 2000)];
      return spans.map((i) => {
        const life = view.clock[view.ends[i]] - view.clock[view.born[i]], site = view.sites[view.site[i]];
        return [text(view.name[i]), site ? text(site[1]) : "", data.kinds[view.kind[i]], view.bytes[i], view.clock[view.born[i]], life,
          view.bytes[i] * life / 1e9, data.verdicts[view.verdict[i]]];
      });
    },
  },
  operations: {
    title: "Operations", sort: 2,
    columns: [words("Name", true), countColumn("Runs"), timeColumn("Time"), figure("Share", (v) => percent(v)), countColumn("Not recomputable")],
    rows: () => {
      const all = data.times.reduce((sum, row) => sum + row[2], 0) || 1;
      return data.times.map((row) => [text(row[0]), row[1], row[2], row[2] / all, row[3]]);
    },
  },
  iterations: {
    title: "Iterations", sort: 0, isAscending: true,
    columns: [figure("Iteration", (v) => count(v)), words("Phase"), timeColumn("Time"), bytesColumn("Peak"), countColumn("Operations"), countColumn("Replays"),
      timeColumn("Recompute"), bytesColumn("Swapped out"), bytesColumn("Swapped in")],
    rows: () => data.iterations.map((r) => [r[0], r[1], r[2], r[9], r[4], r[5], r[6], r[7], r[8]]),
  },
  reasons: {
    title: "Not recomputable", sort: 1,
    columns: [words("Why"), bytesColumn("Bytes at the peak"), countColumn("Pieces")],
    rows: () => data.reasons.map((r) => [text(r[0]), r[2], r[1]]),
  },
};

function rowsByWeight(view) {
  if (view.byWeight) return view.byWeight;
  const weight = (i) => view.bytes[i] * (view.clock[view.ends[i]] - view.clock[view.born[i]]);
  const weights = Float64Array.from(view.born, (_, i) => weight(i));
  view.byWeight = Uint32Array.from(view.born, (_, i) => i).sort((a, b) => weights[b] - weights[a]);
  return view.byWeight;
}

let table = { name: "sites", sort: 3, isAscending: false };

function showTable() {
  const { columns, rows: make_rows } = tables[table.name], by = table.sort, sign = table.isAscending ? 1 : -1;
  const rows = make_rows(state.view);
  rows.sort((a, b) => sign * (typeof a[by] === "string" ? a[by].localeCompare(b[by]) : a[by] - b[by]));
  const head = make("tr", {}, ...columns.map((column, i) => {
    const button = make("button", { type: "button", text: column.title });
    button.addEventListener("click", () => {
      table = { name: table.name, sort: i, isAscending: table.sort === i ? !table.isAscending : !column.isFigure };
      showTable();
      element("tablebox").querySelectorAll("th button")[i].focus();
    });
    const cell = make("th", { scope: "col", class: column.isFigure ? "figure" : "" }, button);
    if (i === by) cell.setAttribute("aria-sort", table.isAscending ? "ascending" : "descending");
    return cell;
  }));
  const body = make("tbody", {}, ...rows.slice(0, MOST_ROWS).map((row) => make("tr", {}, ...columns.map((column, i) =>
    make("td", { text: column.show(row[i]), class: column.isFigure ? "figure" : column.isMono ? "mono" : "" })))));
  element("tablebox").replaceChildren(make("table", {}, make("thead", {}, head), body));
  element("tablebox").setAttribute("aria-label", tables[table.name].title);
  element("tablenote").textContent = rows.length > MOST_ROWS ? "The first " + MOST_ROWS + " of " + count(rows.length) + " rows." : "";
}

function startTables() {
  const names = Object.keys(tables).filter((name) => tables[name].rows(state.view).length > 0);
  const buttons = names.map((name) => {
    const button = make("button", { type: "button", role: "tab", text: tables[name].title, id: "tab-" + name });
    button.addEventListener("click", () => choose_tab(name));
    return button;
  });
  const choose_tab = (name) => {
    table = { name, sort: tables[name].sort, isAscending: !!tables[name].isAscending };
    names.forEach((other, i) => {
      buttons[i].setAttribute("aria-selected", String(other === name));
      buttons[i].tabIndex = other === name ? 0 : -1;
    });
    showTable();
  };
  element("tabs").replaceChildren(...buttons);
  element("tabs").addEventListener("keydown", onKey((event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return false;
    const next = (names.indexOf(table.name) + step + names.length) % names.length;
    choose_tab(names[next]);
    buttons[next].focus();
    return true;
  }));
  if (names.length) choose_tab(names[0]);
}
