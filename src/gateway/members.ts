import { modelRequests } from '../bounds/sandbox.ts';
import type { ModelConfig, Wire } from '../suite/model-config.ts';
import { GatewayRefusal } from './room.ts';
import { isNothing, isObject, type JsonObject, list, member, shortText, words } from './wires/lenient.ts';
import type { Accepted } from './wires/wire-descriptor.ts';
import { hostedMembers, knownMembers, wireTable } from './wires/wire-table.ts';

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
  while (at < bytes.length) {
    const inner = open[open.length - 1];
    const top = open.length === 1 && inner?.names ? members.at(-1) : undefined;
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
        if (top) top.start = at + 1;
        break;
      case comma:
        values += 1;
        if (top) top.end = at;
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
        if (top) top.end = at;
        open.pop();
        break;
    }
    if (values > modelRequests.count.values)
      throw invalid(`the body has more than ${modelRequests.count.values} values`);
    at += 1;
  }
  for (const member of members) {
    while (isBlank(bytes[member.start])) member.start += 1;
    while (member.end > member.start && isBlank(bytes[member.end - 1])) member.end -= 1;
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

/**
 * Members whose values the gateway does not check: content that a tool, a schema or the client defines. They
 * may contain any names.
 */
const freeForm = words(`
  input parameters input_schema output_schema input_examples schema arguments env metadata
  client_metadata logit_bias chat_template_kwargs annotations citations`);

/** Members below the first level that the gateway judges. */
const deciding = words(`
  type role content input output system tools function custom environment execution source url
  file_id image_url video_url audio_url file_url server_url include_usage`);

/** How the members of a document are judged. */
export interface MemberNames {
  /** `level` is 1 for top-level members. On that level, `input` is the conversation. */
  isFreeForm(name: string, level: number): boolean;
  /** The correct spelling of each name. The key is the form that the most lenient reader compares. */
  written: ReadonlyMap<string, string>;
}

/** The names of all wires that share one list. */
export const commonNames: MemberNames = {
  isFreeForm,
  written: spellings([...deciding, ...knownMembers, ...hostedMembers]),
};

/** The names of a wire's requests. */
export function memberNames(wire: Wire): MemberNames {
  const { names } = wireTable[wire].requests;
  if (!names) return commonNames;
  return { isFreeForm: (name) => names.freeForm.has(name), written: spellings(names.spelled) };
}

function spellings(names: Iterable<string>): ReadonlyMap<string, string> {
  return new Map([...names].map((name) => [folded(name), name]));
}

/**
 * Names that all readers read in the same way. Excludes names such as `__proto__` and `__class__`, which have
 * a meaning in some languages. Includes other names that begin with `__`, because clients send them.
 */
const plain = /^(?!__.*__$)[\w$.@:/-]{1,200}$/;

/** `level` is 1 for top-level members. On that level, `input` is the conversation. */
export function isFreeForm(name: string, level: number): boolean {
  return freeForm.has(name) && !(name === 'input' && level === 1);
}

/**
 * Reads a quoted name and returns the name and its form to compare. Outside free-form members, that form
 * ignores the differences that some servers ignore (case, camel case). Throws a {@link GatewayRefusal} for a
 * name there that is not plain, or that such a server reads as a judged member.
 */
export function nameOf(
  bytes: Buffer,
  start: number,
  end: number,
  isFree: boolean,
  { written }: MemberNames,
): { name: string; folded: string } {
  const name = readName(bytes, start, end);
  if (isFree) return { name, folded: name };
  if (!plain.test(name)) throw invalid(`the body has a member ${shown(name)}, which is not a plain name`);
  const known = folded(name);
  const usual = written.get(known);
  if (usual !== undefined && usual !== name)
    throw invalid(`the body has ${shown(name)}, which some servers take for ${JSON.stringify(usual)}`);
  return { name, folded: known };
}

function readName(bytes: Buffer, start: number, end: number): string {
  try {
    // A string contains no other values, so its memory need not be estimated.
    return String(JSON.parse(bytes.toString('utf8', start, end)));
  } catch (cause) {
    throw new GatewayRefusal(400, 'BODY_NOT_JSON', 'the body is not JSON', { cause });
  }
}

function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, '');
}

/**
 * Throws a {@link GatewayRefusal} for a request with a member that this gateway does not know, because such a
 * member may select another model or open a way out of the sandbox. Also refuses a request that makes the
 * provider work outside the conversation, unless the model's configuration allows it.
 */
