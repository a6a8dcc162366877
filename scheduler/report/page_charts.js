// Line charts as SVG, drawn at the width that they have on the screen.

const kChartHeight = 230;
const kLetter = 7;  // About the width of a digit.

function svgMake(tag, attributes, parent, text = '') {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  parent.append(element);
  return element;
}

// The distance of about `count` round ticks.
function roundStep(range, count) {
  const rough = range / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map(f => f * power).find(step => step >= rough * 0.999);
}

// The labels of evenly spaced ticks: "0.25", "1,500", "20k", "1.5M", "2e-5".
function tickLabels(values) {
  const size = Math.max(...values.map(Math.abs));
  const [scale, suffix] = size >= 1e9 ? [1e9, 'G'] : size >= 1e6 ? [1e6, 'M'] :
    size >= 1e4 ? [1e3, 'k'] : [1, ''];
  const step = values.length > 1 ? (values[1] - values[0]) / scale : size || 1;
  if (step < 1e-4 || size / scale >= 1e4) {
    return values.map(v => v === 0 ? '0' : Number(v.toPrecision(3)).toExponential());
  }
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return values.map(v => v === 0 ? '0' : (v / scale).toLocaleString('en',
    { minimumFractionDigits: digits, maximumFractionDigits: digits }) + suffix);
}

// The axis of steps: from 0 to the last one.
function stepAxis(last, count) {
  const step = Math.max(1, roundStep(last, count)), at = [];
  for (let value = 0; value <= last; value += step) at.push(value);
  return { ticks: at, labels: tickLabels(at), place: v => v / last };
}

// An axis over `values` that ends at round ticks; `place` maps a value to 0..1. Values above 0 that
// span more than two decades get a logarithmic one.
function valueAxis(values, { fromZero, mayBeLog }) {
  let low = Math.min(...values), high = Math.max(...values);
  if (mayBeLog && low > 0 && high / low > 100) {
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
    const every = Math.ceil((last - first) / 6);
    const at = [];
    for (let power = first; power <= last; power += every) at.push(10 ** power);
    return { ticks: at, labels: at.map(v => tickLabels([v])[0]), isLog: true,
      place: v => (Math.log10(v) - first) / (last - first) };
  }
  if (fromZero) [low, high] = [Math.min(0, low), high * 1.05];
  if (high === low) [low, high] = low === 0 ? [0, 1] : [low - Math.abs(low) / 10, high + Math.abs(high) / 10];
  const step = roundStep(high - low, 4);
  const first = Math.floor(low / step + 1e-9), last = Math.ceil(high / step - 1e-9);
  const at = [];
  for (let i = first; i <= last; ++i) at.push(i * step);
  return { ticks: at, labels: tickLabels(at), isLog: false,
    place: v => (v / step - first) / (last - first) };
}

// Pieces of a line without the points that have no value.
function runsOf(points) {
  const runs = [[]];
  for (const p of points) {
    if (isNumber(p.y)) runs.at(-1).push(p);
    else if (runs.at(-1).length) runs.push([]);
  }
  return runs.filter(run => run.length);
}

function drawAxes(svg, chart, x, y, box) {
  y.ticks.forEach((value, i) => {
    const at = box.y(value);
    svgMake('line', { x1: box.left, x2: box.right, y1: at, y2: at, stroke: 'var(--line)' }, svg);
    svgMake('text', { x: box.left - 6, y: at + 4, 'text-anchor': 'end' }, svg, y.labels[i]);
  });
  x.ticks.forEach((value, i) => {
    const at = box.x(value);
    svgMake('line', { x1: at, x2: at, y1: box.bottom, y2: box.bottom + 4, stroke: 'var(--soft)' }, svg);
    const anchor = at > box.right - kLetter * 2 ? 'end' : 'middle';
    svgMake('text', { x: anchor === 'end' ? box.right : at, y: box.bottom + 17, 'text-anchor': anchor },
      svg, x.labels[i]);
  });
  svgMake('line', { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, stroke: 'var(--soft)' }, svg);
  svgMake('text', { x: 0, y: 13 }, svg, chart.unit + (y.isLog ? ', logarithmic' : ''));
  svgMake('text', { x: (box.left + box.right) / 2, y: kChartHeight - 4, 'text-anchor': 'middle' }, svg, 'step');
}

