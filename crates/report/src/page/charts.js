'use strict';
/* What each chart shows, as traces and layout for plotly.js. Knows the data and the colours, nothing of the page. Everything
   that a study can name goes through `safe`: plotly.js takes some HTML in texts. */

const safe = text => String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
const cut = (text, most) => text.length > most ? text.slice(0, Math.max(most - 1, 1)).trimEnd() + '…' : text;
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif';
/* Texts in charts by what they take on the screen, pixels. */
const ruler = document.createElement('canvas').getContext('2d');
const widthOf = text => { ruler.font = `12px ${FONT}`; return ruler.measureText(text).width; };
const fitted = (text, room) => {
  let kept = text;
  while (kept.length > 1 && widthOf(kept === text ? text : `${kept}…`) > room) kept = kept.slice(0, -1).trimEnd();
  return kept === text ? text : `${kept}…`;
};
const SYMBOLS = ['circle', 'square', 'diamond', 'triangle-up', 'pentagon', 'star', 'hexagon', 'cross'];
const DASHES = ['solid', 'dash', 'dot', 'dashdot', 'longdash', 'longdashdot'];

/* A context for the builders: the data, which variants are on, the colours, the width of the chart. */
class View {
  constructor(data, hidden, colour, width) {
    Object.assign(this, { data, hidden, colour, width });
  }
  get arms() { return this.data.arms.filter(arm => !this.hidden.has(arm.name)); }
  shown(name) { return !this.hidden.has(name); }
  arm(name) { return this.data.arms.find(arm => arm.name === name) || { name, label: name, kind: 'variant' }; }
  /* Place among the variants, which gives colour, symbol and dash. */
  place(name) { return this.data.arms.filter(arm => arm.kind === 'variant').findIndex(arm => arm.name === name); }
  shade(name) {
    const kind = this.arm(name).kind;
    return kind === 'variant' ? this.colour(`v${Math.max(this.place(name), 0) % 8}`) : this.colour(kind);
  }
  symbol(name) { return this.arm(name).kind === 'variant' ? SYMBOLS[Math.max(this.place(name), 0) % SYMBOLS.length] + (this.place(name) >= SYMBOLS.length ? '-open' : '') : this.arm(name).kind === 'baseline' ? 'circle' : 'circle-open'; }
  dash(name) { return this.arm(name).kind === 'placebo' ? 'dot' : DASHES[Math.floor(Math.max(this.place(name), 0) / 8) % DASHES.length]; }
  label(name) { return safe(this.arm(name).label); }
  /* The first rows of a chart of bars say their name above the bar: a column of names would leave nothing on a narrow screen. */
  above(y, left, right, colour) {
    const room = Math.max(90, this.width - 28 - (right ? widthOf(right) : 0));
    const text = (text, x, anchor, colour) => ({ text, bgcolor: faint(this.colour('card'), .8), borderpad: 0, x, xref: 'paper', xanchor: anchor, y, yref: 'y', yanchor: 'bottom', yshift: 9, showarrow: false, font: { size: 12, color: colour } });
    return [text(safe(fitted(left, room)), 0, 'left', this.colour('ink')), ...(right ? [text(safe(right), 1, 'right', colour || this.colour('soft'))] : [])];
  }
  layout(more) {
    const axis = given => ({ gridcolor: this.colour('grid'), zeroline: false, linecolor: this.colour('line'), automargin: true, title: { font: { size: 12 }, standoff: 8 }, ...given, ...(given.title ? { title: { text: given.title, font: { size: 12 }, standoff: 8 } } : {}) });
    const { xaxis = {}, yaxis = {}, ...rest } = more;
    return {
      height: 320, margin: { l: 8, r: 8, t: 8, b: 8 }, paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', hovermode: 'closest', showlegend: false, dragmode: false,
      font: { family: FONT, size: 12, color: this.colour('soft') },
      hoverlabel: { font: { size: 12 }, align: 'left' }, legend: { orientation: 'h', y: -0.25 }, ...rest, xaxis: axis(xaxis), yaxis: axis(yaxis),
    };
  }
}

