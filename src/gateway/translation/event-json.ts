import { parsed } from '../wires/lenient.ts';

/** Even an event of nothing but brackets takes little memory up to this many characters. */
const small = 65_536;

/** Parses the data of an event; undefined if it is not JSON. Most events are small, and not weighed first. */
export function eventJson(data: string): unknown {
  if (data.length > small) return parsed(data);
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}
