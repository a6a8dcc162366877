// Numbers, durations and events as a person reads them. "" stands for what is not known.

const isNumber = x => typeof x === 'number' && Number.isFinite(x);

function number(x, digits = 0) {
  return isNumber(x) ? x.toLocaleString('en', { maximumFractionDigits: digits }) : '';
}

// Five decimals of a usual loss or AUC; fewer of large numbers, whose last digits mean nothing.
function metric(x) {
  if (!isNumber(x)) return '';
  const size = Math.abs(x);
  if (size >= 1e7) return x.toExponential(3);
  const digits = size >= 1000 ? 1 : size >= 10 ? 3 : 5;
  return x.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

// Four digits: a rate is stored as a 32-bit number, whose further digits are noise.
function rate(x) {
  if (!isNumber(x)) return '';
  const rounded = Number(x.toPrecision(4));
  return rounded !== 0 && Math.abs(rounded) < 1e-4 ? rounded.toExponential() : String(rounded);
}

function bytes(x) {
  if (!isNumber(x)) return '';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; x >= 1024 && unit < 4; ++unit) x /= 1024;
  const digits = unit && x < 100 ? 1 : 0;
  return `${x.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${units[unit]}`;
}

function duration(s) {
  if (!isNumber(s)) return '';
  if (s < 59.95) return `${number(s, s < 10 ? 2 : 1)} s`;
  const whole = Math.round(s);
  const two = x => String(Math.floor(x)).padStart(2, '0');
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${number(Math.floor(whole / 3600))} h ${two(whole % 3600 / 60)} min`;
}

const counted = (n, what) => `${number(n)} ${what}${n === 1 ? '' : 's'}`;

// What there is to say of chains of servers; [] if all is as usual.
function chainLines(shards, processes) {
  const lines = [];
  for (const [members, count] of Object.entries(shards.by_members)) {
    if (members >= shards.replicas) continue;
    lines.push(`${number(count)} of ${number(shards.count)} shards have ${members} of ${shards.replicas} members.`);
  }
  for (const p of processes.filter(p => p.draining)) {
    lines.push(`Server ${p.id} is drained: ${counted(p.shards, 'shard')} left.`);
  }
  if (shards.copies_left) {
    const parts = [`about ${bytes(shards.bytes_left)}`,
      isNumber(shards.bytes_per_second) ? `${bytes(shards.bytes_per_second)}/s` : '',
      isNumber(shards.seconds_left) ? `about ${duration(shards.seconds_left)} left` : ''];
    lines.push(`${counted(shards.copies_left, 'shard')} to copy, ${parts.filter(p => p).join(', ')}.`);
  }
  for (const lost of shards.lost) lines.push(`Lost: ${lost}.`);
  if (lines.length || shards.replicas > 1) {
    lines.unshift(`${counted(shards.count, 'shard')}, ${shards.replicas === 1 ? 'one copy' :
      `${shards.replicas} copies`} each; version ${number(shards.map_version)} of the map.`);
  }
  return lines;
}

// One sentence for each kind of event.
const sentences = {
  server_joined: e => `Server ${e.id} joined from ${e.host}.`,
  worker_joined: e => `Worker ${e.id} joined from ${e.host}.`,
  started: () => 'All processes are ready: the job starts.',
  resumed: e => `The job goes on from the checkpoint of step ${number(e.step)}.`,
  restored: e => `The parameters of step ${number(e.step)} were loaded again.`,
  checkpoint: e => `The checkpoint of step ${number(e.step)} is complete: ${e.folder}`,
  checkpoint_abandoned: e =>
    `The checkpoint of step ${number(e.step)} was given up, because a server was lost meanwhile.`,
  best_lost: e =>
    `It was the only one of the best model so far, of step ${number(e.step)}; the best before counts.`,
  rate_changed: e => `From step ${number(e.step)} on the learning rate is ` +
    `${rate(e.rate_scale)} times what the job file says.`,
  loss_diverged: e => `Warning: ${e.why}.`,
  early_stop: e => `Training stopped early after step ${number(e.step)}: ` +
    'the validation metric no longer got better.',
  server_lost: e => `Server ${e.id} was lost${e.how ? `: it ${e.how}` : ''}.`,
  server_drains: e => `Server ${e.id} is drained: its shards go to others.`,
  server_drained: e => `Server ${e.id} has no shards left, and leaves the job.`,
  shards_moved: e => `Server ${e.server} has ${counted(e.shards, 'shard')} now.`,
  chains_complete: () => 'Every shard has all its copies again.',
  worker_lost: e => `Worker ${e.id} was lost.`,
  server_failed: e => `Server ${e.id} reported an error.`,
  worker_failed: e => `Worker ${e.id} reported an error.`,
  recovered: e => `Server ${e.id} is back after ${duration(e.seconds)}.`,
  device_emulated: e => `No graphics card is used: ${e.why}.`,
  fallback_to_cpu: e => `The processor takes what was meant for a graphics card: ${e.why}.`,
  table_on_worker: e => `A table lies on the workers: ${e.why}.`,
  ended: e => `The job ended: ${e.status}.`,
};

function sentence(event) {
  if (Object.hasOwn(sentences, event.kind)) return sentences[event.kind](event);
  const { t, kind, ...rest } = event;
  const details = Object.entries(rest).map(([key, value]) => `${key.replaceAll('_', ' ')} ${value}`);
  const words = kind.replaceAll('_', ' ');
  const begin = words.charAt(0).toUpperCase() + words.slice(1);
  return `${begin}${details.length ? ': ' : ''}${details.join(', ')}.`;
}
