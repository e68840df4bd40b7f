export { cost, count, duration, percent, size as byteSize, took } from '../../../text/quantities.ts';

export function plural(number: number, noun: string, nouns = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : nouns}`;
}

const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

export function when(at: number): string {
  return dateTime.format(at);
}

/** `just now`, `5 minutes ago`, `yesterday`; a date if it is longer ago than a week. */
export function ago(at: number, now = Date.now()): string {
  const minutes = Math.round((now - at) / 60_000);
  if (minutes < 1) return 'just now';
  if (minutes < 60) return relative.format(-minutes, 'minute');
  if (minutes < 24 * 60) return relative.format(-Math.round(minutes / 60), 'hour');
  const days = Math.round(minutes / (24 * 60));
  return days < 7 ? relative.format(-days, 'day') : when(at);
}

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
