/** `850 ms`, `12.3 s`, `4 m 05 s`, `2 h 04 m`; a dash if it is not known. */
export function duration(milliseconds: number | undefined): string {
  if (milliseconds === undefined) return '–';
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1000);
  const two = (number: number) => String(number).padStart(2, '0');
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${two(Math.floor((seconds % 3600) / 60))} m`;
}

/** `67 %`; a dash if nothing was scored. */
export function percent(ratio: number | undefined): string {
  return ratio === undefined ? '–' : `${Math.round(ratio * 100)} %`;
}

/** `$0.0123`; a dash if it is not known. */
export function cost(usd: number | undefined): string {
  if (usd === undefined) return '–';
  return `$${usd.toFixed(usd !== 0 && usd < 1 ? 4 : 2)}`;
}

/** `950`, `12.3k`, `1.2M`; a dash if it is not known. */
export function count(number: number | undefined): string {
  if (number === undefined) return '–';
  if (number < 1000) return String(Math.round(number));
  return number < 1_000_000 ? `${(number / 1000).toFixed(1)}k` : `${(number / 1_000_000).toFixed(1)}M`;
}

/** `950 B`, `12.3 KiB`, `4.0 MiB`. */
export function byteSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 ** 2 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
}

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