const faint = (hex, share) => {
  const [, r, g, b] = /^#(..)(..)(..)$/.exec(hex) || [];
  return r ? `rgba(${[r, g, b].map(it => parseInt(it, 16)).join(',')},${share})` : hex;
};
const unitOf = unit => unit ? ` ${safe(unit)}` : '';
/* 1, 2 and 5 times the powers of ten, written out. */
const ofLogarithm = values => {
  const positive = values.filter(value => value > 0), tickvals = [];
  if (!positive.length) return {};
  const low = Math.min(...positive), high = Math.max(...positive);
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) tickvals.push(...[1, 2, 5].map(digit => digit * 10 ** power));
  return { type: 'log', tickvals, ticktext: tickvals.map(value => value >= 1 ? value.toLocaleString('en') : String(+value.toPrecision(1))) };
};
const signed = number => number > 0 ? `+${number}` : String(number).replace('-', '−');

/* The band between two curves, and the curve in it. */
const banded = (view, name, xs, lines, hover) => {
  const colour = view.shade(name), common = { x: xs, mode: 'lines', legendgroup: name, hoverinfo: 'skip', connectgaps: false };
  const known = xs.map((_, at) => at).filter(at => lines.low[at] !== null && lines.high[at] !== null);
  const band = { ...common, x: [...known.map(at => xs[at]), ...known.map(at => xs[at]).reverse()], y: [...known.map(at => lines.low[at]), ...known.map(at => lines.high[at]).reverse()], fill: 'toself', fillcolor: faint(colour, .11 * Math.min(1, 5 / view.arms.length)), line: { width: 0 }, showlegend: false };
  return [band, { ...common, y: lines.median, name: view.label(name), hoverinfo: undefined, line: { color: colour, width: 2, dash: view.dash(name) }, customdata: xs.map((_, at) => hover(at)), hovertemplate: '%{customdata}<extra></extra>' }];
};

/* Latency is drawn over the number of nines, so that p50, p90, p99 and p99.9 are equally far apart. */
const nines = quantile => -Math.log10(1 - quantile);
const percentile = quantile => `p${+(quantile * 100).toFixed(4)}`;
const ofQuantiles = (view, pick, unit) => {
  const { quantiles, arms } = view.data.latency, xs = quantiles.map(nines);
  const marks = [.5, .9, .99, .999, .9999, .99999].filter(it => it <= quantiles[quantiles.length - 1] + 1e-9);
  const traces = arms.filter(it => view.shown(it.arm) && pick(it)).flatMap(it => {
    const lines = pick(it);
    return banded(view, it.arm, xs, lines, at => `${view.label(it.arm)}, ${percentile(quantiles[at])}: <b>${lines.median[at]}${unit}</b><br>middle 80 % of the rounds: ${lines.low[at]} to ${lines.high[at]}${unit}`);
  });
  return { traces, xaxis: { tickvals: [0, ...marks.map(nines)], ticktext: ['fastest', ...marks.map(percentile)] } };
};

