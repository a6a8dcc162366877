// The page of one job. A live job's is fetched from /status every second; an ended job's result file
// is inside the page. Texts of the job only ever become text content.

const at = id => document.getElementById(id);

function make(tag, text = '', parent = null) {
  const element = document.createElement(tag);
  element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

// Calls `build` only if `what` has changed, so that scrolled tables and selected text stay as they are.
function rebuild(element, what, build) {
  const key = JSON.stringify(what);
  if (element.shown === key) return;
  element.shown = key;
  build(element);
}

// Fills a box and shows its section, or hides the section where there are no rows. Columns are {name,
// of, text, group}: `of` gives a row's cell; those without any value are left out.
function table(id, columns, rows) {
  columns = columns.filter(c => rows.some(row => c.of(row) !== ''));
  const cells = rows.map(row => columns.map(c => c.of(row)));
  at(id).parentElement.hidden = !rows.length;
  rebuild(at(id), [columns.map(c => [c.group, c.name]), cells], box => {
    box.replaceChildren();
    const whole = make('table', '', box), head = make('thead', '', whole), body = make('tbody', '', whole);
    const group = i => columns[i]?.group ?? '';
    const edge = i => i && group(i) !== group(i - 1) ? ' edge' : '';
    if (columns.some(c => c.group)) {
      const line = make('tr', '', head);
      columns.forEach((c, i) => {
        if (group(i) && group(i) === group(i - 1)) ++line.lastChild.colSpan;
        else make('th', group(i), line).className = `group${edge(i)}`;
      });
    }
    const line = make('tr', '', head);
    columns.forEach((c, i) => { make('th', c.name, line).className = (c.text ? '' : 'number') + edge(i); });
    for (const row of cells) {
      const line = make('tr', '', body);
      row.forEach((cell, i) => { make('td', cell, line).className = (columns[i].text || 'number') + edge(i); });
    }
  });
}

// A number that is worth a column only if some row has more than 0.
const count = x => x ? number(x) : '';

// The names of the job's losses. An older result file does not list them: its metrics do.
function lossesOf(job) {
  if (job.losses) return job.losses;
  const last = (job.curve || []).at(-1);
  if (last) return Object.keys(last.loss);
  const valid = (job.history || []).at(-1)?.valid || job.metrics?.valid || {};
  const named = Object.keys(valid).filter(name => valid[name] !== null && typeof valid[name] === 'object');
  return named.length ? named : ['loss'];
}

// Of one loss the metrics stand alone, of several under each one's name.
const metricsOf = (metrics, loss, losses) => (losses.length > 1 ? metrics?.[loss] : metrics) || {};
const titled = (loss, losses, what) => losses.length > 1 ? `${loss}: ${what}` : what;

// What is shown of an evaluation besides the loss: the key in its metrics, the title, and the unit of its chart.
const METRICS = [
  { key: 'auc', title: 'AUC', unit: 'area under the ROC curve' },
  { key: 'accuracy', title: 'accuracy', unit: 'share of samples' },
  { key: 'pr_auc', title: 'PR AUC', unit: 'average precision' },
  { key: 'rmse', title: 'RMSE', unit: 'root of the mean squared error' },
  { key: 'gauc', title: 'GAUC', unit: 'mean AUC of groups' },
  { key: 'ndcg', title: 'NDCG', unit: 'mean of groups' },
  { key: 'recall', title: 'recall', unit: 'mean of groups' },
  { key: 'hit_rate', title: 'hit rate', unit: 'share of groups' },
  { key: 'mrr', title: 'MRR', unit: 'mean of groups' }];

function showState(job) {
  const live = !job.status;
  const state = job.status || job.outcome?.status || job.phase;
  at('name').textContent = job.job;
  at('state').textContent = state;
  at('state').className = `state ${state}`;
  const progress = live && job.steps ? job.step / job.steps : 0;
  document.title = live && !job.outcome ? `${number(100 * progress)} % ${job.job}` : `${job.job}: ${state}`;
  const parts = live
    ? [job.epochs ? `epoch ${number(job.epoch)} of ${number(job.epochs)}` : '',
      job.steps ? `step ${number(job.step)} of ${number(job.steps)}` : '',
      isNumber(job.seconds) ? `${duration(job.seconds)} since the start` : '', job.places,
      ...(job.recovers || [])]
    : job.steps ? [counted(job.epochs, 'epoch'), counted(job.steps, 'step'), counted(job.samples, 'sample'),
      `${duration(job.seconds)} of training`] : ['nothing was trained'];
  at('summary').textContent = parts.filter(part => part).join(' · ');
  at('checkpoint').textContent = job.checkpoint ? `newest checkpoint: ${job.checkpoint}` : '';
  at('bar').hidden = !live || !job.steps;
  at('bar').value = progress;
  showProblem(job.error || job.outcome?.error, state);
}

function showProblem(error, state) {
  at('problem').hidden = !error;
  if (!error) return;
  rebuild(at('problem'), [error, state], box => {
    box.className = `problem ${state}`;
    box.replaceChildren();
    const list = make('dl', '', box);
    const rows = { 'What happened': error.what, Where: error.where, 'What to do': error.hint };
    for (const [name, text] of Object.entries(rows)) {
      if (!text) continue;
      make('dt', name, list);
      make('dd', text, list);
    }
  });
}

// Groups of tiles, [title, {label: text}]; a text of "" has no tile.
function showTiles(groups) {
  rebuild(at('tiles'), groups, all => {
    all.replaceChildren();
    for (const [title, tiles] of groups) {
      const known = Object.entries(tiles).filter(([, text]) => text !== '');
      if (!known.length) continue;
      if (title) make('h3', title, all);
      const group = make('div', '', all);
      group.className = 'tiles';
      for (const [label, text] of known) {
        const tile = make('div', '', group);
        tile.className = 'tile';
        make('b', text, tile);
        make('span', label, tile);
      }
    }
  });
}

function tilesOf(job, losses) {
  const last = (job.history || []).at(-1);
  const groups = losses.map((loss, i) => {
    const [its, t, ended] = [job.metrics?.train ?? job.train, job.metrics?.test, job.metrics?.valid]
      .map(m => metricsOf(m, loss, losses));
    // A job that did not get to its end has only its evaluations.
    const v = isNumber(ended.logloss) ? ended : metricsOf(last?.valid, loss, losses);
    const best = i === 0 ? job.best_possible : null;  // Generated data has one label.
    const of = (split, values) => Object.fromEntries(METRICS.map(m => [`${split} ${m.title}`, metric(values[m.key])]));
    return [losses.length > 1 ? loss : '', {
      ...of('test', t), 'best possible AUC': metric(best?.auc), 'test loss': metric(t.logloss),
      ...of('validation', v), 'validation loss': metric(v.logloss), 'training loss': metric(its.logloss) }];
  });
  const whole = {
    'samples/s': number(job.samples_per_second),
    'time left': job.outcome ? '' : duration(job.seconds_left),
    'learning rate': rate(job.learning_rate ?? last?.learning_rate),
    'best epoch': number(job.best?.epoch) };
  return losses.length > 1 ? [...groups, ['job', whole]] : [['', { ...groups[0][1], ...whole }]];
}

// The charts' input: x is a step, `where` tells the step, the epoch and the time.
function chartsOf(job, losses) {
  const curve = job.curve || [], history = job.history || [];
  const alongCurve = of => curve.map(p => ({ x: p.step, y: of(p),
    where: `step ${number(p.step)}${isNumber(p.seconds) ? `, ${duration(p.seconds)}` : ''}` }));
  const alongEpochs = of => history.map(h => ({ x: h.step, y: of(h),
    where: `epoch ${number(h.epoch)}, step ${number(h.step)}` }));
  const training = { name: 'training', color: 'var(--train)' };
  const validation = { name: 'validation', color: 'var(--valid)', dots: history.length <= 60 };
  const charts = losses.flatMap(loss => {
    const valid = h => metricsOf(h.valid, loss, losses);
    const losing = curve.length ? alongCurve(p => p.loss[loss])
      : alongEpochs(h => metricsOf(h.train, loss, losses).logloss);
    const of = m => ({ title: titled(loss, losses, m.title), unit: m.unit, format: metric,
      series: [{ ...validation, points: alongEpochs(h => valid(h)[m.key]) }] });
    return [
      { title: titled(loss, losses, 'loss'), unit: 'mean loss per sample', format: metric, mayBeLog: true,
        series: [{ ...training, dots: !curve.length, points: losing },
          { ...validation, points: alongEpochs(h => valid(h).logloss) }] },
      ...METRICS.map(of)];
  });
  const one = { name: '', color: 'var(--third)' };
  charts.push(
    { title: 'learning rate', unit: 'step size of the optimizer', format: rate, fromZero: true, mayBeLog: true,
      series: [{ ...one, stairs: true, points: curve.length ? alongCurve(p => p.learning_rate)
        : alongEpochs(h => h.learning_rate) }] },
    { title: 'speed', unit: 'samples/s', format: x => `${number(x)} samples/s`, fromZero: true,
      series: [{ ...one, points: alongCurve(p => p.samples_per_second) }] });
  const lastStep = Math.max(1, curve.at(-1)?.step ?? 0, history.at(-1)?.step ?? 0);
  for (const chart of charts) {
    chart.lastStep = lastStep;
    chart.series = chart.series.filter(s => s.points.some(p => isNumber(p.y)));
  }
  return charts.filter(chart => chart.series.length);
}

function showCharts(charts) {
  const box = at('charts');
  box.parentElement.hidden = !charts.length;
  while (box.children.length > charts.length) box.lastChild.remove();
  while (box.children.length < charts.length) make('figure', '', box);
  charts.forEach((chart, i) => {
    const figure = box.children[i];
    rebuild(figure, [figure.clientWidth, chart], () => drawChart(figure, chart));
  });
}

function showEvaluations(job, losses, inOrder) {
  const several = losses.length > 1;
  const columns = losses.flatMap(loss => {
    const of = (which, key) => h => metric(metricsOf(h[which], loss, losses)[key]);
    const group = several ? loss : '';
    return [{ group, name: 'training loss', of: of('train', 'logloss') },
      { group, name: 'validation loss', of: of('valid', 'logloss') },
      ...METRICS.map(m => ({ group, name: m.title, of: of('valid', m.key) })),
      { group, name: 'calibration', of: of('valid', 'calibration') }];
  });
  table('evaluations', [
    { name: 'epoch', of: h => number(h.epoch) + (h.epoch === job.best?.epoch ? ' (best)' : '') },
    { name: 'step', of: h => number(h.step) }, ...columns,
    { name: 'learning rate', of: h => rate(h.learning_rate) }], inOrder(job.history || []));
}

// There is one scheduler, and of `train` one process.
const nameOf = p => ['scheduler', 'train'].includes(p.role) ? p.role : `${p.role} ${p.id}`;

// Workers at the left, what leads in the middle, servers at the right, with their connections.
function showTopology(processes) {
  const lead = [{ role: 'scheduler' }];
  const of = role => processes.filter(p => p.role === role);
  const columns = [of('worker'), of('scheduler').length ? of('scheduler') : lead, of('server')];
  if (!columns[0].length || !columns[2].length) return at('topology').replaceChildren();
  const most = 8, width = Math.min(at('topology').clientWidth, 760);
  const shown = columns.map(all => all.length <= most ? all
    : [...all.slice(0, most - 1), { more: all.length - most + 1, role: all[0].role }]);
  const row = 46, height = row * Math.max(...shown.map(c => c.length)), wide = Math.min(170, width / 3 - 16);
  rebuild(at('topology'), [width, shown.map(all => all.map(p => [p.role, p.id, p.pid, p.more]))], box => {
    box.replaceChildren();
    const svg = svgMake('svg', { viewBox: `0 0 ${width} ${height}`, height, role: 'img',
      'aria-label': 'processes and their connections', style: `width: ${width}px` }, box);
    const place = (c, i) => [c * (width - wide) / 2, (height - shown[c].length * row) / 2 + i * row + 3];
    const join = (a, b) => shown[a].forEach((_, i) => shown[b].forEach((__, j) => {
      const [[x1, y1], [x2, y2]] = [place(a, i), place(b, j)];
      svgMake('line', { x1: x1 + wide, y1: y1 + 20, x2, y2: y2 + 20, stroke: 'var(--line)' }, svg);
    }));
    [[0, 2], [0, 1], [1, 2]].forEach(([a, b]) => join(a, b));
    shown.forEach((all, c) => all.forEach((p, i) => {
      const [x, y] = place(c, i);
      svgMake('rect', { x: x + 0.5, y, width: wide - 1, height: 40, rx: 5, fill: 'var(--card)',
        stroke: c === 1 ? 'var(--train)' : 'var(--valid)' }, svg);
      const name = p.more ? `and ${counted(p.more, `more ${p.role}`)}` : nameOf(p);
      svgMake('text', { x: x + 8, y: y + (p.pid ? 17 : 24), class: 'strong' }, svg, name);
      if (p.pid) svgMake('text', { x: x + 8, y: y + 33 }, svg, `pid ${p.pid}`);
    }));
  });
}

function showProcesses(job) {
  const processes = job.processes || job.roles || [];
  const only = (role, of) => p => p.role === role ? of(p) : '';
  table('processes', [
    { name: 'process', text: 'text', of: nameOf },
    { name: 'host', text: 'text', of: p => p.host || '' },
    { name: 'pid', of: p => isNumber(p.pid) ? String(p.pid) : '' },
    { name: 'step', of: only('worker', p => number(p.step)) },
    { name: 'shards', of: only('server', p => number(p.shards)) },
    { name: 'kept for copies', of: p => p.kept_bytes ? bytes(p.kept_bytes) : '' },
    { name: 'CPU time', of: p => duration(p.cpu_seconds) },
    { name: 'peak memory', of: p => bytes(p.peak_rss_bytes) },
    { name: 'sent', of: p => bytes(p.bytes_sent) },
    { name: 'received', of: p => bytes(p.bytes_received) },
    { name: 'last heard', of: p => isNumber(p.heartbeat_age) ? `${number(p.heartbeat_age, 1)} s ago` : '' },
    { name: 'accelerator', text: 'text',
      of: p => p.accelerator ? `${p.accelerator.name}, ${bytes(p.accelerator.memory_bytes)}` : '' }],
  processes);
  showTopology(processes);
}

function showShards(job) {
  const shards = job.shards || { copies: [] };
  const lines = job.shards ? chainLines(shards, job.processes) : [];
  const begun = c => c.rows || c.rows_of_shard;
  table('copies', [
    { name: 'shard', of: c => number(c.shard) },
    { name: 'from', text: 'text', of: c => `server ${c.from}` },
    { name: 'to', text: 'text', of: c => `server ${c.to}` },
    { name: 'rows', of: c => begun(c) ? number(Math.min(c.rows, c.rows_of_shard)) : 'waits' },
    { name: 'of', of: c => begun(c) ? number(c.rows_of_shard) : '' },
    { name: 'copied', of: c => begun(c) ? bytes(c.bytes) : '' }], shards.copies);
  at('chains').parentElement.hidden = !lines.length;
  rebuild(at('chains'), lines, box => {
    box.replaceChildren();
    for (const line of lines) make('p', line, box);
  });
}

function showTables(job) {
  const rows = Object.entries(job.tables || {}).map(([name, t]) => [name, t, job.checksum?.tables?.[name]]);
  if (job.checksum?.dense) rows.push(['dense parameters', {}, job.checksum.dense]);
  table('tables', [
    { name: 'table', text: 'text', of: ([name]) => name },
    { name: 'rows', of: ([, t]) => number(t.rows) },
    { name: 'size', of: ([, t]) => bytes(t.bytes) },
    { name: 'in memory', of: ([, t]) => t.rows_on_disk ? number(t.rows_in_memory) : '' },
    { name: 'on disk', of: ([, t]) => count(t.rows_on_disk) },
    { name: 'looked up', of: ([, t]) => count(t.rows_touched) },
    { name: 'read from disk', of: ([, t]) => count(t.rows_fetched) },
    { name: 'written to disk', of: ([, t]) => count(t.rows_written) },
    { name: 'refused pushes', of: ([, t]) => count(t.pushes_refused) },
    { name: 'expired', of: ([, t]) => count(t.rows_expired) },
    { name: 'checksum', text: 'code', of: ([, , checksum]) => checksum || '' }], rows);
}

function show(job) {
  const losses = lossesOf(job);
  const inOrder = rows => job.status ? rows : rows.slice().reverse();  // Live: the newest first.
  showState(job);
  showTiles(tilesOf(job, losses));
  showEvaluations(job, losses, inOrder);
  showProcesses(job);
  showShards(job);
  showTables(job);
  table('events', [{ name: 'time', of: e => duration(e.t) },
    { name: 'event', text: 'prose', of: sentence }], inOrder(job.events || []));
  const charts = chartsOf(job, losses);
  showCharts(charts);
  onresize = () => { showCharts(charts); showProcesses(job); };
}

// The live page's.
const found = new Set();  // Pages that the scheduler serves only at times.
let heard = null;         // When the last answer came.
let answers = 0;

async function fetched(path) {
  try {
    const reply = await fetch(path, { signal: AbortSignal.timeout(5000) });
    return reply.ok ? reply : null;
  } catch {
    return null;
  }
}

async function showLinks(job) {
  const links = { status: 'status as JSON', metrics: 'metrics for Prometheus', plan: 'plan',
    timeline: 'timeline of steps' };
  for (const path of ['plan', 'timeline']) {
    const due = job.phase === 'running' && answers % 10 === 1 && !found.has(path);
    if (due && await fetched(path)) found.add(path);
  }
  rebuild(at('links'), [...found], nav => {
    nav.replaceChildren();
    for (const [path, text] of Object.entries(links)) {
      if (path in { status: 0, metrics: 0 } || found.has(path)) make('a', text, nav).href = path;
    }
  });
}

function showNote(text) {
  at('note').hidden = text === '';
  at('note').textContent = text;
}

function showSilence() {
  at('links').hidden = true;  // They would lead nowhere.
  showNote(heard === null ? 'The scheduler does not answer.'
    : `The scheduler has not answered since ${heard.toLocaleTimeString()}. These are its last figures; ` +
      'if the job has ended, its log and its result file say how.');
  at('state').textContent = 'no answer';
  at('state').className = 'state silent';
}

// Asks every second until the job has ended.
async function watch() {
  const reply = await fetched('status');
  if (reply === null) {
    showSilence();
  } else {
    const job = await reply.json();
    heard = new Date();
    ++answers;
    show(job);
    showNote(job.outcome ? `The job has ended, at ${heard.toLocaleTimeString()}. These are its last figures.` : '');
    at('links').hidden = job.outcome !== null;
    if (job.outcome) return;
    showLinks(job);
  }
  setTimeout(watch, 1000);
}

const result = JSON.parse(at('data').textContent);
if (result === null) watch();
else show(result);
