export {
  cost,
  count,
  duration,
  percent,
  plural,
  size as byteSize,
  sumText,
  took,
} from '../../../text/quantities.ts';

const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

export function when(at: number): string {
  return dateTime.format(at);
}
