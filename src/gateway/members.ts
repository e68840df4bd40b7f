import { modelRequests } from '../bounds/sandbox.ts';
import { commonNames, type MemberNames, nameOf } from './member-names.ts';
import { GatewayRefusal } from './room.ts';

/** The position of a member of a JSON object in its bytes. */
export interface Member {
  name: string;
  /** The start of its value; `end` is exclusive. */
  start: number;
  end: number;
}

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
const openList = 0x5b;
const openObject = 0x7b;
const closeList = 0x5d;
const closeObject = 0x7d;

/** An object or a list that is still open. */
interface Open {
  /** The names so far, as {@link nameOf} compares them; undefined for a list. */
  names: Set<string> | undefined;
  freeForm: boolean;
  /** The member that is being read; empty in a list. */
  name: string;
  /** Whether the next string is a name. */
  named: boolean;
}

/**
 * The members of a JSON document that is an object, in order. One pass over its bytes refuses what JSON
 * readers do not all read in the same way: two members of the same name in one object, at any depth, and what
 * {@link nameOf} refuses. It also refuses what would take too much memory to parse, so it runs before the
 * parser. It does not check that the bytes are JSON: the parser does. If they are not, the result is
 * meaningless.
 */
export function membersOf(bytes: Buffer, names: MemberNames = commonNames): Member[] {
  const members: Member[] = [];
  const open: Open[] = [];
  let values = 0;
  let at = 0;

  const close = () => {
    const { [open.length - 1]: inner } = open;
    if (open.length === 1 && inner?.names) endMember(bytes, members.at(-1), at);
    open.pop();
  };
  while (at < bytes.length) {
    const inner = open[open.length - 1];
    const byte = bytes[at];
    switch (byte) {
      case quote: {
        const end = stringEnd(bytes, at);
        if (inner?.named) {
          inner.name = addName(inner, names, bytes, at, end);
          if (open.length === 1) members.push({ name: inner.name, start: end, end });
        } else values += 1;
        at = end;
        continue;
      }
      case colon:
        if (inner) inner.named = false;
        if (open.length === 1) beginMember(bytes, members.at(-1), at + 1);
        break;
      case comma:
        values += 1;
        if (open.length === 1 && inner?.names) endMember(bytes, members.at(-1), at);
        if (inner?.names) inner.named = true;
        break;
      case openObject:
      case openList: {
        if (open.length >= modelRequests.count.depth)
          throw invalid(`the body has more than ${modelRequests.count.depth} levels`);
        const isObject = byte === openObject;
        open.push({
          names: isObject ? new Set() : undefined,
          freeForm: inner !== undefined && (inner.freeForm || names.isFreeForm(inner.name, open.length)),
          name: '',
          named: isObject,
        });
        values += 1;
        break;
      }
      case closeObject:
      case closeList:
        close();
        break;
    }
    if (values > modelRequests.count.values)
      throw invalid(`the body has more than ${modelRequests.count.values} values`);
    at += 1;
  }
  return members;
}

/** Adds the name from `from` to `end` to those of its object. Returns it as a reader would read it. */
function addName(
  { names, freeForm }: Open,
  known: MemberNames,
  bytes: Buffer,
  from: number,
  end: number,
): string {
  const { name, folded } = nameOf(bytes, from, end, freeForm, known);
  if (names?.has(folded)) throw invalid(`an object has ${shown(name)} twice, or a similar name beside it`);
  names?.add(folded);
  return name;
}

function beginMember(bytes: Buffer, member: Member | undefined, from: number): void {
  if (!member) return;
  let start = from;
  while (isBlank(bytes[start])) start += 1;
  member.start = start;
}

function endMember(bytes: Buffer, member: Member | undefined, to: number): void {
  if (!member) return;
  let end = to;
  while (end > member.start && isBlank(bytes[end - 1])) end -= 1;
  member.end = end;
}

function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Bytes of a string until a search of it is faster than a loop. */
const short = 64;

/** Returns the end of the string that begins at `from`. */
function stringEnd(bytes: Buffer, from: number): number {
  const { length } = bytes;
  let at = from + 1;
  while (at < length) {
    const until = Math.min(length, at + short);
    while (at < until) {
      const byte = bytes[at];
      if (byte === quote) return at + 1;
      at += byte === backslash ? 2 : 1;
    }
    const end = bytes.indexOf(quote, at);
    if (end === -1) return length;
    // The last backslash may belong to one before it.
    let before = end;
    while (before > at && bytes[before - 1] === backslash) before -= 1;
    at = end - ((end - before) % 2);
  }
  return length;
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 100));
}

function invalid(message: string): GatewayRefusal {
  return new GatewayRefusal(400, 'BODY_INVALID', message);
}
