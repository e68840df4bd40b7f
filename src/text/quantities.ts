/**
 * `850 ms`, `12.3 s`, `4 m 05 s`, `2 h 04 m`; a dash if it is not known, as between two times of a clock that
 * was set back.
 */
export function duration(milliseconds: number | undefined): string {
  if (milliseconds === undefined || milliseconds < 0) return '–';
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return inParts(Math.round(milliseconds / 1000));
}

/** Seconds as minutes and seconds, or as hours and minutes. */
function inParts(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} m ${two(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} m`;
}

function two(number: number): string {
  return String(number).padStart(2, '0');
}

/**
 * The duration of one thing: `1.9 s`, or `about 1.9 s` if only the arrival of its reports is known.
 */
export function took(milliseconds: number, isAbout = false): string {
  return isAbout ? `about ${duration(milliseconds)}` : duration(milliseconds);
}

/** What a change of a case's pass rate is called, if it need not be more than noise. */
export function changeWord(before: number, after: number): 'worse' | 'better' {
  return after < before ? 'worse' : 'better';
}

/** `45 s`, `4 m 05 s`, `2 h 05 m`: the time that something in progress has taken. */
export function elapsed(milliseconds: number): string {
  const seconds = Math.floor(Math.max(0, milliseconds) / 1000);
  return seconds < 60 ? `${seconds} s` : inParts(seconds);
}

/** `about 4 min left`: an estimate, so it is rounded. */
export function timeLeft(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 10) return 'a few seconds left';
  if (seconds < 95) return `about ${Math.round(seconds / 10) * 10} s left`;
  const minutes = seconds / 60;
  if (minutes < 90) return `about ${Math.round(minutes)} min left`;
  return `about ${Math.round(minutes / 30) / 2} h left`;
}

/** `67 %`; a dash if nothing was scored. */
export function percent(ratio: number | undefined): string {
  return ratio === undefined ? '–' : `${Math.round(ratio * 100)} %`;
}

export function plural(count: number, noun: string, nouns = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : nouns}`;
}

/** `a, b, c and 4 more`. */
export function firstNames(names: readonly string[], most: number): string {
  const more = names.length > most ? ` and ${names.length - most} more` : '';
  return `${names.slice(0, most).join(', ')}${more}`;
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

/** The sum as `shown` writes it: `≥ $0.12` if not all are known, and a dash if the known ones are 0. */
export function sumText(
  numbers: readonly (number | undefined)[],
  shown: (sum: number | undefined) => string,
): string {
  const known = numbers.filter((number) => number !== undefined);
  const sum = known.reduce((total, number) => total + number, 0);
  if (known.length === numbers.length) return shown(sum);
  return sum > 0 ? `≥ ${shown(sum)}` : shown(undefined);
}

/** `950 B`, `12.3 KiB`, `1.2 MiB`, `20.0 GiB`. */
export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 ** 2) return `${(bytes / 1024).toFixed(1)} KiB`;
  return bytes < 1024 ** 3
    ? `${(bytes / 1024 ** 2).toFixed(1)} MiB`
    : `${(bytes / 1024 ** 3).toFixed(1)} GiB`;
}

/** `2026-11-22 08:06`, in this machine's time zone. */
export function minute(epochMillis: number): string {
  const at = new Date(epochMillis);
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${date} ${two(at.getHours())}:${two(at.getMinutes())}`;
}