function drawSeries(svg, series, box) {
  for (const run of runsOf(series.points)) {
    if (run.length > 1) {
      // A point with `stairs` holds for the steps since the one before.
      const corners = run.flatMap((p, i) => series.stairs && i ? [{ x: run[i - 1].x, y: p.y }, p] : [p]);
      svgMake('polyline', { points: corners.map(p => `${box.x(p.x).toFixed(1)},${box.y(p.y).toFixed(1)}`).join(' '),
        fill: 'none', stroke: series.color, 'stroke-width': 1.8, 'stroke-linejoin': 'round' }, svg);
    }
    if (!series.dots && run.length > 1) continue;
    for (const p of run) svgMake('circle', { cx: box.x(p.x), cy: box.y(p.y), r: 2.8, fill: series.color }, svg);
  }
}

// Shows, of each series, the point nearest to the pointer: in the place of the legend, beside the curves.
function showTip(figure, svg, chart, box, pointer) {
  const tip = figure.querySelector('.tip');
  svg.querySelector('.marks')?.remove();
  tip.hidden = pointer === null;
  if (pointer === null) return;
  const marks = svgMake('g', { class: 'marks' }, svg);
  tip.replaceChildren();
  const distance = p => Math.abs(box.x(p.x) - pointer);
  for (const series of chart.series) {
    const known = series.points.filter(p => isNumber(p.y));
    if (!known.length) continue;
    const nearest = known.reduce((best, p) => distance(p) < distance(best) ? p : best);
    svgMake('circle', { cx: box.x(nearest.x), cy: box.y(nearest.y), r: 4.5, fill: 'none',
      stroke: series.color, 'stroke-width': 2 }, marks);
    const line = make('div', `${series.name} ${chart.format(nearest.y)}, ${nearest.where}`.trim(), tip);
    line.className = 'key';
    line.style.setProperty('--key', series.color);
  }
}

// Draws `chart` into `figure`: {title, unit, format, lastStep, fromZero, mayBeLog, series: [{name, color, dots,
// stairs, points: [{x, y, where}]}]}. x is a step; a y that is no number leaves a gap.
function drawChart(figure, chart) {
  const caption = make('figcaption');
  make('span', chart.title, caption);
  for (const series of chart.series.filter(s => s.name)) {
    const key = make('span', series.name, caption);
    key.className = 'key';
    key.style.setProperty('--key', series.color);
  }
  const tip = make('div');
  tip.className = 'tip';
  figure.replaceChildren(caption, tip);
  const width = figure.clientWidth;
  const svg = svgMake('svg', { viewBox: `0 0 ${width} ${kChartHeight}`, height: kChartHeight, role: 'img',
    'aria-label': chart.title }, figure);
  const points = chart.series.flatMap(s => s.points).filter(p => isNumber(p.y));
  const y = valueAxis(points.map(p => p.y), chart);
  const x = stepAxis(chart.lastStep, width / 110);
  const box = { left: 10 + kLetter * Math.max(...y.labels.map(l => l.length)), right: width - 5,
    top: 26, bottom: kChartHeight - 38 };
  box.x = value => box.left + x.place(value) * (box.right - box.left);
  box.y = value => box.bottom - y.place(value) * (box.bottom - box.top);
  drawAxes(svg, chart, x, y, box);
  chart.series.forEach(series => drawSeries(svg, series, box));
  const show = pointer => {
    figure.pointer = pointer;
    showTip(figure, svg, chart, box, pointer);
  };
  svg.onpointermove = event => show(event.clientX - svg.getBoundingClientRect().left);
  svg.onpointerleave = () => show(null);
  show(figure.pointer ?? null);  // A live page draws again under a resting pointer.
}
