import type { TrialRecord } from '../../record/trial-record.ts';
import type { CutRecord } from './shapes.ts';

export interface CutLimits {
  /** Characters that all texts together may have, roughly. */
  total: number;
  /** Characters that any text may keep. */
  least: number;
  /** Characters that no text may exceed. */
  most: number;
}

/** For a page: an answer of some megabytes for the largest of trials. */
export const pageLimits: CutLimits = { total: 4_000_000, least: 120, most: 4_000 };

/**
 * A record with its long texts cut, so that its size is bounded by the number of its entries. The more texts
 * there are, the less is kept of each. Texts of the harness and the checks about the verdict are few, so more
 * of each is kept.
 */
export function cutRecord(record: TrialRecord, limits: CutLimits = pageLimits): CutRecord {
  const cuts: Record<string, number> = {};
  const limit = Math.max(limits.least, Math.min(limits.most, Math.floor(limits.total / textsIn(record))));
  const cutValue = (value: unknown, pointer: string): unknown => {
    if (typeof value === 'string') {
      const most = aboutVerdict.test(pointer) ? limits.most : limit;
      if (value.length <= most) return value;
      cuts[pointer] = value.length;
      return cutMiddle(value, most);
    }
    if (typeof value !== 'object' || value === null) return value;
    if (toolInput.test(pointer)) {
      const json = JSON.stringify(value);
      if (json.length <= limit) return value;
      cuts[pointer] = json.length;
      return cutMiddle(json, limit);
    }
    if (Array.isArray(value)) return value.map((item, index) => cutValue(item, `${pointer}/${index}`));
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [
        name,
        cutValue(member, `${pointer}/${escapedName(name)}`),
      ]),
    );
  };
  return { record: cutValue(record, '') as TrialRecord, cuts };
}

/** Few in number, and what people look for first. */
const aboutVerdict = /^\/(verifySteps|validations|judgments|cause|subject|finalMessage)\b/;
/** The input of a tool can have any shape. */
const toolInput = /^\/events\/\d+\/input$/;

function textsIn({ trajectory = [], derivedTrajectory = [], events = [], verifySteps = [] }: TrialRecord) {
  return 10 + 2 * (trajectory.length + derivedTrajectory.length + events.length + verifySteps.length);
}

/** The beginning and the end of a text, with the number of characters between them. */
export function cutMiddle(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const head = text.slice(0, Math.ceil(limit * 0.6)).replace(/[\ud800-\udbff]$/, '');
  const tail = text.slice(text.length - Math.floor(limit * 0.4)).replace(/^[\udc00-\udfff]/, '');
  const left = text.length - head.length - tail.length;
  return `${head}\n… ${left} characters left out …\n${tail}`;
}

function escapedName(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** The value at a JSON pointer (RFC 6901); undefined if there is none. */
export function valueAt(value: unknown, pointer: string): unknown {
  if (pointer === '') return value;
  if (!pointer.startsWith('/')) return undefined;
  let found = value;
  for (const part of pointer.slice(1).split('/')) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as Record<string, unknown>)[name];
  }
  return found;
}

/** A value as the page shows it: a text as it is, anything else as JSON. */
export function shownValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}