export function checkMembers(
  body: JsonObject,
  wire: Wire,
  { name, config }: { name: string; config: ModelConfig },
): void {
  const { accepted, hostedTool, names, providerSide: ownJudge } = wireTable[wire].requests;
  const isKnown = (member: string) =>
    names
      ? accepted.members.has(member) || accepted.hosted.has(member)
      : knownMembers.has(member) || hostedMembers.has(member);
  const unknown = Object.keys(body).find(
    (member) => !isKnown(member) && !config.requestMembers.includes(member) && !isNothing(body[member]),
  );
  if (unknown !== undefined) {
    throw new GatewayRefusal(
      400,
      'MEMBER_UNKNOWN',
      `${shown(unknown)} is not a request member that Offsite knows. If the model's server accepts it, ` +
        `add it to \`requestMembers\` of the model ${name} in offsite.yaml`,
    );
  }
  if (config.hostedTools === 'allow') return;
  const hosted = ownJudge ? ownJudge(body) : providerSide(body, accepted, hostedTool);
  if (hosted === undefined) return;
  throw new GatewayRefusal(
    400,
    'HOSTED_TOOL_DENIED',
    `${hosted} would run at the model's provider, outside the sandbox. ` +
      `To allow it, set \`hostedTools: allow\` for the model ${name} in offsite.yaml`,
  );
}

/** How a wire checks one tool: returns its name for messages if it runs at the provider. */
type ToolCheck = (tool: unknown) => string | undefined;

/** Members that hold the conversation, as one value or as a list. */
const conversational: ReadonlySet<string> = new Set(['content', 'input', 'output', 'system']);

/** Types of sources whose bytes are in the request itself. */
const inlineSources: ReadonlySet<unknown> = new Set(['base64', 'text', 'content']);

const address = /ur[il]s?$/;

/**
 * The first thing in a request that its provider would do outside the conversation, named for messages: run a
 * tool, fetch an address, use stored content. Anything unknown counts as such.
 */
function providerSide(body: JsonObject, wire: Accepted, hostedTool: ToolCheck): string | undefined {
  for (const name of hostedMembers) if (!isNothing(body[name])) return name;
  return inObject(body, 1);

  function inObject(object: JsonObject, level: number): string | undefined {
    for (const [name, value] of Object.entries(object)) {
      if (value === null || isFreeForm(name, level)) continue;
      const found = ofMember(name, value) ?? within(value, level + 1);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** `level` counts nesting as names are judged, including lists. */
  function within(value: unknown, level: number): string | undefined {
    if (isObject(value)) return inObject(value, level);
    for (const element of list(value)) {
      const found = within(element, level + 1);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  function ofMember(name: string, value: unknown): string | undefined {
    if (name === 'tools') return inTools(value);
    if (name === 'source' && isObject(value) && !inlineSources.has(value.type))
      return 'a source outside the request';
    if (name === 'file_id') return 'a file that is stored at the provider';
    if (address.test(name)) return [value].flat().every(isInline) ? undefined : 'an address to fetch';
    if (conversational.has(name)) return inConversation(name, [value].flat());
    return undefined;
  }

  function inTools(tools: unknown): string | undefined {
    if (!Array.isArray(tools)) return 'tools of an unknown shape';
    for (const tool of tools) {
      const other = isObject(tool) && Object.keys(tool).find((name) => !wire.toolMembers.has(name));
      if (other) return `the tool member ${JSON.stringify(other.slice(0, 100))}`;
      const hosted = hostedTool(tool);
      if (hosted !== undefined) return `the tool ${hosted}`;
    }
    return undefined;
  }

  function inConversation(name: string, parts: unknown[]): string | undefined {
    for (const part of parts) {
      if (typeof part === 'string' || (isObject(part) && wire.parts.has(part.type))) continue;
      // A shell's output has no type, and a message among other items needs none.
      const untyped = isObject(part) && part.type === undefined;
      if (untyped && (name === 'output' || (name === 'input' && typeof part.role === 'string'))) continue;
      return `a part of the type ${shortText(member(part, 'type')) ?? 'unknown'}`;
    }
    return undefined;
  }
}

/** An object counts as inline, because the address inside it is checked separately. */
function isInline(value: unknown): boolean {
  if (typeof value === 'string') return /^data:/i.test(value);
  return value === null || isObject(value);
}
