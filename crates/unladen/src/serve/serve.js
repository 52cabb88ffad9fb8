'use strict';
/* The server's pages: filter and choice in the list, charts of trends, a run under way. Every page works without, but for charts
   and what moves. Texts go into the page as texts; plotly.js takes some HTML, so for it they are escaped. */
(() => {
  const root = document.documentElement, find = id => document.getElementById(id);
  const colour = name => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const safe = text => String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
  const SHOW = { displaylogo: false, displayModeBar: false, responsive: true };
  const layout = more => ({
    height: 260, margin: { l: 8, r: 8, t: 8, b: 8 }, paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', dragmode: false, hovermode: 'closest', showlegend: false,
    font: { family: 'system-ui, "DejaVu Sans", sans-serif', size: 12, color: colour('soft') }, ...more,
    xaxis: { gridcolor: colour('grid'), linecolor: colour('line'), zeroline: false, automargin: true, fixedrange: true, ...more.xaxis },
    yaxis: { gridcolor: colour('grid'), linecolor: colour('line'), zerolinecolor: colour('soft'), automargin: true, fixedrange: true, ...more.yaxis },
  });
  const made = (name, text, more = {}) => Object.assign(document.createElement(name), { textContent: text, ...more });
  const cells = (row, values) => { row.replaceChildren(...values.map(([text, right]) => made('td', text, { className: right ? 'right' : '' }))); return row; };
  const digits = (value, places) => value == null ? '–' : value.toFixed(places);

  /* CPU and memory of services: one chart each, a line per service, a band where there is one. */
  const KINDS = [['CPU', 'cores', 'cpu_cores', 1, 3], ['Memory (RSS)', 'MiB', 'rss', 2 ** 20, 1]];
  const any = values => values.some(value => value != null);
  const ofServices = (into, series, xaxis, shapes = []) => {
    if (into.querySelectorAll('.chart').length !== KINDS.length) into.replaceChildren(...KINDS.map(([title, unit]) => {
      const panel = made('figure', '', { className: 'panel' }), chart = made('div', '', { className: 'chart' });
      chart.setAttribute('role', 'img');
      chart.setAttribute('aria-label', `${title} of every service over time`);
      panel.append(made('h3', `${title}, ${unit}`), chart);
      return panel;
    }));
    return Promise.all([...into.querySelectorAll('.chart')].map((chart, at) => {
      const [, unit, key, factor, places] = KINDS[at];
      const traces = series.flatMap((it, number) => {
        const shade = colour(`v${number % 8}`), name = safe(`${it.service} (${it.role})`), { median, low, high } = it[key], scaled = values => values.map(value => value == null ? null : value / factor);
        if (!any(median)) return [];
        const line = { x: it.x, y: scaled(median), name, mode: 'lines', line: { color: shade, width: 1.8, dash: ['solid', 'dash', 'dot'][Math.floor(number / 8) % 3] }, customdata: it.x.map((_, at) => median[at] == null ? '' : `${name}: <b>${digits(median[at] / factor, places)} ${unit}</b>${low ? `<br>middle 80 % of the runs: ${digits(low[at] / factor, places)} to ${digits(high[at] / factor, places)}` : ''}`), hovertemplate: '%{customdata}<extra></extra>', connectgaps: false };
        if (!low) return [line];
        const there = it.x.map((_, at) => at).filter(at => low[at] != null);
        const band = { x: [...there.map(at => it.x[at]), ...there.map(at => it.x[at]).reverse()], y: [...scaled(there.map(at => low[at])), ...scaled(there.map(at => high[at])).reverse()], mode: 'lines', fill: 'toself', fillcolor: `${shade}1c`, line: { width: 0 }, hoverinfo: 'skip', showlegend: false };
        return [band, line];
      });
      return Plotly.react(chart, traces, layout({ height: 270 + 20 * Math.ceil(series.length / (chart.clientWidth < 450 ? 1 : 2)), showlegend: true, legend: { orientation: 'h', y: -.12 }, shapes, xaxis, yaxis: { rangemode: 'tozero' } }), SHOW);
    }));
  };

  /* The list. */
  const filter = find('filter');
  if (filter) {
    const apply = () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      document.querySelectorAll('section.study').forEach(study => {
        let any = false;
        study.querySelectorAll('tr.run').forEach(row => {
          const text = `${study.dataset.study} ${row.textContent}`.toLowerCase(), matches = words.every(word => text.includes(word));
          row.hidden = !matches;
          shown += matches;
          any ||= matches;
        });
        study.hidden = !any;
      });
      find('shown').textContent = words.length ? `${shown} shown` : '';
    };
    filter.addEventListener('input', apply);
    apply();
  }
  document.querySelectorAll('form.compare').forEach(form => {
    const chosen = () => [...form.querySelectorAll('input[name=choose]:checked')], button = form.querySelector('button');
    const apply = () => { if (button) button.disabled = chosen().length !== 2; };
    form.addEventListener('change', apply);
    form.addEventListener('submit', event => {
      event.preventDefault();
      const [a, b] = chosen().map(box => encodeURIComponent(box.value));
      location.href = `/compare?a=${a}&b=${b}`;
    });
    apply();
  });

  /* Two results. */
  const details = find('details');
  if (details && !find('trends')) {
    const apply = () => document.querySelectorAll('tr.detail').forEach(row => { row.hidden = !details.checked; });
    details.addEventListener('change', apply);
    apply();
  }

  /* Trends. */
  const trends = find('trends');
  if (trends) {
    const data = JSON.parse(find('data').textContent), started = new Map(data.started), select = find('variant');
    const labels = new Map(data.trends.map(trend => [trend.key.variant, trend.label]));
    labels.forEach((label, name) => select.add(new Option(label, name)));
    /* In the prefix that suits the largest. */
    const scaled = (unit, most) => unit === 'B' ? most >= 2 ** 20 ? [2 ** -20, 'MiB'] : most >= 1024 ? [2 ** -10, 'KiB'] : [1, 'B'] : unit === 'us' ? most >= 1e4 ? [1e-3, 'ms'] : [1, 'µs'] : unit === 'share' ? [100, 'points'] : [1, unit];
    const draw = () => {
      const on = data.trends.filter(trend => trend.key.variant === select.value && trend.points.some(point => point.difference) && (details.checked || trend.place !== 'detail' || trend.points.some(point => point.change)));
      trends.replaceChildren(...on.map(trend => {
        const panel = made('figure', '', { className: 'panel' }), chart = made('div', '', { className: 'chart' });
        const whose = [trend.key.service, trend.key.operation].filter(Boolean).map(it => ` · ${it}`).join('');
        panel.append(made('h3', `${trend.title}${whose}`), chart);
        chart.setAttribute('role', 'img');
        const known = trend.points.filter(point => point.difference), [factor, unit] = trend.relative ? [100, '%'] : scaled(trend.unit, Math.max(0, ...known.map(point => Math.max(Math.abs(point.difference.low), Math.abs(point.difference.high)))));
        chart.setAttribute('aria-label', `${trend.title} over ${known.length} results, ${known.filter(point => point.change).length} changes`);
        const number = value => +(value * factor).toPrecision(4), first = started.get(known[0]?.id) ? 'date' : 'category';
        const x = known.map(point => first === 'date' ? started.get(point.id) : point.id);
        const traces = [{
          x, y: known.map(point => point.difference.value * factor), mode: 'lines+markers', line: { color: colour('line'), width: 1 },
          marker: { size: known.map(point => point.change ? 11 : 8), symbol: known.map(point => ({ up: 'triangle-up', down: 'triangle-down' })[point.change] || 'circle'), color: known.map(point => ({ up: colour('costs'), down: colour('saves') })[point.change] || colour('v0')) },
          error_y: { type: 'data', symmetric: false, array: known.map(point => (point.difference.high - point.difference.value) * factor), arrayminus: known.map(point => (point.difference.value - point.difference.low) * factor), color: colour('v0'), thickness: 1.5, width: 4 },
          customdata: known.map(point => `${safe(point.id)}<br><b>${number(point.difference.value)} ${safe(unit)}</b> [${number(point.difference.low)}, ${number(point.difference.high)}]${point.change ? `<br>changed: ${point.change === 'up' ? 'more' : 'less'}` : ''}`), hovertemplate: '%{customdata}<extra></extra>',
        }];
        const shapes = known.flatMap((point, at) => point.change ? [{ type: 'line', x0: x[at], x1: x[at], yref: 'paper', y0: 0, y1: 1, layer: 'below', line: { color: colour(point.change === 'up' ? 'costs' : 'saves'), width: 1, dash: 'dot' } }] : []);
        requestAnimationFrame(() => Plotly.newPlot(chart, traces, layout({ shapes, xaxis: { type: first }, yaxis: { title: { text: unit }, rangemode: 'tozero' } }), SHOW));
        return panel;
      }));
      if (!on.length) trends.replaceChildren(made('p', 'No metric has an interval in any result: six rounds are needed.', { className: 'soft' }));
      root.dataset.charts = 'ready';
    };
    [select, details].forEach(element => element.addEventListener('change', draw));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
    draw();
  }

  /* What every service took in one result. */
  const resources = find('resources');
  if (resources) {
    const result = find('result'), arm = find('arm'), unread = find('unread');
    let data = null;
    const draw = async () => {
      const services = data.services.filter(it => it.variant === arm.value), start = { type: 'line', xref: 'x', yref: 'paper', x0: 0, x1: 0, y0: 0, y1: 1, line: { color: colour('soft'), width: 1, dash: 'dot' } };
      if (services.length) await ofServices(resources, services.map(it => ({ ...it, x: it.rss.median.map((_, at) => (it.first + at) * data.step_s) })), { ticksuffix: ' s' }, [start]);
      else resources.replaceChildren(made('p', 'Nothing was sampled.', { className: 'soft' }));
      root.dataset.resources = 'ready';
    };
    const load = async () => {
      delete root.dataset.resources;
      const answer = await fetch(`/api/resources?id=${encodeURIComponent(result.value)}`), chosen = arm.value;
      if (!answer.ok) { resources.replaceChildren(made('p', await answer.text(), { className: 'soft' })); return; }
      data = await answer.json();
      arm.replaceChildren(...data.arms.map(it => new Option(it.kind === 'placebo' ? 'placebo' : it.label, it.name)));
      const wanted = data.arms.find(it => it.name === chosen) || data.arms.findLast(it => it.kind === 'variant') || data.arms[0];
      if (wanted) arm.value = wanted.name;
      unread.textContent = data.unread ? `Of ${data.unread} runs the samples could not be read.` : '';
      await draw();
    };
    const fail = error => { resources.replaceChildren(made('p', `The samples did not come: ${error}`, { className: 'soft' })); };
    result.addEventListener('change', () => load().catch(fail));
    arm.addEventListener('change', () => draw().catch(fail));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => data && draw().catch(fail));
    if (result.value) load().catch(fail);
  }

  /* A run under way. */
  const live = find('live');
  if (live) {
    const runs = new Map(), labels = new Map();
    let known = null;
    const PHASES = { start: 'starting', warm_up: 'warming up', window: 'measuring', drain: 'waiting for spans', saturation: 'saturating', capacity: 'searching the capacity', stop: 'stopping' };
    const left = seconds => seconds == null ? '' : seconds >= 90 ? `, about ${Math.round(seconds / 60)} min left` : `, about ${Math.round(seconds)} s left`;
    const share = value => `${value > 0 ? '+' : ''}${(value * 100).toFixed(1)}`.replace('-', '−');
    const show = () => {
      const { runs_done, runs_of, left_s, preparing, round, variant, phase, second } = known;
      find('state').textContent = known.is_done ? 'All runs are done' : 'Under way';
      Object.assign(find('progress'), { max: Math.max(runs_of, 1), value: runs_done });
      find('runs').textContent = `${runs_done} of ${runs_of} runs${left(left_s)}`;
      const label = known.variants[variant]?.label || variant;
      const rate = second ? ` · ${second.answered} requests/s · p99 ${(second.p99_us / 1e3).toFixed(2)} ms${second.errors ? ` · ${second.errors} errors` : ''}` : '';
      find('now').textContent = preparing || (phase ? `Round ${round} · ${label} · ${PHASES[phase] || phase}${rate}` : '\u00a0');
      find('variants').replaceChildren(...Object.entries(known.variants).map(([name, it]) => {
        labels.set(name, it.label);
        const beside = it.ratio == null ? '–' : `${share(it.ratio)} %${it.ratio_interval ? ` [${share(it.ratio_interval[0])}, ${share(it.ratio_interval[1])}]` : ''}`;
        return cells(document.createElement('tr'), [[it.label], [`${it.runs}${it.void ? ` (+${it.void} that do not count)` : ''}`, true], [digits(it.cpu_us_per_request, 1), true], [beside], [digits(it.p99_us == null ? null : it.p99_us / 1e3, 2), true], [it.wanted ? `${it.lost} of ${it.wanted}` : '–', true]]);
      }));
    };
    /* The last quarter of an hour of the services, second by second; a gap between two runs. */
    const courses = new Map(), MOST = 900;
    let last = '';
    const sampled = () => {
      const { services, second, round, variant } = known, at = second && `${round} ${variant} ${second.second}`;
      find('now-running').hidden = !services.length;
      find('services').replaceChildren(...services.map(it => cells(document.createElement('tr'), [[it.service], [it.role], [digits(it.cpu_cores, 3), true], [digits(it.rss == null ? null : it.rss / 2 ** 20, 1), true]])));
      if (!services.length || !at || at === last) return;
      const anew = last && last.slice(0, last.lastIndexOf(' ')) !== at.slice(0, at.lastIndexOf(' ')), now = new Date().toISOString();
      last = at;
      services.forEach(it => {
        const key = `${it.role} ${it.service}`, course = courses.get(key) || { service: it.service, role: it.role, x: [], cpu_cores: { median: [] }, rss: { median: [] } };
        courses.set(key, course);
        const add = (cpu, rss) => { course.x.push(now); course.cpu_cores.median.push(cpu); course.rss.median.push(rss); };
        if (anew) add(null, null);
        add(it.cpu_cores, it.rss);
        [course.x, course.cpu_cores.median, course.rss.median].forEach(values => values.splice(0, values.length - MOST));
      });
      if (window.Plotly) ofServices(find('courses'), [...courses.values()], { type: 'date' }).then(() => { root.dataset.services = 'ready'; });
    };
    const chart = () => {
      const names = [...new Set([...runs.values()].map(run => run.variant))];
      const traces = names.map((name, at) => {
        const of = [...runs.values()].filter(run => run.variant === name && !run.void && run.cpu_us_per_request != null);
        return { x: of.map(run => run.round), y: of.map(run => run.cpu_us_per_request), name: safe(labels.get(name) || name), mode: 'lines+markers', line: { color: colour(`v${at % 8}`), width: 1.5 }, hovertemplate: 'round %{x}: <b>%{y:.1f} µs</b>' };
      });
      if (traces.length && window.Plotly) Plotly.react(find('rounds'), traces, layout({ height: 300 + 20 * Math.ceil(names.length / 6), showlegend: true, legend: { orientation: 'h', y: -.15 }, xaxis: { tickprefix: 'round ', nticks: 12, tickformat: 'd' }, yaxis: { title: { text: 'µs' }, rangemode: 'tozero' } }), SHOW).then(() => { root.dataset.charts = 'ready'; });
    };
    let waiting;
    const events = new EventSource(live.dataset.events), on = (name, act) => events.addEventListener(name, event => act(JSON.parse(event.data)));
    on('live', state => { known = state; show(); sampled(); root.dataset.live = 'ready'; });
    on('run', run => {
      runs.set(run.run, run);
      find('list').append(cells(document.createElement('tr'), [[run.run, true], [run.round, true], [run.variant], [digits(run.cpu_us_per_request, 1), true], [digits(run.p99_us == null ? null : run.p99_us / 1e3, 2), true], [run.wanted == null ? '–' : `${run.saved} of ${run.wanted}`], [run.void || '']]));
      clearTimeout(waiting);
      waiting = setTimeout(chart, 50);
    });
    on('judged', () => { find('judged').hidden = false; });
    on('end', () => {
      events.close();
      find('state').textContent = 'Not running';
      find('now').textContent = '\u00a0';
      find('services').closest('.scroll').hidden = true;
      if (!known) find('runs').textContent = `${runs.size} runs in the journal`;
      root.dataset.live = 'ended';
    });
    /* The browser tries again by itself; then the journal comes from its start. */
    events.addEventListener('open', () => { runs.clear(); find('list').replaceChildren(); });
    events.addEventListener('error', () => { if (events.readyState !== EventSource.CLOSED) find('state').textContent = 'The server does not answer; trying again'; });
  }
})();