/* Courses of alternating rounds, one round or all of them side by side. */
const ofPace = (view, which, pick, unit, yaxis) => {
  const all = view.data.pace.rounds, rounds = which ? [all[which - 1]] : all, starts = [], shapes = [];
  const long = Math.max(...rounds.map(({ t }) => t[t.length - 1]));
  rounds.reduce((at, { t }) => { starts.push(at); return at + t[t.length - 1] + long * .06; }, 0);
  const traces = view.arms.map(arm => {
    const x = [], y = [], text = [];
    rounds.forEach(({ round, t, arms }, at) => {
      const values = pick(arms.find(([name]) => name === arm.name) || []);
      if (!values) return;
      values.forEach((value, point) => { x.push(starts[at] + t[point]); y.push(value); text.push(`${safe(arm.label)}, round ${round}<br>${t[point]} s: <b>${unit === '%' ? signed(value) : value}${unitOf(unit)}</b>`); });
      x.push(null); y.push(null); text.push('');
    });
    return { x, y, mode: 'lines', name: safe(arm.label), line: { color: view.shade(arm.name), width: which ? 1.8 : 1.2, dash: view.dash(arm.name) }, customdata: text, hovertemplate: '%{customdata}<extra></extra>', connectgaps: false };
  }).filter(trace => trace.x.length);
  const ends = rounds.map(({ t }, at) => starts[at] + t[t.length - 1]);
  ends.forEach((end, at) => { if (at % 2) shapes.push({ type: 'rect', xref: 'x', yref: 'paper', x0: starts[at] - long * .03, x1: end + long * .03, y0: 0, y1: 1, fillcolor: view.colour('band'), line: { width: 0 }, layer: 'below' }); });
  const xaxis = which ? { ticksuffix: ' s' } : { title: 'round', showgrid: false, tickvals: ends.map((end, at) => (starts[at] + end) / 2), ticktext: rounds.map(({ round }) => String(round)) };
  return { traces, layout: view.layout({ height: 300, shapes, xaxis, yaxis: { title: unit === '%' ? '' : unit, ...yaxis } }) };
};

