import type { Bound, Channel, Dimension } from './channel.ts';
import { GiB, KiB, MiB } from './channel.ts';

/** The table of all bounds is between these two lines of a page. */
const begin = '<!-- bounds: written by `npm run generate` from src/bounds/ -->';
const end = '<!-- end of bounds -->';

/** The page with the table of these channels in its place. Throws if the page has no place for it. */
export function withTable(page: string, channels: Readonly<Record<string, Channel>>): string {
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from === -1 || to < from) throw new Error(`the page has no place for the table of bounds: ${begin}`);
  return `${page.slice(0, from + begin.length)}\n\n${tableOf(channels)}\n\n${page.slice(to)}`;
}

function tableOf(channels: Readonly<Record<string, Channel>>): string {
  const rows = Object.entries(channels).map(([name, { description }]) => {
    const { sender, over, bytes, time, count } = description;
    return [`**${sender}**: ${over}. \`${name}\``, ...[bytes, time, count].map(cell)];
  });
  const head = ['channel', 'bytes', 'time', 'count'];
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

function cell(given: Dimension): string {
  if (typeof given === 'string') return `(${given})`;
  return Object.values(given)
    .map((bound) => `**${amount(bound)}** ${bound.of}`)
    .join('<br>');
}

function amount({ most, unit }: Bound): string {
  switch (unit) {
    case 'bytes':
      return bytes(most);
    case 'characters':
      return `${characters(most)} characters`;
    case 'heap':
      return `1/${1 / most} of the heap`;
    case 'milliseconds':
      return duration(most);
    case 'times':
      return number(most);
  }
}

function characters(most: number): string {
  if (most % MiB === 0) return `${most / MiB} Mi`;
  return most % KiB === 0 ? `${most / KiB} Ki` : number(most);
}

function bytes(most: number): string {
  if (most % GiB === 0) return `${most / GiB} GiB`;
  if (most % MiB === 0) return `${most / MiB} MiB`;
  return most % KiB === 0 ? `${most / KiB} KiB` : `${number(most)} bytes`;
}

function duration(most: number): string {
  if (most >= 300_000 && most % 60_000 === 0) return `${most / 60_000} min`;
  return most % 1000 === 0 ? `${most / 1000} s` : `${most} ms`;
}

function number(most: number): string {
  return most.toLocaleString('en-US');
}
