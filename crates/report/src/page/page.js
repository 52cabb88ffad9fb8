/* The page: unpacks plotly.js, draws charts as they come near the screen, switches variants, fills tables, prints. */
(async () => {
  const root = document.documentElement, trouble = document.getElementById('trouble');
  const fail = error => {
    root.dataset.charts = 'failed';
    trouble.hidden = false;
    trouble.textContent = `The charts could not be drawn (${error}). The tables and findings.json have every number.`;
  };
  try {
    const data = JSON.parse(document.getElementById('charts').textContent);
    const hidden = new Set(), drawn = new Map();
    const colour = name => getComputedStyle(root).getPropertyValue(`--${name}`).trim() || name;
    /* What is chosen in a list decides what the charts of its kinds show. */
    const metric = document.getElementById('metric'), round = document.getElementById('round'), chosenBy = { pace: round, pace_ratio: round };
    const view = element => new View(data, hidden, colour, element.clientWidth || 600);
    const given = ({ dataset }) => [dataset.chart, Number(dataset.index), (chosenBy[dataset.chart] || metric)?.selectedIndex ?? 0];

    const tint = () => {
      const shades = new View(data, hidden, colour, 0);
      document.querySelectorAll('[data-swatch]').forEach(swatch => { swatch.style.background = shades.shade(swatch.dataset.swatch); });
      document.querySelectorAll('[data-edge]').forEach(edge => { if (edge.dataset.edge) edge.style.borderLeftColor = shades.shade(edge.dataset.edge); });
    };
    tint();
    (data.rounds || []).forEach(rounds => metric?.add(new Option(rounds.title)));
    round?.add(new Option('all, side by side'));
    data.pace.rounds.forEach(it => round?.add(new Option(it.round)));
    /* A narrow screen has room for one. */
    if (round && innerWidth < 600) round.selectedIndex = 1;

    const table = details => {
      const [kind, index, which] = given(details), [head, ...rows] = TABLE[kind](view(details), index, which);
      const made = document.createElement('table'), row = (cells, name, body) => {
        const line = document.createElement('tr');
        cells.forEach(text => { const cell = document.createElement(name); cell.textContent = text; line.append(cell); });
        body.append(line);
      };
      row(head, 'th', made.createTHead());
      const body = made.createTBody();
      rows.forEach(cells => row(cells, 'td', body));
      details.querySelector('div').replaceChildren(made);
    };
    document.querySelectorAll('details.numbers').forEach(details => details.addEventListener('toggle', () => details.open && table(details)));

    /* Space is kept before anything is drawn, so that nothing jumps. What has rows is as high as they are. */
    const charts = [...document.querySelectorAll('.chart')], rowed = { forest: [44, 46], ledger: [48, 74], ladder: [46, 66], cost: [48, 90], operations: [60, 50] };
    charts.forEach(({ dataset, style }) => { if (rowed[dataset.chart]) style.minHeight = `${rowed[dataset.chart][0] * dataset.rows + rowed[dataset.chart][1]}px`; });

    const packed = atob(document.getElementById('library').textContent.trim()), bytes = new Uint8Array(packed.length);
    for (let at = 0; at < packed.length; at++) bytes[at] = packed.charCodeAt(at);
    const script = document.createElement('script');
    script.textContent = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
    document.head.append(script);
    if (!window.Plotly) throw new Error('no plotly.js');

    /* Paper is as wide as it is, whatever the screen: A4 and Letter less their margins. */
    const PAPER = 640;
    let printing = false;
    const draw = element => {
      const [kind, index, which] = given(element), { traces, layout } = BUILD[kind](printing ? new View(data, hidden, colour, PAPER) : view(element), index, which);
      if (printing && !layout.showlegend) layout.showlegend = traces.some(trace => trace.name) && data.arms.length > 1 && !['forest', 'ladder'].includes(kind);
      element.style.minHeight = `${layout.height}px`;
      drawn.set(element, true);
      return Plotly.react(element, traces, { ...layout, width: printing ? PAPER : element.clientWidth, autosize: false }, { displaylogo: false, displayModeBar: false, responsive: false, doubleClick: 'reset' });
    };
    const redraw = () => Promise.all([...drawn.keys()].map(draw));
    const all = () => Promise.all(charts.map(draw));
    /* Ready is when what can be seen has been drawn. The observer's first report has every chart in it. */
    const ready = () => { root.dataset.charts ||= 'ready'; };
    const near = new IntersectionObserver(entries => {
      const seen = entries.filter(entry => entry.isIntersecting).map(({ target }) => { near.unobserve(target); return draw(target); });
      Promise.all(seen).then(ready, fail);
    }, { rootMargin: '200px' });
    charts.forEach(element => near.observe(element));

    document.querySelectorAll('[data-arm]').forEach(box => box.addEventListener('change', () => {
      box.checked ? hidden.delete(box.dataset.arm) : hidden.add(box.dataset.arm);
      redraw().catch(fail);
    }));
    [metric, round].forEach(list => list?.addEventListener('change', () => {
      redraw().catch(fail);
      document.querySelectorAll('details.numbers[open]').forEach(table);
    }));
    let width = innerWidth, waiting;
    addEventListener('resize', () => { if (innerWidth !== width) { width = innerWidth; clearTimeout(waiting); waiting = setTimeout(redraw, 80); } });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { tint(); redraw().catch(fail); });
    addEventListener('beforeprint', () => { printing = true; all(); });
    addEventListener('afterprint', () => { printing = false; redraw(); });
    window.unladen = { all };
    if (!charts.length) ready();
  } catch (error) {
    fail(error);
  }
})();