const BUILD = {
  forest(view, index) {
    const { rows, band, reach, unit, title } = view.data.forest[index];
    const on = rows.filter(row => view.shown(row.arm)), traces = [], shapes = [], annotations = [];
    if (band) shapes.push({ type: 'rect', xref: 'x', yref: 'paper', x0: band[0], x1: band[1], y0: 0, y1: 1, fillcolor: view.colour('band'), line: { width: 0 }, layer: 'below' });
    shapes.push({ type: 'line', xref: 'x', yref: 'paper', x0: 0, x1: 0, y0: 0, y1: 1, line: { color: view.colour('ink'), width: 1 } });
    on.forEach((row, at) => {
      const y = -at, colour = view.shade(row.arm), label = view.label(row.arm);
      annotations.push(...view.above(y, view.arm(row.arm).label, row.interval ? `${row.text} ${row.verdict}` : row.verdict, view.colour({ costs: 'costs', saves: 'saves', 'no difference': 'same' }[row.verdict] || 'soft')));
      const within = row.dots.filter(([, value]) => value >= reach[0] && value <= reach[1]);
      traces.push({ x: within.map(([, value]) => value), y: within.map(() => y - .16), mode: 'markers', marker: { color: faint(colour, .45), size: 5 }, customdata: within.map(([round, value]) => `${label}, round ${round}: <b>${signed(value)}${unitOf(unit)}</b>`), hovertemplate: '%{customdata}<extra></extra>', showlegend: false });
      if (row.interval) {
        const [low, middle, high] = row.interval;
        traces.push({ x: [middle], y: [y], mode: 'markers', name: label, marker: { color: colour, size: 11, symbol: view.symbol(row.arm), line: { color: view.colour('card'), width: 1.5 } }, error_x: { type: 'data', symmetric: false, array: [high - middle], arrayminus: [middle - low], color: colour, thickness: 3, width: 5 }, customdata: [`${label}: <b>${safe(row.text)}</b><br>${safe(title)}: ${row.verdict}`], hovertemplate: '%{customdata}<extra></extra>' });
      }
      if (row.budget !== null) {
        shapes.push({ type: 'line', x0: row.budget, x1: row.budget, y0: y - .3, y1: y + .25, line: { color: view.colour('bad'), width: 2, dash: 'dash' } });
        traces.push({ x: [row.budget], y: [y + .2], mode: 'markers', marker: { size: 12, opacity: 0 }, customdata: [`budget ${safe(row.budget_text)}`], hovertemplate: '%{customdata}<extra></extra>', showlegend: false });
      }
    });
    return { traces, layout: view.layout({ height: 44 * on.length + 46, shapes, annotations, xaxis: { range: reach, ticksuffix: '', fixedrange: true, nticks: 6 }, yaxis: { visible: false, range: [.3 - on.length, .75], fixedrange: true } }) };
  },
  ledger(view) {
    const on = view.data.ledger.filter(it => view.shown(it.arm)), names = [...new Set(on.flatMap(it => it.parts.map(part => part[0])))];
    const kinds = Object.fromEntries(on.flatMap(it => it.parts.map(part => [part[0], part[1]])));
    let lost = 0;
    const shades = Object.fromEntries(names.map(name => [name, view.colour(kinds[name] === 'lost' ? ['lost', 'lost2', 'lost3'][lost++ % 3] : kinds[name])]));
    const share = (it, name) => { const part = it.parts.find(part => part[0] === name); return part ? part[2] : 0; };
    const traces = names.map(name => ({ type: 'bar', orientation: 'h', name: safe(name), y: on.map((_, at) => -at), x: on.map(it => share(it, name)), width: .42, marker: { color: shades[name] }, customdata: on.map(it => `${view.label(it.arm)}<br>${safe(name)}: <b>${share(it, name).toLocaleString('en')}</b> of ${it.wanted.toLocaleString('en')} wanted`), hovertemplate: '%{customdata} (%{x:.4~g} %)<extra></extra>' }));
    const annotations = on.flatMap((it, at) => view.above(-at, view.arm(it.arm).label, it.wanted ? `${it.wanted.toLocaleString('en')} wanted` : 'none wanted').map(note => ({ ...note, yshift: 12 })));
    return { traces, layout: view.layout({ height: 48 * on.length + 74, barmode: 'stack', barnorm: 'percent', annotations, showlegend: true, legend: { orientation: 'h', y: -18 / (48 * on.length + 40), yanchor: 'top', traceorder: 'normal' }, xaxis: { range: [0, 100], ticksuffix: ' %', fixedrange: true }, yaxis: { visible: false, range: [.4 - on.length, .75], fixedrange: true } }) };
  },
  lost(view) {
    const on = view.data.ledger.filter(it => view.shown(it.arm) && it.lost_by_second.length);
    const traces = on.map(it => ({ x: it.lost_by_second.map((_, second) => second), y: it.lost_by_second, mode: 'lines', line: { color: view.shade(it.arm), dash: view.dash(it.arm), shape: 'hvh' }, name: view.label(it.arm), customdata: it.lost_by_second.map((spans, second) => `${view.label(it.arm)}, second ${second}: <b>${spans.toLocaleString('en')}</b> spans lost`), hovertemplate: '%{customdata}<extra></extra>' }));
    return { traces, layout: view.layout({ xaxis: { title: 'second of the load, warm-up included' }, yaxis: { title: 'spans', rangemode: 'tozero' } }) };
  },
  quantiles(view) {
    const { unit } = view.data.latency, { traces, xaxis } = ofQuantiles(view, it => it.runs, ` ${unit}`);
    return { traces, layout: view.layout({ height: 400, xaxis, yaxis: { ...ofLogarithm(view.data.latency.arms.flatMap(it => [...it.runs.low, ...it.runs.high])), title: unit } }) };
  },
  shift(view) {
    const { traces, xaxis } = ofQuantiles(view, it => it.shift, ' %');
    return { traces, layout: view.layout({ xaxis, yaxis: { ticksuffix: ' %', zeroline: true, zerolinecolor: view.colour('ink') } }) };
  },
  shares(view) {
    const { limits, unit, arms } = view.data.latency, xs = limits.slice(1).map((limit, at) => Math.sqrt(limit * limits[at]));
    const traces = arms.filter(it => view.shown(it.arm)).map(it => ({ x: xs, y: it.shares, mode: 'lines', line: { shape: 'hvh', color: view.shade(it.arm), width: 1.6, dash: view.dash(it.arm) }, fill: 'tozeroy', fillcolor: faint(view.shade(it.arm), .06), name: view.label(it.arm), customdata: it.shares.map((share, at) => `${view.label(it.arm)}: <b>${share} %</b> of the requests<br>from ${limits[at]} to ${limits[at + 1]} ${unit}`), hovertemplate: '%{customdata}<extra></extra>' }));
    return { traces, layout: view.layout({ xaxis: { ...ofLogarithm(limits), title: unit }, yaxis: { ticksuffix: ' %', rangemode: 'tozero' } }) };
  },
  course(view, index) {
    const { runs, step, unit } = view.data.courses[index], of = Object.fromEntries(view.data.runs.map(run => [run.run, run]));
    const traces = view.arms.map(arm => {
      const x = [], y = [], text = [];
      runs.filter(([run]) => of[run]?.arm === arm.name).forEach(([run, first, values]) => {
        values.forEach((value, at) => { const t = (first + at) * step; x.push(t); y.push(value); text.push(`${safe(arm.label)}, run ${run} (round ${of[run].round})<br>${t} s: <b>${value}${unitOf(unit)}</b>`); });
        x.push(null); y.push(null); text.push('');
      });
      return { x, y, mode: 'lines', name: safe(arm.label), line: { color: faint(view.shade(arm.name), runs.length > 60 ? .4 : .6), width: 1.3, dash: view.dash(arm.name) }, customdata: text, hovertemplate: '%{customdata}<extra></extra>', connectgaps: false };
    }).filter(trace => trace.x.length);
    const shapes = [{ type: 'line', xref: 'x', yref: 'paper', x0: 0, x1: 0, y0: 0, y1: 1, line: { color: view.colour('soft'), width: 1, dash: 'dot' } }];
    return { traces, layout: view.layout({ height: 260, shapes, xaxis: { ticksuffix: ' s' }, yaxis: { rangemode: 'tozero' } }) };
  },
  pace(view, _, which) { return ofPace(view, which, ([, values]) => values, view.data.pace.unit, {}); },
  pace_ratio(view, _, which) {
    return ofPace(view, which, ([, , ratio]) => ratio, '%', { ticksuffix: ' %', zeroline: true, zerolinecolor: view.colour('ink') });
  },
  order(view, _, metric) {
    const { arms, unit } = view.data.rounds[metric], { runs } = view.data, shapes = [];
    const rounds = [...new Set(runs.map(run => run.round))].sort((a, b) => a - b);
    rounds.filter((_, at) => at % 2).forEach(round => {
      const numbers = runs.filter(run => run.round === round).map(run => run.run);
      shapes.push({ type: 'rect', xref: 'x', yref: 'paper', x0: Math.min(...numbers) - .5, x1: Math.max(...numbers) + .5, y0: 0, y1: 1, fillcolor: view.colour('band'), line: { width: 0 }, layer: 'below' });
    });
    const value = run => {
      const of = arms.find(([name]) => name === run.arm);
      if (of) { const point = of[1].find(([round]) => round === run.round); return point ? point[2] : null; }
      for (const [name, points] of arms) { const point = view.arm(run.arm).kind === 'baseline' && name && points.find(([round]) => round === run.round); if (point) return point[1]; }
      return null;
    };
    const all = runs.filter(run => view.shown(run.arm)).map(run => ({ run, value: run.void ? null : value(run) }));
    const known = all.map(it => it.value).filter(it => it !== null), floor = known.length ? Math.min(...known) : 0;
    const traces = view.arms.map(arm => {
      const of = all.filter(it => it.run.arm === arm.name && it.value !== null);
      return { x: of.map(it => it.run.run), y: of.map(it => it.value), mode: 'markers', name: safe(arm.label), marker: { color: view.shade(arm.name), size: 8, symbol: view.symbol(arm.name), line: { width: of.map(it => it.run.disturbances.length ? 2 : 0), color: view.colour('bad') } }, customdata: of.map(it => `${safe(arm.label)}: <b>${it.value}${unitOf(unit)}</b><br>run ${it.run.run}, round ${it.run.round}, place ${it.run.slot}${it.run.disturbances.map(text => `<br>! ${safe(cut(text, 90))}`).join('')}`), hovertemplate: '%{customdata}<extra></extra>' };
    });
    const out = all.filter(it => it.run.void);
    traces.push({ x: out.map(it => it.run.run), y: out.map(() => floor), mode: 'markers', name: 'does not count', marker: { symbol: 'x-thin', size: 10, line: { width: 2, color: out.map(it => view.shade(it.run.arm)) } }, customdata: out.map(it => `${view.label(it.run.arm)}, run ${it.run.run}, round ${it.run.round}: does not count<br>${safe(cut(it.run.void, 100))}`), hovertemplate: '%{customdata}<extra></extra>' });
    return { traces, layout: view.layout({ shapes, xaxis: { title: 'run' }, yaxis: { title: unit } }) };
  },
  pairs(view, _, metric) {
    const { arms, unit } = view.data.rounds[metric], on = arms.filter(([name]) => view.shown(name)), tickvals = [], ticktext = [];
    const each = (view.width - 70) / Math.max(on.length, 1) - 10, steep = each < 90 && on.length > 2, room = steep ? 200 : each;
    const traces = on.flatMap(([name, points], at) => {
      const x = [], y = [], text = [], mark = [];
      points.forEach(([round, baseline, value]) => {
        const told = `${view.label(name)}, round ${round}<br>baseline ${baseline}${unitOf(unit)} → <b>${value}${unitOf(unit)}</b>`;
        x.push(at - .28, at + .28, null); y.push(baseline, value, null); text.push(told, told, ''); mark.push(view.shade('baseline'), view.shade(name), 'transparent');
      });
      tickvals.push(at); ticktext.push(safe(fitted(view.arm(name).label, room)));
      return [{ x, y, mode: 'lines+markers', name: view.label(name), line: { color: faint(view.shade(name), .45), width: 1.2 }, marker: { color: mark, size: 7 }, customdata: text, hovertemplate: '%{customdata}<extra></extra>' }];
    });
    return { traces, layout: view.layout({ height: steep ? 420 : 320, xaxis: { tickvals, ticktext, tickangle: steep ? -35 : 0, range: [-.6, on.length - .4], showgrid: false }, yaxis: { title: unit } }) };
  },
  ladder(view, index) {
    const { steps, foot, unit } = view.data.ladders[index], annotations = [];
    const end = (from, to) => from === null || to === null ? 0 : Math.abs(to - from);
    const colour = at => at === steps.length - 1 ? view.colour('ink') : view.colour(`v${at % 8}`);
    steps.forEach(([name, , , , text], at) => annotations.push(...view.above(-at, name, text)));
    const traces = [{ type: 'bar', orientation: 'h', y: steps.map((_, at) => -at), x: steps.map(step => step[1]), width: .36, marker: { color: steps.map((_, at) => faint(colour(at), .75)) }, error_x: { type: 'data', symmetric: false, array: steps.map(step => end(step[1], step[3])), arrayminus: steps.map(step => end(step[1], step[2])), color: view.colour('ink'), thickness: 1.5, width: 4 }, customdata: steps.map(([name, , , , text]) => `${safe(name)}: <b>${safe(text)}</b>`), hovertemplate: '%{customdata}<extra></extra>' }];
    return { traces, layout: view.layout({ height: 46 * steps.length + 66, annotations: annotations.map(note => ({ ...note, yshift: 11 })), xaxis: { title: `added to ${safe(cut(foot[0], 40))} (${foot[1]} ${unit})`, zeroline: true, zerolinecolor: view.colour('ink') }, yaxis: { visible: false, range: [.4 - steps.length, .8] } }) };
  },
  dose(view, index) {
    const { points, line, unit, axis } = view.data.doses[index], on = points.filter(point => point[1] !== null), colour = view.colour('v0');
    const traces = line.length < 2 ? [] : [
      { x: [...line, ...[...line].reverse()].map(it => it[0]), y: [...line.map(it => it[2]), ...line.map(it => it[3]).reverse()], fill: 'toself', fillcolor: faint(colour, .14), line: { width: 0 }, mode: 'lines', hoverinfo: 'skip' },
      { x: line.map(it => it[0]), y: line.map(it => it[1]), mode: 'lines', line: { color: faint(colour, .7), width: 2 }, customdata: line.map(([dose, value, low, high]) => `on the line at ${dose}: <b>${signed(value)}${unitOf(unit)}</b> [${low}, ${high}]`), hovertemplate: '%{customdata}<extra></extra>' },
    ];
    traces.push({ x: on.map(it => it[0]), y: on.map(it => it[1]), mode: 'markers', marker: { color: colour, size: 9 }, error_y: { type: 'data', symmetric: false, array: on.map(it => it[3] - it[1]), arrayminus: on.map(it => it[1] - it[2]), color: colour, thickness: 2, width: 5 }, customdata: on.map(([dose, value, low, high]) => `${safe(axis)} ${dose}: <b>${signed(value)}${unitOf(unit)}</b> [${low}, ${high}]`), hovertemplate: '%{customdata}<extra></extra>' });
    return { traces, layout: view.layout({ xaxis: { title: safe(axis), rangemode: 'tozero' }, yaxis: { title: unit, zeroline: true, zerolinecolor: view.colour('line') } }) };
  },
  cost(view, index) {
    const { arms, parts, unit } = view.data.costs[index], on = arms.map((name, at) => [name, at]).filter(([name]) => view.shown(name));
    const traces = parts.map(([part, values], number) => ({ type: 'bar', orientation: 'h', name: part, y: on.map((_, at) => -at), x: on.map(([, at]) => values[at] ?? 0), width: .42, marker: { color: view.colour(['v0', 'v4', 'v2'][number]) }, customdata: on.map(([name, at]) => `${view.label(name)}<br>${part}: <b>${values[at] ?? 0}${unitOf(unit)}</b>`), hovertemplate: '%{customdata}<extra></extra>' }));
    const annotations = on.flatMap(([name], at) => view.above(-at, view.arm(name).label, '').map(note => ({ ...note, yshift: 12 })));
    return { traces, layout: view.layout({ height: 48 * on.length + 90, barmode: 'stack', annotations, showlegend: true, legend: { orientation: 'h', y: -36 / (48 * on.length + 40), yanchor: 'top', traceorder: 'normal' }, xaxis: { title: unit, fixedrange: true }, yaxis: { visible: false, range: [.4 - on.length, .75], fixedrange: true } }) };
  },
  operations(view) {
    const on = view.data.operations.filter(it => view.shown(it.arm)), names = [...new Set(on.map(it => it.name))];
    const arms = view.arms.filter(arm => on.some(it => it.arm === arm.name)), annotations = names.flatMap((name, at) => view.above(-at, name, '').map(note => ({ ...note, yshift: 11 })));
    const traces = arms.flatMap((arm, number) => {
      const of = on.filter(it => it.arm === arm.name), y = of.map(it => -names.indexOf(it.name) + .08 - number * .46 / Math.max(arms.length, 1)), colour = view.shade(arm.name);
      const told = of.map(it => `${safe(arm.label)}: ${safe(it.name)}<br>p50 <b>${it.p50[0]}</b> [${it.p50[1]}, ${it.p50[2]}], p90 <b>${it.p90[0]}</b>${it.p99 ? `, p99 <b>${it.p99[0]}</b>` : ''}`);
      return [
        { x: of.map(it => it.p50[0]), y, mode: 'markers', name: safe(arm.label), marker: { color: colour, size: 8, symbol: view.symbol(arm.name) }, error_x: { type: 'data', symmetric: false, array: of.map(it => it.p90[0] - it.p50[0]), arrayminus: of.map(() => 0), color: colour, thickness: 2, width: 0 }, customdata: told, hovertemplate: '%{customdata}<extra></extra>' },
        { x: of.map(it => it.p99?.[0] ?? null), y, mode: 'markers', marker: { color: colour, size: 9, symbol: 'line-ns', line: { color: colour, width: 2 } }, customdata: told, hovertemplate: '%{customdata}<extra></extra>', showlegend: false },
      ];
    });
    return { traces, layout: view.layout({ height: Math.max(46, 24 + 12 * arms.length) * names.length + 50, annotations, xaxis: ofLogarithm(on.flatMap(it => [it.p50[0], (it.p99 ?? it.p90)[0]])), yaxis: { visible: false, range: [.45 - names.length, .7] } }) };
  },
};

