/* What is held per position, divided into series (call sites or kinds), with a pyramid of maxima for drawing. */

function seriesOf(view, span) {
  if (state.colour === "kind") return view.kind[span];
  return siteSeries(view)[view.site[span]] ?? REST_SERIES;
}

/* bySeries[s][p]: bytes of series s at position p. What no span explains goes to the last one. */
function buildSeries(view) {
  const key = "series_" + state.colour;
  if (view[key]) return view[key];
  const amount = state.colour === "kind" ? data.kinds.length + 1 : REST_SERIES + 1;
  const bySeries = Array.from({ length: amount }, () => new Float64Array(view.positions + 1));
  for (let i = 0; i < view.born.length; i++) {
    const series = bySeries[seriesOf(view, i)];
    series[view.born[i]] += view.bytes[i];
    series[view.ends[i]] -= view.bytes[i];
  }
  const rest = bySeries[amount - 1];
  const sums = new Float64Array(view.positions);
  for (const series of bySeries) {
    let held = 0;
    for (let p = 0; p < view.positions; p++) {
      held += series[p];
      series[p] = held;
      sums[p] += held;
    }
  }
  for (let p = 0; p < view.positions; p++) rest[p] += Math.max(0, view.held[p] - sums[p]);
  view[key] = bySeries;
  return bySeries;
}

/* levels[k][i]: the position of the most held among positions i * 2^k .. (i + 1) * 2^k - 1. */
function pyramidOf(view) {
  if (view.pyramid) return view.pyramid;
  const levels = [Uint32Array.from({ length: view.positions }, (_, p) => p)];
  while (levels.at(-1).length > 1) {
    const below = levels.at(-1), level = new Uint32Array((below.length + 1) >> 1);
    for (let i = 0; i < level.length; i++) {
      const left = below[2 * i], right = 2 * i + 1 < below.length ? below[2 * i + 1] : left;
      level[i] = view.held[right] > view.held[left] ? right : left;
    }
    levels.push(level);
  }
  view.pyramid = levels;
  return levels;
}

/* The position of the most held in [from, to). */
function highest(view, from, to) {
  const levels = pyramidOf(view);
  let best = from;
  const look = (position) => { if (view.held[position] > view.held[best]) best = position; };
  for (let level = 0; from < to; level++, from >>= 1, to >>= 1) {
    if (from & 1) look(levels[level][from++]);
    if (to & 1) look(levels[level][--to]);
    if (level + 1 >= levels.length) break;
  }
  return best;
}

/* What the series are called, those that hold most at the peak first. */
function seriesLabels(view) {
  if (state.colour === "kind")
    return data.kinds.map((name, kind) => ({ name, colour: kindColour(kind), bytes: view.kindBytes[kind], series: kind }))
      .filter((row) => row.bytes > 0).sort((a, b) => b.bytes - a.bytes);
  const rows = new Map();
  siteSeries(view).forEach((series, site) => {
    const name = series === OWN_SERIES ? data.kinds[OWN] : series === REST_SERIES ? "other call sites" : siteName(view, site);
    const row = rows.get(series) || { name, colour: seriesColour(series), bytes: 0, series };
    row.bytes += view.sites[site][5];
    rows.set(series, row);
  });
  return [...rows.values()].sort((a, b) => (a.series === REST_SERIES) - (b.series === REST_SERIES) || b.bytes - a.bytes);
}

/* How much of a series is there the whole time: the steadiest are drawn at the bottom. */
function steadiness(view, series) {
  const values = buildSeries(view)[series];
  let least = Infinity, most = 0;
  for (let p = 0; p < view.positions; p++) {
    if (values[p] < least) least = values[p];
    if (values[p] > most) most = values[p];
  }
  return most ? least / most : 1;
}

function drawingOrder(view) {
  const key = "order_" + state.colour;
  if (!view[key]) {
    const amount = buildSeries(view).length, order = Array.from({ length: amount }, (_, series) => series);
    const steady = order.map((series) => steadiness(view, series) > 0.8 ? 1 : 0);
    const rank = new Map(seriesLabels(view).map((row, i) => [row.series, i]));
    view[key] = order.sort((a, b) => steady[b] - steady[a] || (rank.get(a) ?? 99) - (rank.get(b) ?? 99));
  }
  return view[key];
}

const spanColour = (view, span) => state.colour === "kind" ? kindColour(view.kind[span]) : siteColour(view, view.site[span]);

/* The rows of the lifetimes: spans that the filter lets through, in order; and per level the heaviest of each pair. */
function rowsOf(view) {
  const key = state.order + "\n" + state.filter;
  if (view.rowsKey === key) return view.rows;
  const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const siteText = view.sites.map((_, site) => siteName(view, site).toLowerCase());
  const fits = (span) => words.every((word) => (siteText[view.site[span]] || "").includes(word) ||
    data.kinds[view.kind[span]].includes(word));
  const weight = view.weight || (view.weight = Float64Array.from(view.born, (born, i) =>
    view.bytes[i] * (view.clock[view.ends[i]] - view.clock[born])));
  let rows = [];
  for (let i = 0; i < view.born.length; i++) if (!words.length || fits(i)) rows.push(i);
  const isWhole = (i) => view.born[i] === 0 && view.ends[i] === view.positions ? 1 : 0;
  if (state.order === "born") rows.sort((a, b) => isWhole(a) - isWhole(b) || a - b);
  else rows.sort((a, b) => weight[b] - weight[a] || a - b);
  const levels = [Uint32Array.from(rows)];
  while (levels.at(-1).length > 1) {
    const below = levels.at(-1), level = new Uint32Array((below.length + 1) >> 1);
    for (let i = 0; i < level.length; i++) {
      const left = below[2 * i], right = 2 * i + 1 < below.length ? below[2 * i + 1] : left;
      level[i] = weight[right] > weight[left] ? right : left;
    }
    levels.push(level);
  }
  view.rowsKey = key;
  view.rows = levels;
  return levels;
}
