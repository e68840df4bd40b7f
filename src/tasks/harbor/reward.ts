import { messageOf } from '../../base/offsite-error.ts';
import { DocumentTooHeavy, parseForeignJson } from '../../base/parse-json.ts';
import { rewards } from '../../bounds/tasks.ts';
import { cut } from '../../text/printable.ts';

/** Rewards by their names, all of them finite numbers; or why there are none. */
export type Rewards =
  | { kind: 'rewards'; rewards: ReadonlyMap<string, number> }
  | { kind: 'none'; problem: string };

/** The contents of the files that a verifier may write. Undefined for a file that it did not write. */
export interface RewardFiles {
  json: Uint8Array | undefined;
  text: Uint8Array | undefined;
}

/**
 * The rewards that a verifier wrote. `reward.json`, a flat object of numbers or one number, takes precedence
 * over `reward.txt`, one number. A number without a name is called `reward`. Missing and unusable rewards are
 * problems, never 0.
 */
export function readRewards({ json, text }: RewardFiles): Rewards {
  if (json !== undefined) return readFile('reward.json', json, fromJson);
  if (text !== undefined) return readFile('reward.txt', text, fromText);
  return none('the tests wrote neither reward.json nor reward.txt');
}

function readFile(name: string, content: Uint8Array, read: (text: string) => Rewards): Rewards {
  if (content.length > rewards.bytes.file)
    return none(`${name} is larger than the limit of ${rewards.bytes.file / 1024} KiB`);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(content).trim();
  } catch {
    return none(`${name} is not UTF-8`);
  }
  if (text === '') return none(`${name} is empty`);
  const found = read(text);
  return found.kind === 'none' ? none(`${name} ${found.problem}`) : found;
}

function fromJson(text: string): Rewards {
  let value: unknown;
  try {
    value = parseForeignJson(text);
  } catch (error) {
    if (error instanceof DocumentTooHeavy) return none(`cannot be read: ${error.message}`);
    const notFinite = /-?\b(NaN|Infinity)\b/.exec(text)?.[0];
    return none(notFinite === undefined ? `is not JSON: ${messageOf(error)}` : `has ${notFinite}`);
  }
  if (typeof value === 'number') return named([['reward', value]]);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return none('has neither an object nor a number');
  return named(Object.entries(value));
}

/** A decimal number as Python's `float` reads it. */
const decimal = /^[+-]?(\d+(_\d+)*(\.(\d+(_\d+)*)?)?|\.\d+(_\d+)*)(e[+-]?\d+)?$/i;

/** How many characters of a text that is not a number a message repeats. */
const shown = 40;

function fromText(text: string): Rewards {
  if (decimal.test(text)) return named([['reward', Number(text.replaceAll('_', ''))]]);
  if (/^[+-]?(nan|inf(inity)?)$/i.test(text)) return none(`has ${text}, which is not a finite number`);
  return none(`has ${JSON.stringify(cut(text, shown))} in place of a number`);
}

function named(entries: readonly (readonly [string, unknown])[]): Rewards {
  if (entries.length === 0) return none('names no reward');
  if (entries.length > rewards.count.rewards) return none(`has more than ${rewards.count.rewards} rewards`);
  const found = new Map<string, number>();
  for (const [name, value] of entries) {
    if (typeof value !== 'number') return none(`has a reward ${JSON.stringify(name)} that is not a number`);
    if (!Number.isFinite(value)) return none(`has a reward ${JSON.stringify(name)} that is not finite`);
    found.set(name, value);
  }
  return { kind: 'rewards', rewards: found };
}

function none(problem: string): Rewards {
  return { kind: 'none', problem };
}