/* The same as rows of a table: head, then rows of cells. */
const TABLE = {
  forest: (view, index) => [['variant', 'difference', 'verdict', 'budget', 'rounds'], ...view.data.forest[index].rows.map(row => [view.arm(row.arm).label, row.text, row.verdict, row.budget_text || '–', row.dots.map(dot => signed(dot[1])).join('  ')])],
  ledger: view => [['variant', 'wanted', 'where', 'spans'], ...view.data.ledger.flatMap(it => it.parts.map(([part, , spans]) => [view.arm(it.arm).label, it.wanted, part, spans]))],
  lost: view => [['variant', 'second', 'spans lost'], ...view.data.ledger.flatMap(it => it.lost_by_second.map((spans, second) => [view.arm(it.arm).label, second, spans]).filter(row => row[2]))],
  quantiles: view => ofBands(view, it => it.runs),
  shift: view => ofBands(view, it => it.shift),
  shares: view => [['from', 'to', ...view.data.latency.arms.map(it => `${view.arm(it.arm).label}, %`)], ...view.data.latency.limits.slice(1).map((limit, at) => [view.data.latency.limits[at], limit, ...view.data.latency.arms.map(it => it.shares[at])])],
  course(view, index) {
    const { runs, step } = view.data.courses[index], of = Object.fromEntries(view.data.runs.map(run => [run.run, run]));
    return [['run', 'round', 'variant', 'first, s', `values, every ${step} s`], ...runs.map(([run, first, values]) => [run, of[run]?.round ?? '', view.arm(of[run]?.arm ?? '').label, first * step, values.map(value => value ?? '–').join('  ')])];
  },
  pace: (view, _, which) => ofPaces(view, which, ([, values]) => values),
  pace_ratio: (view, _, which) => ofPaces(view, which, ([, , ratio]) => ratio),
  order: (view, _, metric) => TABLE.pairs(view, _, metric),
  pairs: (view, _, metric) => [['variant', 'round', 'baseline', 'variant’s'], ...view.data.rounds[metric].arms.flatMap(([name, points]) => points.map(point => [view.arm(name).label, ...point]))],
  ladder: (view, index) => [['step', 'adds', 'low', 'high'], [view.data.ladders[index].foot[0], view.data.ladders[index].foot[1], '', ''], ...view.data.ladders[index].steps.map(step => step.slice(0, 4).map(cell => cell ?? '–'))],
  dose: (view, index) => [[view.data.doses[index].axis, 'difference', 'low', 'high'], ...view.data.doses[index].points.map(point => point.map(cell => cell ?? '–'))],
  cost: (view, index) => [['variant', ...view.data.costs[index].parts.map(part => part[0])], ...view.data.costs[index].arms.map((name, at) => [view.arm(name).label, ...view.data.costs[index].parts.map(part => part[1][at] ?? '–')])],
  operations: view => [['variant', 'operation', 'p50', 'p90', 'p99'], ...view.data.operations.map(it => [view.arm(it.arm).label, it.name, it.p50[0], it.p90[0], it.p99?.[0] ?? '–'])],
};
const ofBands = (view, pick) => {
  const { quantiles, arms } = view.data.latency;
  return [['quantile', 'variant', 'median', 'low', 'high'], ...quantiles.flatMap((quantile, at) => arms.filter(pick).map(it => [percentile(quantile), view.arm(it.arm).label, pick(it).median[at] ?? '–', pick(it).low[at] ?? '–', pick(it).high[at] ?? '–']))];
};
const ofPaces = (view, which, pick) => {
  const all = view.data.pace.rounds, rounds = which ? [all[which - 1]] : all;
  return [['round', 'variant', 'at, s', 'values'], ...rounds.flatMap(({ round, t, arms }) => arms.filter(pick).map(arm => [round, view.arm(arm[0]).label, t.join('  '), pick(arm).map(value => value ?? '–').join('  ')]))];
};
