export { cost, count, duration, percent, size as byteSize, took } from '../../../text/quantities.ts';

export function plural(number: number, noun: string, nouns = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : nouns}`;
}

const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

export function when(at: number): string {
  return dateTime.format(at);
}
