/** One character of what is looked for. */
export interface Element {
  /** The byte that stands for it, and another that does as well. -1 where it takes several bytes. */
  byte: number;
  other: number;
  /** Whether it may stand as it is after a backslash: a letter would be another character there. */
  mayBeEscaped: boolean;
  /** The letter of its short escape (`n` of `\n`); -1 where it has none. */
  letter: number;
  /** Its UTF-8, where it takes several bytes. */
  bytes: readonly number[];
  /** Its UTF-16. */
  units: readonly number[];
}

/** A run of characters, each of which may be written in any of the ways that decode.ts reads. */
export interface Pattern {
  elements: readonly Element[];
  /** Whether lines may be broken anywhere in it, as base64 is. */
  wraps: boolean;
  /** Which of the secrets it is of. */
  secret: number;
}

const slash = '/'.charCodeAt(0);
const plus = '+'.charCodeAt(0);
const dash = '-'.charCodeAt(0);
const underscore = '_'.charCodeAt(0);
const space = ' '.charCodeAt(0);
const letters: Record<string, string> = { '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't' };

/** Letters of base64 below which they could be anything. */
const shortestCore = 6;

/** What a secret's value turns into: itself, hexadecimal, and base64, whose letters depend on how many bytes stand before it. */
export function patternsOf(value: string, secret: number): Pattern[] {
  const bytes = Buffer.from(value);
  const plain = { elements: plainElements(value), wraps: false, secret };
  const hexadecimal = { elements: [...bytes.toString('hex')].map(hexadecimalElement), wraps: false, secret };
  const cores = base64Cores(bytes).map((core) => ({
    elements: [...core].map(base64Element),
    wraps: true,
    secret,
  }));
  return [plain, hexadecimal, ...cores].filter(({ elements }) => elements.length > 0);
}

/** How often a backslash was escaped is not told apart, nor then how many there are: they are left out. */
function plainElements(value: string): Element[] {
  return [...value.matchAll(/(\\*)([^\\])/gu)].map(([, backslashes = '', character = '']) => {
    const element = elementOf(character);
    return backslashes === '' ? element : { ...element, mayBeEscaped: true };
  });
}

function elementOf(character: string): Element {
  const code = character.codePointAt(0) ?? 0;
  const isAscii = code < 0x80;
  return {
    byte: isAscii ? code : -1,
    // As forms write it.
    other: code === space ? plus : isAscii ? code : -1,
    mayBeEscaped: isAscii && code > 0x1f && !/[A-Za-z0-9]/.test(character),
    letter: letters[character]?.charCodeAt(0) ?? -1,
    bytes: isAscii ? [] : [...Buffer.from(character)],
    units: Array.from({ length: character.length }, (_, at) => character.charCodeAt(at)),
  };
}

function hexadecimalElement(digit: string): Element {
  return { ...elementOf(digit), other: digit.toUpperCase().charCodeAt(0) };
}

/** Of either alphabet. */
function base64Element(letter: string): Element {
  const element = elementOf(letter);
  if (element.byte === plus) return { ...element, other: dash };
  if (element.byte === slash) return { ...element, other: underscore };
  return element;
}

/** For each of the three places that its first byte can have in a group of three: the letters that no neighbour can change. */
function base64Cores(secret: Buffer): string[] {
  const cores = [0, 1, 2].map((before) => {
    const written = Buffer.concat([Buffer.alloc(before), secret]).toString('base64');
    // A letter carries 6 bits: the first ones share theirs with what stands before, the last one with what follows.
    const firstWhole = Math.ceil((before * 8) / 6);
    const endWhole = Math.floor(((before + secret.length) * 8) / 6);
    return written.slice(firstWhole, endWhole);
  });
  return cores.filter((core) => core.length >= shortestCore);
}
