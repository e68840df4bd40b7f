import { parseSmallJson } from '../../parse-json.ts';
import { parsed } from '../wires/lenient.ts';

/** Characters of an event that needs no weighing. */
const small = 8192;

/** Parses the data of an event; undefined if it is not JSON. Most events are small, and not weighed first. */
export function eventJson(data: string): unknown {
  if (data.length > small) return parsed(data);
  try {
    return parseSmallJson(data);
  } catch {
    return undefined;
  }
}
